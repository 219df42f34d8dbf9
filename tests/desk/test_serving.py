"""Starting the desk, and what keeps it from starting."""

from __future__ import annotations

import socket
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from annotruth.desk.access import make_access
from annotruth.desk.serving import desk_folder, links, most_bytes, serve
from annotruth.errors import InputError
from annotruth.io.locks import only_writer

from .conftest import draw_cases, draw_table


def test_a_port_in_use_is_told(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InputError, match=f"Port {port} is in use.*--port {port + 1}"):
            serve(draw_cases(), tmp_path / "desk", port=port)
    assert not (tmp_path / "desk").exists(), "nothing is left behind"


@pytest.mark.parametrize("host", ["no.such.host.invalid", "256.1.1.1", "192.0.2.1"])
def test_an_address_that_is_not_ours_is_told(tmp_path, host):
    with pytest.raises(InputError, match="cannot be listened on"):
        serve(draw_cases(), tmp_path, host=host, port=0)


def test_two_desks_do_not_write_into_one_folder(tmp_path):
    with only_writer(tmp_path), pytest.raises(InputError, match="another job"):
        serve(draw_cases(), tmp_path, port=0)


@pytest.mark.parametrize("module", ["uvicorn", "starlette"])
def test_a_missing_extra_says_what_to_install(tmp_path, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf'needs {module}.*pip install "annotruth\[desk\]"'):
        serve(draw_cases(), tmp_path)


def test_it_serves_until_it_is_ended(tmp_path, monkeypatch):
    import uvicorn

    servers, told = [], []
    real = uvicorn.Server.run
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: (servers.append(self), real(self, sockets)))
    thread = threading.Thread(target=serve, args=(draw_table(), tmp_path), kwargs={"port": 0, "told": told.append})
    thread.start()
    while not told:
        time.sleep(0.01)
    url = told[0].rpartition(" ")[2]
    with urllib.request.urlopen(url, timeout=20) as answer:
        assert b"annotruth" in answer.read()
    servers[0].should_exit = True
    thread.join(20)
    assert not thread.is_alive()
    assert list(tmp_path.iterdir()) == []


def test_links_hold_tokens_where_they_are_needed():
    assert links(make_access("127.0.0.1", 8765, [], 1), "127.0.0.1") == ["The desk is at http://127.0.0.1:8765/"]
    curator, ann, warning = links(make_access("0.0.0.0", 8765, ["ann"], 1), "0.0.0.0")
    assert curator.startswith(f"For curators: http://{socket.gethostname()}:8765/?token=")
    assert ann.startswith("For ann: http://")
    assert "Whoever has a link" in warning
    assert "http://[::1]:8765/" in links(make_access("::1", 8765, [], 1), "::1")[0]


def test_requests_may_be_as_large_as_the_largest_case_needs():
    assert most_bytes(draw_cases()) == 2**16 + 5 * 20 * 24
    assert most_bytes(draw_table()) == 2**16


def test_decisions_go_beside_the_cases(tmp_path, monkeypatch):
    (tmp_path / "cases.v2").mkdir()
    assert desk_folder(tmp_path / "cases.v2") == tmp_path / "cases.v2-desk"
    assert desk_folder(Path("a/labels.csv")) == Path("a/labels-desk")
    monkeypatch.chdir(tmp_path / "cases.v2")
    assert desk_folder(Path(".")) == tmp_path / "cases.v2-desk"
