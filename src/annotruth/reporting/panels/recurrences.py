"""How the estimate, and the confidence in each rater, change from one recurrence to the next: strips of pictures.

Asks of the model ``settings_["options"]["recurrences"]``, ``predict_proba(images, recurrence=)`` and
``rater_confidences_(image, recurrence=)``.
"""

from __future__ import annotations

from dataclasses import dataclass

from annotruth.reporting import tiles
from annotruth.reporting.case_statistics import Case
from annotruth.reporting.gallery import MOST_RATERS, Gallery, Tile
from annotruth.reporting.model import spacing_of
from annotruth.reporting.panels import Page, Panel, panel
from annotruth.reporting.words import percent

MOST_CASES = 2


@dataclass(frozen=True)
class Strip:
    """One case after one recurrence: the estimate, then each rater's confidence."""

    case: str
    recurrence: int
    tiles: list[Tile]


@panel("recurrences")
def recurrences(page: Page) -> Panel | None:
    """Strips of a few cases, recurrence after recurrence."""
    gallery, count = page.gallery, page.model.settings_["options"]["recurrences"]
    if gallery is None:
        return None
    strips = [_strip(gallery, case, number) for case in page.cases[:MOST_CASES] for number in range(count)]
    html = page.render("recurrences.html.j2", strips=strips)
    return Panel("recurrences", "From one recurrence to the next", html, in_contents="Recurrences")


def _strip(gallery: Gallery, case: Case, recurrence: int) -> Strip:
    model = gallery.model
    view, image = gallery.view(case.index), gallery.ann.item_image(case.index)
    asked = {"recurrence": recurrence, **spacing_of(gallery.ann, case.index)}
    posterior = tiles.cut(model.predict_proba(image[None], **asked)[0], view.plane)
    confidences = tiles.cut(model.rater_confidences_(image, **asked), view.plane)  # type: ignore[attr-defined]
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
