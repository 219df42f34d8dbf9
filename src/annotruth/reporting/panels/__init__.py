"""Panels that only some methods have in the report, one file each; a method declares its own by their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from annotruth.data.annotations import Annotations
from annotruth.reporting import tiles
from annotruth.reporting.case_statistics import Case
from annotruth.reporting.gallery import Gallery
from annotruth.reporting.model import Model
from annotruth.validation import one_of


@dataclass(frozen=True)
class Panel:
    """A section of the report.

    Attributes
    ----------
    anchor : its place in the page, as in ``#anchor``;  title : its heading
    html : what stands below the heading, escaped where it came from others
    in_contents : its word in the list of contents; without one it is not listed
    """

    anchor: str
    title: str
    html: Markup
    in_contents: str = ""


@dataclass(frozen=True)
class Page:
    """What a panel draws from.

    Attributes
    ----------
    gallery : draws the cases; None in the report on a label table
    cases : those to show, most disputed first
    """

    model: Model
    ann: Annotations
    gallery: Gallery | None
    cases: Sequence[Case]
    environment: Environment

    def render(self, template: str, **values: Any) -> Markup:
        """Fill in a template of this folder. It knows ``ann``, ``tiles`` and ``views``, which its macros need."""
        views = {} if self.gallery is None else self.gallery.views
        page = self.environment.get_template(f"panels/{template}")
        # Safe, since the environment has escaped every value on its way in.
        return Markup(page.render(ann=self.ann, tiles=tiles, views=views, **values))


PANELS: dict[str, Callable[[Page], Panel | None]] = {}
"""What makes a panel, by the name that methods declare; it gives None where there is nothing to show."""


def panel(name: str) -> Callable[[Callable[[Page], Panel | None]], Callable[[Page], Panel | None]]:
    """Register what makes a panel under a name."""

    def register(make: Callable[[Page], Panel | None]) -> Callable[[Page], Panel | None]:
        PANELS[name] = make
        return make

    return register


def panels_of(page: Page) -> list[Panel]:
    """Make the panels that the model's method declares, in its order."""
    names = [one_of(name, sorted(PANELS), "report panel") for name in getattr(page.model, "report_panels_", ())]
    return [made for made in (PANELS[name](page) for name in names) if made is not None]


for _module in sorted(found.name for found in iter_modules(__path__)):
    import_module(f"{__name__}.{_module}")
