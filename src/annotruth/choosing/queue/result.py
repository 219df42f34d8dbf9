"""The queue: who is asked to label what, why, what it is expected to bring, and when to stop; and its files."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from annotruth.choosing.queue.advice import Unsettled
from annotruth.choosing.queue.greedy import Order
from annotruth.choosing.queue.posteriors import ItemPosteriors
from annotruth.errors import InputError
from annotruth.io.names import to_cell
from annotruth.io.writing import atomic

COLUMNS = ("rank", "action", "item", "rater", "gain", "cost", "gain per cost", "reason")
GOLD_COLUMNS = ("rank", "item", "rater", "truth")
HARDLY = 1 / 20
"""Labels no longer pay when they set right less than this share of what the best ones do, per cost."""
MAX_ADVICE = 1000
"""Rows at most of items for an expert, and of items to drop."""
_MAX_POINTS = 1000
_Z = 1.959964  # 95 % of a normal distribution lie within so many standard deviations


@dataclass(frozen=True)
class Queue:
    """What to label next.

    Attributes
    ----------
    table : a row for each label to be asked for, the most worthwhile first (action "label"); then items for an expert
        ("ask an expert") and hopeless ones ("drop"), those in most doubt first. Gains are in nats: what the label is
        expected to tell about the truth, given the rows above; for an expert, all that is not known
    curve : accuracy expected when so many labels are bought: labels, cost, accuracy, and between low and high with a
        probability of 95 %
    pays_until : how many labels to buy before they hardly pay any more
    experts, hopeless : names of the items
    summary : all this in sentences
    gold : rows of the table that are hidden gold: rank, item, rater and truth
    """

    table: pd.DataFrame
    curve: pd.DataFrame
    pays_until: int
    experts: tuple[str, ...]
    hopeless: tuple[str, ...]
    summary: tuple[str, ...]
    gold: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(GOLD_COLUMNS)))

    def __len__(self) -> int:
        """How many labels are to be asked for."""
        return int((self.table["action"] == "label").sum())

    def write(self, path: str | Path) -> list[Path]:
        """Write the queue as CSV, its curve as ``<name>.curve.csv`` and ``.curve.png`` beside it; give the files.

        Where items of known truth are hidden in it, ``<name>.gold.csv`` tells which.
        """
        path = Path(path)
        if path.suffix.lower() != ".csv":
            raise InputError(f"{path}: a queue is written as CSV; give it a name that ends in .csv.")
        curve = path.with_suffix(".curve.csv")
        _write_csv(path, self.table)
        _write_csv(curve, self.curve)
        files = [path, curve, draw_curve(path.with_suffix(".curve.png"), self)]
        if len(self.gold):
            files.append(path.with_suffix(".gold.csv"))
            _write_csv(files[-1], self.gold)
        return files


def make_queue(
    known: ItemPosteriors,
    orders: Sequence[Order],
    unsettled: Unsettled,
    budget: float,
    labelled: np.ndarray,
    gold: Mapping[int, str] | None = None,
) -> Queue:
    """Put a queue together.

    Parameters
    ----------
    labelled : (raters,) how many items or pixels each labelled
    gold : the truth, by place among the orders, of those that are hidden gold
    """
    gold = gold or {}
    hidden = [(at + 1, known.items[orders[at].item], known.raters[orders[at].rater], gold[at]) for at in sorted(gold)]
    experts, hopeless = (tuple(known.items[one] for one in found) for found in (unsettled.experts, unsettled.hopeless))
    curve, right = _curve(known, orders)
    until = pays_until(right, np.array([order.cost for order in orders]))
    return Queue(
        table=_table(known, orders, unsettled, labelled), curve=curve, pays_until=until, experts=experts,
        hopeless=hopeless, gold=pd.DataFrame(hidden, columns=list(GOLD_COLUMNS)),
        summary=(
            *_summary(known, orders, right, curve, until, budget, experts, hopeless),
            *([f"Hidden gold, items of known truth, is among them: {_many(len(gold), 'label')}."] if gold else []),
        ),
    )  # fmt: skip


def pays_until(right: np.ndarray, cost: np.ndarray) -> int:
    """How many labels to buy before what they set right, per cost, falls below ``HARDLY`` of the most and stays there.

    Parameters
    ----------
    right, cost : (labels,) items (or pixels) that each is expected to set right, and what it costs

    Notes
    -----
    Means over a twentieth of the labels, ten at least, are compared: the first label that contradicts no other sets
    nothing right by itself, though the next one does because of it.

    Examples
    --------
    >>> pays_until(np.repeat([0.4, 0.001], 50), np.ones(100))
    50
    """
    if not len(right):
        return 0
    width = min(len(right), max(10, len(right) // 20))
    window = np.ones(width)
    slope = np.convolve(right, window, "valid") / np.convolve(cost, window, "valid")
    if slope.max() <= 0:
        return 0
    last = int(np.flatnonzero(slope >= HARDLY * slope.max())[-1])
    return len(right) if last == len(slope) - 1 else last + 1


def _table(known: ItemPosteriors, orders: Sequence[Order], unsettled: Unsettled, labelled: np.ndarray) -> pd.DataFrame:
    asked: dict[int, list[str]] = {}
    rows: list[tuple[object, ...]] = []
    for order in orders:
        rater = known.raters[order.rater]
        reason = f"{known.describe(order.item)}; {describe_rater(known, order.item, order.rater, labelled)}"
        before = asked.setdefault(order.item, [])
        if before:
            reason += f"; in addition to {', '.join(before)}"
        before.append(rater)
        rows.append(("label", known.items[order.item], rater, order.gain, order.cost, order.gain / order.cost, reason))
    for item in unsettled.experts[:MAX_ADVICE]:
        reason = f"{known.describe(int(item))}; no rater who could still be asked would take away much of the doubt"
        rows.append(("ask an expert", known.items[item], "", unsettled.doubt[item], np.nan, np.nan, reason))
    for item in unsettled.hopeless[:MAX_ADVICE]:
        reason = (
            f"{known.describe(int(item))}; as little is known of it as before anybody labelled it, and everybody who "
            "could still be asked would not change that"
        )
        rows.append(("drop", known.items[item], "", 0.0, np.nan, np.nan, reason))
    table = pd.DataFrame(rows, columns=list(COLUMNS[1:]))
    table.insert(0, "rank", np.arange(1, len(table) + 1))
    return table


def describe_rater(known: ItemPosteriors, item: int, rater: int, labelled: np.ndarray) -> str:
    """Say why this rater: how often they are right on the classes that the item may be."""
    name, rows = known.raters[rater], slice(known.first_row[item], known.first_row[item + 1])
    if not labelled[rater]:
        return f"{name} has labelled nothing yet and is taken for an average rater"
    mean = known.posterior[rows].T @ known.weight[rows]
    leading = np.argsort(-mean, kind="stable")[:2]
    told = [f"{known.confusion[rater, one, one]:.0%} of {known.classes[one]}" for one in leading.tolist()]
    return f"{name} recognises {' and '.join(told)}"


def _curve(known: ItemPosteriors, orders: Sequence[Order]) -> tuple[pd.DataFrame, np.ndarray]:
    """Expected accuracy with its band; and what each label is expected to set right (labels,)."""
    best = known.posterior.max(axis=1, initial=0)
    right = np.array([order.right for order in orders])
    expected = known.sure + float(best @ known.size) + np.concatenate([[0.0], np.cumsum(right)])
    # Rows of masks stand for many pixels that are right or wrong together, in so many pieces.
    each = best * (1 - best) * np.divide(known.size**2, known.pieces, where=known.pieces > 0, out=np.zeros(len(best)))
    variance = each.sum() + np.concatenate([[0.0], np.cumsum([order.spread for order in orders])])
    accuracy, spread = expected / known.total, _Z * np.sqrt(np.maximum(variance, 0)) / known.total
    cost = np.concatenate([[0.0], np.cumsum([order.cost for order in orders])])
    kept = np.unique(np.linspace(0, len(orders), min(len(orders) + 1, _MAX_POINTS + 1)).round().astype(int))
    curve = {
        "labels": kept, "cost": cost[kept], "accuracy": accuracy[kept],
        "low": np.clip(accuracy - spread, 0, 1)[kept], "high": np.clip(accuracy + spread, 0, 1)[kept],
    }  # fmt: skip
    return pd.DataFrame(curve), right


def _summary(
    known: ItemPosteriors,
    orders: Sequence[Order],
    right: np.ndarray,
    curve: pd.DataFrame,
    until: int,
    budget: float,
    experts: Sequence[str],
    hopeless: Sequence[str],
) -> list[str]:
    now, then = curve.iloc[0], curve.iloc[-1]
    thing = "items" if known.votes is not None else "pixels"
    said = []
    if orders:
        items, raters = len({order.item for order in orders}), len({order.rater for order in orders})
        said.append(
            f"{_many(len(orders), 'label')} of {_many(items, 'item')} by {_many(raters, 'rater')}, at a cost of "
            f"{then['cost']:g}. Expected accuracy: {now['accuracy']:.4f} now, {then['accuracy']:.4f} then "
            f"({then['low']:.4f} – {then['high']:.4f})."
        )
        per_label = 100 * right[:until].sum() / max(until, 1)
        if until < len(orders):
            rest = 100 * right[until:].sum() / (len(orders) - until)
            said.append(
                f"After {_many(until, 'label')}, more hardly pay: up to there, 100 labels set {_amount(per_label)} "
                f"{thing} right, thereafter {_amount(rest)}."
            )
        else:
            said.append(f"Labels still pay at the end: 100 of them set {_amount(per_label)} {thing} right.")
    else:
        said.append("No label that could be asked for would tell anything: there is nothing left to buy.")
    if orders and then["cost"] < budget - min(order.cost for order in orders):
        said.append(f"Of the budget, {budget - then['cost']:g} is left: nobody who could be asked would tell more.")
    if experts:
        said.append(f"{_many(len(experts), 'item')} no rater can settle: ask an expert.")
    if hopeless:
        said.append(f"{_many(len(hopeless), 'item')} of which labels tell as much as nothing: drop them.")
    return said


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def draw_curve(path: Path, queue: Queue) -> Path:
    """Draw expected accuracy against cost, with its band and where labels cease to pay."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    curve = queue.curve
    axes.fill_between(curve["cost"], curve["low"], curve["high"], color="#3b6ea5", alpha=0.2, linewidth=0)
    axes.plot(curve["cost"], curve["accuracy"], color="#3b6ea5")
    if 0 < queue.pays_until < len(queue):
        cost = float(np.interp(queue.pays_until, curve["labels"], curve["cost"]))
        axes.axvline(cost, color="grey", linestyle="--", linewidth=1)
        axes.annotate("more hardly pays", (cost, axes.get_ylim()[0]), rotation=90, va="bottom", ha="right", fontsize=8)
    axes.set(xlabel="cost of the labels bought", ylabel="expected accuracy")
    axes.spines[["top", "right"]].set_visible(False)
    with atomic(path) as temporary:
        figure.savefig(temporary, dpi=150, format="png")
    return path


def _write_csv(path: Path, table: pd.DataFrame) -> None:
    with atomic(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.columns)
        for row in table.itertuples(index=False):
            writer.writerow([_cell(value) for value in row])


def _cell(value: object) -> object:
    if isinstance(value, str):
        return to_cell(value)
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.6g}"
    return value
