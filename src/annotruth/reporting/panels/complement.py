"""What raters say is not there, given what they take a pixel for: the matrix M of coarse drawings.

Asks of the model ``complement_`` (classes, classes), or None.
"""

from __future__ import annotations

from annotruth.reporting.panels import Page, Panel, panel


@panel("complement")
def complement(page: Page) -> Panel | None:
    """The matrix as a table; nothing where nobody drew what is not there."""
    shares = page.model.complement_  # type: ignore[attr-defined]
    if shares is None or not page.ann.has_negatives:
        return None
    return Panel("complement", "What is said not to be there", page.render("complement.html.j2", complement=shares))
