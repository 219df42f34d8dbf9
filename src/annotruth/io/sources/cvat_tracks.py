"""CVAT's tracks: an object followed through the frames of a video."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from annotruth.errors import InputError
from annotruth.io.shapes import Box, Shape

MAX_FRAMES = 10**6
"""Of one video; a file that tells of more is not believed."""


@dataclass(frozen=True)
class FrameShape:
    """Where a track is in one frame; ``outside`` where it has left."""

    frame: int
    outside: bool
    shape: Shape
    order: int

    @classmethod
    def read(cls, attributes: dict[str, str], shape: Shape, order: int) -> FrameShape:
        return cls(int(attributes["frame"]), attributes.get("outside") == "1", shape, order)


@dataclass
class Track:
    """One object's label and shapes."""

    label: str
    shapes: list[FrameShape] = field(default_factory=list)

    def at(self, frames: range) -> Iterator[tuple[int, FrameShape]]:
        """Its shape in each frame where it is seen.

        CVAT writes every frame of a track. Between frames that are not there, a box moves in a straight line, as in
        CVAT, and other shapes stay as they were.
        """
        listed = sorted(self.shapes, key=lambda each: each.frame)
        for here, then in zip(listed, [*listed[1:], None]):
            end = frames.stop if then is None else then.frame
            for frame in range(max(here.frame, frames.start), min(end, frames.stop)):
                if not here.outside:
                    yield frame, _moved(here, then, frame)


def _moved(here: FrameShape, then: FrameShape | None, frame: int) -> FrameShape:
    if frame == here.frame or then is None or then.outside:
        return here
    start, end = here.shape, then.shape
    if not (isinstance(start, Box) and isinstance(end, Box)):
        return here
    share = (frame - here.frame) / (then.frame - here.frame)
    left, top, right, bottom = ((1 - share) * one + share * other for one, other in zip(start.corners, end.corners))
    return replace(here, shape=Box(start.label, (left, top, right, bottom)))


def frames_of(
    tracks: list[Track], first: int | None, last: int | None
) -> Iterator[tuple[int, list[tuple[int, Shape]]]]:
    """Every frame of a video, from the first to the last one, with the shapes in it and their order."""
    seen = [shape.frame for track in tracks for shape in track.shapes]
    start = min(seen) if first is None else first
    stop = (max(seen) if last is None else last) + 1
    if stop - start > MAX_FRAMES or min(seen, default=0) < 0:
        raise InputError(f"a video of {stop - start} frames cannot be. Export the file anew.")
    found: dict[int, list[tuple[int, Shape]]] = {frame: [] for frame in range(start, stop)}
    for track in tracks:
        for frame, shape in track.at(range(start, stop)):
            found[frame].append((shape.order, shape.shape))
    yield from found.items()
