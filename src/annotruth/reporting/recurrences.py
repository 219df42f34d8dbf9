"""How the estimate, and the confidence in each rater, change from one recurrence to the next: strips of pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from annotruth.data.annotations import Annotations
from annotruth.reporting import tiles
from annotruth.reporting.evidence import Case, Model
from annotruth.reporting.gallery import MOST_RATERS, Gallery, Tile
from annotruth.reporting.words import percent

MOST_CASES = 2


@dataclass(frozen=True)
class Strip:
    """One case after one recurrence: the estimate, then each rater's confidence."""

    case: str
    recurrence: int
    tiles: list[Tile]


def strips(model: Model, ann: Annotations, gallery: Gallery, cases: Sequence[Case]) -> list[Strip]:
    """Strips of a few cases, recurrence after recurrence; none where the method has no recurrences."""
    count = model.settings_.get("options", {}).get("recurrences", 0)
    return [_strip(model, ann, gallery, case, number) for case in cases[:MOST_CASES] for number in range(count)]


def _strip(model: Model, ann: Annotations, gallery: Gallery, case: Case, recurrence: int) -> Strip:
    view, image = gallery.view(case.index), ann.item_image(case.index)
    posterior = tiles.cut(model.predict_proba(image[None], recurrence=recurrence)[0], view.plane)  # type: ignore[call-arg]
    confidences = tiles.cut(model.rater_confidences_(image, recurrence=recurrence), view.plane)  # type: ignore[attr-defined]
    labels = posterior.argmax(axis=0)
    after = f"after recurrence {recurrence}"
    made = [
        Tile(
            case.index, "Estimate", "", f"Probability of the foreground of {case.name} {after}",
            tiles.heat(1 - posterior[0], tiles.PROBABILITY_MAP),
        )
    ]  # fmt: skip
    for rater, right in list(zip(model.raters_, confidences))[:MOST_RATERS]:
        note = f"mean {percent(float(right.mean()))}"
        alt = f"Confidence in {rater} on {case.name} {after}, {note}"
        made.append(Tile(case.index, rater, note, alt, tiles.heat(right, tiles.PROBABILITY_MAP, labels)))
    return Strip(case.name, recurrence, made)
