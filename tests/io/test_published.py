"""The list of published data sets: each can be read, and each can be fetched or says how to get it."""

from __future__ import annotations

import hashlib
import http.server
import io
import tarfile
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from annotruth.cli import app
from annotruth.errors import AnnotruthError, InputError
from annotruth.io import SOURCES
from annotruth.io.fetching import Archive
from annotruth.io.published import PUBLISHED, Published, fetch


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_every_data_set_has_a_source_a_page_and_a_way(name: str) -> None:
    known = PUBLISHED[name]
    assert known.source in {source.key for source in SOURCES.values()}
    assert known.page.startswith("http")
    assert bool(known.archives) != bool(known.by_hand)
    for archive in known.archives:
        kind, _, digest = (archive.checksum or "").partition(":")
        assert len(digest) == {"": 0, "md5": 32, "sha256": 64}[kind]


def test_where_owners_want_to_know_who_asks_it_says_where_to_go(tmp_path: Path) -> None:
    with pytest.raises(
        AnnotruthError, match=r"give it out themselves.*Training/caseNN.*grand-challenge.*annotruth import"
    ):
        fetch("qubiq", tmp_path)
    with pytest.raises(InputError, match="Unknown data set 'mnist'"):
        fetch("mnist", tmp_path)


def test_fetched_and_imported_with_one_command_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "www").mkdir()
    for folder, end in (("stare-images", ""), ("labels-ah", ".ah"), ("labels-vk", ".vk")):
        (tmp_path / "stare" / folder).mkdir(parents=True)
        for name in ("im0001", "im0002"):
            Image.fromarray(np.eye(8, dtype=np.uint8) * 255).save(tmp_path / "stare" / folder / f"{name}{end}.ppm")
    archives = []
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path / "www"))
    monkeypatch.setattr(http.server.SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for folder in sorted((tmp_path / "stare").iterdir()):
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w") as archive:
            for file in sorted(folder.iterdir()):
                archive.add(file, file.name)
        (tmp_path / "www" / f"{folder.name}.tar").write_bytes(content.getvalue())
        url = f"http://127.0.0.1:{server.server_address[1]}/{folder.name}.tar"
        digest = hashlib.sha256(content.getvalue()).hexdigest()
        archives.append(Archive(url, None if folder.name == "labels-vk" else f"sha256:{digest}", folder.name))
    monkeypatch.setitem(PUBLISHED, "stare", Published("STARE", "stare", "http://x", tuple(archives)))
    run = CliRunner()
    fetched = run.invoke(app, ["fetch", "stare", "-o", str(tmp_path / "data")])
    assert fetched.exit_code == 0
    assert "Fetched labels-ah.tar, which has the checksum that is known." in fetched.output
    assert "Fetched labels-vk.tar, compared with nothing, as its owners tell no checksum" in fetched.output
    imported = run.invoke(app, ["import", str(tmp_path / "data"), "-o", str(tmp_path / "cases")])
    assert imported.exit_code == 0
    assert "Raters: Hoover (2), Kouznetsova (2)." in imported.output
    listed = run.invoke(app, ["fetch"]).output
    assert "drive (by hand)" in listed
    assert "chase (no checksum is known)" in listed
    server.shutdown()
    server.server_close()
