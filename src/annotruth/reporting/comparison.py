"""A comparison of methods on disk: a table for programs, a plot, and a page for people.

OUT/compare.csv    a row for each method, the best first
OUT/compare.json   the same, with the advice in words, pairwise differences and each item's scores
OUT/compare.png    by how much methods are behind the best
OUT/compare.html   all of it on one page
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from annotruth import __version__
from annotruth.choosing import Comparison
from annotruth.choosing.verdict import ALIKE
from annotruth.io import atomic
from annotruth.reporting.content import versions
from annotruth.reporting.figures import EMPHASIS, INK, PLAIN, STYLE, svg
from annotruth.reporting.templates import make_environment
from annotruth.reporting.words import short

TABLE, RECORD, PLOT, PAGE = "compare.csv", "compare.json", "compare.png", "compare.html"


def write_comparison(comparison: Comparison, folder: str | Path) -> Path:
    """Write ``compare.csv``, ``.json``, ``.png`` and ``.html`` into a folder; give the path of the page.

    Examples
    --------
    >>> import tempfile
    >>> scores = np.array([[3.0, 4.0, 3.0], [5.0, 7.0, 4.0]])
    >>> found = Comparison(
    ...     "masks", ("a", "b", "c"), None, ("majority", "staple"), 3, 1, np.ones(3, bool), scores, np.full(3, 9.0),
    ...     np.zeros(2, bool), None, None, np.array([1.0, 2.0]), {},
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_comparison(found, folder)
    ...     sorted(path.name for path in page.parent.iterdir())
    ['compare.csv', 'compare.html', 'compare.json', 'compare.png']
    """
    folder = Path(folder)
    with atomic(folder / TABLE) as temporary:
        comparison.table.to_csv(temporary, index=False)
    with atomic(folder / RECORD) as temporary:
        temporary.write_text(json.dumps(record(comparison), indent=1, default=str) + "\n", encoding="utf-8")
    with atomic(folder / PLOT) as temporary, matplotlib.rc_context(STYLE):
        chart(comparison).savefig(temporary, dpi=130, facecolor="white")
    with atomic(folder / PAGE) as temporary:
        temporary.write_text(_page(comparison), encoding="utf-8")
    return folder / PAGE


def record(comparison: Comparison) -> dict[str, Any]:
    """All that was found, as plain values; what is not known is None."""
    mean, error = comparison.length_differences()
    verdict = comparison.verdict
    found: dict[str, Any] = {
        "annotruth": __version__,
        "kind": comparison.kind,
        "folds": comparison.folds,
        "seeds": comparison.seeds,
        "settings": comparison.settings,
        "advice": comparison.advice,
        "verdict": {**vars(verdict), "lead": _plain(np.array(verdict.lead))},
        "methods": [
            {name: _plain(np.asarray(value)) for name, value in row.items()}
            for row in comparison.table.to_dict("records")
        ],
        "pairwise": {"methods": comparison.methods, "nats_per_item": _plain(mean), "standard_error": _plain(error)},
        "warnings": comparison.warned,
        "items": {
            "item": comparison.items,
            "nats": dict(zip(comparison.methods, map(_plain, comparison.lengths))),
            "nats_without_prediction": _plain(comparison.baseline),
        },
    }
    known = comparison.known_differences()
    if known is not None and comparison.known is not None:
        name = comparison.score_name
        found["pairwise"] |= {name: _plain(known[0]), f"{name}_standard_error": _plain(known[1])}
        found["items"][name] = dict(zip(comparison.methods, map(_plain, comparison.known)))
    return found


def _plain(values: np.ndarray) -> Any:
    """Numbers as JSON has them, in which there is neither nan nor infinity."""
    if values.dtype.kind != "f":
        return values.tolist()
    plain = values.astype(object)
    plain[~np.isfinite(values)] = None
    return plain.tolist()


def chart(comparison: Comparison) -> Figure:
    """How far methods are behind the best, with standard errors, and beside it what else was measured."""
    table = comparison.table
    columns = [name for name in ("agreement", comparison.score_name) if name in table]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4.6 + 2.3 * len(columns), 1.0 + 0.34 * len(table)), layout="constrained")
        first, *others = figure.subplots(1, 1 + len(columns), squeeze=False, width_ratios=[2, *[1] * len(columns)])[0]
        colours = [EMPHASIS if taken else PLAIN for taken in table["recommended"]]
        places = np.arange(len(table))
        errors = np.where(np.isfinite(table["behind_error"]), table["behind_error"], 0.0)
        first.errorbar(table["behind"], places, xerr=ALIKE * errors, fmt="none", ecolor=INK, elinewidth=1, capsize=2)
        first.scatter(table["behind"], places, color=colours, s=34, zorder=3)
        first.set_title("Nats per item more than the best ↓")
        first.set_yticks(places, [short(name, 18) for name in table["method"]])
        for panel, name in zip(others, columns):
            panel.scatter(table[name], places, color=colours, s=34, zorder=3)
            panel.set_title(f"{_HEADINGS[name]} ↑")
            panel.set_yticks(places, [""] * len(table))
        for panel in (first, *others):
            _finish(panel, len(table))
        return figure


def _finish(panel: Axes, rows: int) -> None:
    panel.set_ylim(rows - 0.5, -0.5)
    panel.margins(x=0.12)


_HEADINGS = {"agreement": "Agreement of seeds", "dice": "Dice, known truth", "accuracy": "Accuracy, known truth"}


def _page(comparison: Comparison) -> str:
    mean, error = comparison.length_differences()
    with matplotlib.rc_context(STYLE):
        picture = svg(chart(comparison))
    return make_environment().get_template("comparison.html.j2").render(
        comparison=comparison,
        verdict=comparison.verdict,
        advice=comparison.advice,
        table=comparison.table.to_dict("records"),
        columns=[(name, _HEADINGS[name]) for name in ("agreement", comparison.score_name) if name in comparison.table],
        pairs=list(zip(comparison.methods, mean.tolist(), error.tolist())),
        chart=picture,
        settings={
            "folds": comparison.folds, "seeds": comparison.seeds,
            **{name: str(value) for name, value in comparison.settings.items()},
        },
        versions=versions(),
        written=datetime.now().astimezone(),
    )  # fmt: skip
