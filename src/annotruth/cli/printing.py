"""What the command line prints: results to standard output, warnings, errors and progress to standard error."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich import markup
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    import pandas as pd

    from annotruth.choosing import Comparison, Queue

screen = Console(soft_wrap=True)  # a path or a command broken over two lines cannot be copied


@contextmanager
def progress_bar(quiet: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar, if anybody looks; give what is to be told the work at hand, how much of it is done, and how much."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task("Reading", total=None)
        yield lambda work, done, total: bar.update(task, description=work, completed=done, total=total)


def print_raters(ranked: Mapping[str, Any] | pd.DataFrame, most: int = 20) -> None:
    """Print a ranking, a data frame or its columns by name."""
    table = Table("rank", "rater", "skill", "95 % interval", "most frequent error", title="Raters, most skilful first")
    names = ("rank", "best_rank", "worst_rank", "rater", "skill", "low", "high", "labelled", "error")
    shown = zip(*(ranked[name][:most] for name in names))
    for rank, best, worst, rater, skill, low, high, labelled, error in shown:
        between = "" if best == worst else f" ({best}–{worst})"
        said = error if labelled else "labelled nothing"
        table.add_row(f"{rank}{between}", escape(rater), f"{skill:.3f}", f"{low:.3f} – {high:.3f}", escape(said))
    screen.print(table)
    if len(ranked["rater"]) > most:
        screen.print(f"… and {len(ranked['rater']) - most} more.")


def print_frame(frame: pd.DataFrame, title: str, most: int = 20) -> None:
    """Print a data frame, numbers to three places."""
    table = Table(*(escape(name) for name in frame.columns), title=title)
    for row in frame.head(most).round(3).to_dict("records"):
        table.add_row(*(escape(value) for value in row.values()))
    screen.print(table)
    if len(frame) > most:
        screen.print(f"… and {len(frame) - most} more.")


def print_comparison(found: Comparison) -> None:
    """A table of the methods that were compared, and which to take."""
    rows = found.table
    table = Table(title="Methods on held-out items, the best first")
    table.add_column("method")
    heads = {"message": "nats per item", "behind": "behind the best", "shorter": "shorter than without"}
    heads |= {"agreement": "agreement of seeds", found.score_name: found.score_name, "seconds": "seconds"}
    for head in (heads[name] for name in heads if name in rows):
        table.add_column(head, justify="right")
    for row in rows.to_dict("records"):
        written = {
            "message": f"{row['message']:.{found.digits}f}",
            "behind": f"{row['behind']:.{found.digits}f} ± {row['behind_error']:.{found.digits}f}"
            if row["behind"]
            else "–",
            "shorter": f"{row['shorter']:.0%}",
            "agreement": f"{row.get('agreement', 0):.3f}",
            found.score_name: f"{row.get(found.score_name, 0):.3f}",
            "seconds": f"{row['seconds']:.1f}",
        }
        style = "bold" if row["recommended"] else None
        table.add_row(escape(row["method"]), *[written[name] for name in heads if name in rows], style=style)
    screen.print(table)
    for sentence in found.advice:
        screen.print(escape(sentence), highlight=False)


def print_queue(queue: Queue, most: int = 10) -> None:
    """The first labels to ask for, and what all of them are expected to bring."""
    table = Table("rank", "item", "rater", "gain", "cost", "reason", title="Labels to ask for, the most telling first")
    for row in queue.table[queue.table["action"] == "label"].head(most).to_dict("records"):
        numbers = f"{row['gain']:.3g}", f"{row['cost']:g}"
        table.add_row(str(row["rank"]), escape(row["item"]), escape(row["rater"]), *numbers, escape(row["reason"]))
    if len(queue):
        screen.print(table)
    if len(queue) > most:
        screen.print(f"… and {len(queue) - most} more.")
    for sentence in queue.summary:
        screen.print(escape(sentence), highlight=False)


def escape(value: object) -> str:
    """Give a name or message of a user's as markup in which nothing is taken for a colour."""
    return markup.escape(str(value)) if value is not None else ""


def say(style: str, word: str, text: str) -> None:
    """Tell something that is no result: a warning, an error."""
    if os.environ.get("LOCAL_RANK", "0") != "0":
        return  # of the processes on this machine that train together, one speaks
    Console(stderr=True).print(f"[{style}]{word}:[/] {escape(text)}", highlight=False, soft_wrap=True)


def plain_warnings() -> None:
    """Show warnings as a sentence, without the line of code that gave them."""
    import warnings

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if category.__module__.startswith("annotruth"):
            say("bold yellow", "warning", str(message))

    warnings.showwarning = show
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
