"""Downloads from a server on this machine: broken off and gone on with, compared, unpacked nowhere else."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from annotruth.errors import AnnotruthError, InputError
from annotruth.io.fetching import Archive, fetch_archive


class Server:
    """Serves bytes by name; may break off, and may not know ranges."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.break_after: list[int] = []
        self.knows_ranges = True
        self.asked: list[str | None] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = owner.files.get(self.path.strip("/"))
                if content is None:
                    self.send_error(404)
                    return
                asked = self.headers.get("Range")
                owner.asked.append(asked)
                start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and owner.knows_ranges else 0
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(content) - start))
                self.end_headers()
                until = owner.break_after.pop(0) if owner.break_after else len(content)
                self.wfile.write(content[start:until])
                self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.server.shutdown()
    made.server.server_close()


def zipped(**files: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in files.items():
            archive.writestr(name.replace("__", "/"), data)
    return content.getvalue()


def test_an_archive_is_fetched_compared_and_unpacked_once(server: Server, tmp_path: Path) -> None:
    server.files["a.zip"] = content = zipped(in__b=b"text")
    digest = hashlib.sha256(content).hexdigest()
    told: list[tuple[str, int, int]] = []
    archive = Archive(f"{server.address}/a.zip", f"sha256:{digest}", "unpacked")
    assert fetch_archive(archive, tmp_path / "data", lambda *each: told.append(each)) == digest
    assert (tmp_path / "data" / "unpacked" / "in" / "b").read_bytes() == b"text"
    assert told[-1] == ("a.zip", len(content), len(content))
    assert json.loads((tmp_path / "data" / "fetched.json").read_text()) == {archive.url: digest}
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["fetched.json", "unpacked"]
    assert fetch_archive(archive, tmp_path / "data") == digest
    assert len(server.asked) == 1, "not fetched again"


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_a_broken_download_is_gone_on_with(
    server: Server, tmp_path: Path, knows_ranges: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("annotruth.io.fetching.TRIES", 1)
    server.files["a.zip"] = content = zipped(b=bytes(range(256)) * 40)
    server.knows_ranges = knows_ranges
    server.break_after = [5000]
    archive = Archive(f"{server.address}/a.zip", f"md5:{hashlib.md5(content).hexdigest()}")
    with pytest.raises(AnnotruthError, match=r"connection failed .* 5000 bytes are there. Call again"):
        fetch_archive(archive, tmp_path)
    fetch_archive(archive, tmp_path)
    assert server.asked == [None, "bytes=5000-"]
    assert (tmp_path / "b").read_bytes() == bytes(range(256)) * 40


def test_it_is_tried_again_before_it_is_given_up(server: Server, tmp_path: Path) -> None:
    server.files["a.zip"] = zipped(b=b"x" * 9000)
    server.break_after = [100, 200]
    fetch_archive(Archive(f"{server.address}/a.zip"), tmp_path)
    assert server.asked == [None, "bytes=100-", "bytes=200-"]


def test_another_file_than_the_known_one_is_deleted(server: Server, tmp_path: Path) -> None:
    server.files["a.zip"] = zipped(b=b"other")
    with pytest.raises(AnnotruthError, match="not the file that is known: its sha256 is"):
        fetch_archive(Archive(f"{server.address}/a.zip", "sha256:00"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_unpacked_outside(server: Server, tmp_path: Path) -> None:
    server.files["slip.zip"] = zipped(**{"../../evil": b"x"})
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("../evil"))
    server.files["slip.tar"] = content.getvalue()
    server.files["broken.tar"] = b"nonsense"
    for name in ("slip.zip", "slip.tar", "broken.tar"):
        with pytest.raises(AnnotruthError, match=r"outside|cannot be unpacked"):
            fetch_archive(Archive(f"{server.address}/{name}"), tmp_path / "deep" / "data")
    assert not list(tmp_path.rglob("evil"))


def test_what_is_not_there_and_other_protocols_are_refused(server: Server, tmp_path: Path) -> None:
    with pytest.raises(AnnotruthError, match="the server answers 404"):
        fetch_archive(Archive(f"{server.address}/none.zip"), tmp_path)
    with pytest.raises(InputError, match="only http and https"):
        fetch_archive(Archive("file:///etc/passwd"), tmp_path)
