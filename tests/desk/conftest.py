"""A small desk: six cases that three raters drew, or a label table; and its web application, without a network."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from annotruth.data.annotations import Annotations
from annotruth.desk.access import HEADER, make_access
from annotruth.desk.app import make_app
from annotruth.desk.live import Desk
from annotruth.desk.serving import most_bytes
from annotruth.desk.study import Study

SHAPE = (20, 24)


def draw_cases(n_items: int = 6, shape: tuple[int, ...] = SHAPE, sloppy: bool = False) -> Annotations:
    """Boxes that three raters draw about alike, the last ones less so; in one case a rater drew nothing.

    With ``sloppy``, one pixel in five is anybody's guess.
    """
    rng = np.random.default_rng(0)
    masks = np.zeros((n_items, 3, *shape), dtype=np.uint8)
    for item in range(n_items):
        for rater in range(3):
            low = 3 + rng.integers(0, 1 + item // 2)
            box = tuple(slice(low, size - 3 - rater * (item > 2)) for size in shape)
            masks[item, rater][box] = 1
    if sloppy:
        masks ^= (rng.random(masks.shape) < 0.2).astype(np.uint8)
    masks[1, 2] = 255
    images = np.rint(60 * masks[:, :1].clip(max=1) + rng.uniform(0, 40, (n_items, 1, *shape))).astype(np.float32)
    return Annotations.from_masks(
        masks, images=images, raters=["ann", "bob", "cy"], classes=["background", "lesion"],
        items=[f"case {number}" for number in range(n_items)],
    )  # fmt: skip


def draw_table() -> Annotations:
    answers = np.array([[0, 0, 1], [1, 1, 1], [0, 1, -1], [1, 1, 1], [0, 0, 0], [1, 0, -1], [0, 0, 0], [1, 1, 0]])
    return Annotations.from_answers(
        answers, raters=["ann", "bob", "cy"], classes=["cat", "dog"], items=[f"=p{number}" for number in range(8)]
    )


def pack(told: dict[str, Any], code: bytes = b"") -> bytes:
    """What a page sends."""
    head = json.dumps(told).encode()
    return len(head).to_bytes(4, "little") + head + code


def unpack(content: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """What a page is sent."""
    length = int.from_bytes(content[:4], "little")
    head = json.loads(content[4 : 4 + length])
    ends = np.cumsum([4 + length, *head["lengths"]])
    return head, [content[start:end] for start, end in pairwise(ends)]


@dataclass
class Page:
    """A page of the desk, with a name and a session of its own."""

    client: Any
    who: str = "Ada"
    session: str = "session-1"

    def get(self, path: str) -> Any:
        return self.client.get(path)

    def post(self, path: str, code: bytes = b"", **told: Any) -> Any:
        return self.client.post(path, content=pack({"session": self.session, "who": self.who} | told, code))

    def open(self, index: int) -> dict[str, Any]:
        return dict(self.post(f"/api/cases/{index}/open").json())

    def layers(self, index: int) -> dict[str, bytes]:
        head, parts = unpack(self.get(f"/api/cases/{index}/layers").content)
        names = [
            f"{layer['kind']} {layer['number']}" if "number" in layer else layer["kind"] for layer in head["layers"]
        ]
        return dict(zip(names, parts))

    def decide(self, index: int, action: str, code: bytes = b"", **told: Any) -> Any:
        seen = self.open(index)["seen"]
        return self.post(f"/api/cases/{index}/decide", code, action=action, **{"seen": seen} | told)


@dataclass
class Served:
    """A desk with its web application."""

    desk: Desk
    folder: Path
    tokens: dict[str, str]
    page: Callable[..., Page]


@pytest.fixture
def serve_desk(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Give a function that opens a desk."""
    from starlette.testclient import TestClient

    opened: list[Desk] = []

    def serve(annotations: Annotations | None = None, raters: tuple[str, ...] = (), model: Any = None) -> Served:
        annotations = draw_cases() if annotations is None else annotations
        desk = Desk(Study(annotations, tmp_path / "desk", raters), "try", model).start()
        opened.append(desk)
        assert desk.wait(), desk.fault
        access = make_access("127.0.0.1", 8765, raters, most_bytes(annotations))
        app = make_app(desk, access)
        tokens = {role.rater or "curator": token for token, role in access.tokens.items()}

        def page(who: str = "Ada", session: str = "session-1", role: str = "curator") -> Page:
            cookies = {access.cookie: tokens[role]} if tokens else {}
            headers = {HEADER.decode(): "1"}
            return Page(TestClient(app, "http://127.0.0.1:8765", headers=headers, cookies=cookies), who, session)

        return Served(desk, tmp_path / "desk", tokens, page)

    yield serve
    for desk in opened:
        desk.stop()
