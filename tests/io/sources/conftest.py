"""Small exports as labelling tools write them."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest


class CvatFile:
    """Writes CVAT's XML for images 1.1, as a job's export looks."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(
        self, images: dict[str, str], assignee: str | None = None, labels: tuple[str, ...] = ("cell",), more: str = "",
        size: tuple[int, int] = (8, 9),
    ) -> Path:  # fmt: skip
        """Images' content by name; ``more`` stands behind the images."""
        person = (
            f"<assignee><username>{assignee}</username><email>x@y</email></assignee>" if assignee else "<assignee/>"
        )
        named = "".join(f"<label><name>{name}</name><color>#fff</color></label>" for name in labels)
        shown = "".join(
            f'<image id="{number}" name={quoteattr(name)} width="{size[1]}" height="{size[0]}">{content}</image>'
            for number, (name, content) in enumerate(images.items())
        )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(
            f'<?xml version="1.0" encoding="utf-8"?><annotations><version>1.1</version><meta><job><id>3</id>'
            f"<owner><username>boss</username></owner>{person}<labels>{named}</labels></job></meta>{shown}{more}"
            "</annotations>",
            encoding="utf-8",
        )
        return self.path


@pytest.fixture
def cvat(tmp_path: Path) -> type[CvatFile]:
    return CvatFile
