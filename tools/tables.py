"""Tables in the documentation that follow from the code: `python -m tools.tables` writes them anew.

A table stands between two comments, ``<!-- table: NAME -->`` and ``<!-- end of table -->``. A test fails when one is
stale.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from importlib import import_module
from pathlib import Path

from annotruth.fusion.other_answers import make_model, model_names
from annotruth.fusion.registry import make_estimator, method_names
from annotruth.io import SOURCES
from annotruth.io.exports import EXPORTS
from annotruth.io.sources.imports import ImportSource
from annotruth.methods import METHODS
from annotruth.methods.registry import TASKS

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/reference/methods.md", "docs/how-to/import.md")
TABLE = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
KINDS = ("confusion", "em", "two_stage", "multi_rater", "strokes", "bounds")
"""Folders of ``annotruth.methods``, in the order in which tables show them."""
WORDS = {("masks",): "masks", ("labels",): "label tables", ("masks", "labels"): "both"}


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; a bar inside a cell would end it, and is escaped."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def first_sentence(thing: object) -> str:
    """What a docstring says first, as Markdown."""
    return as_markdown((inspect.getdoc(thing) or "").split("\n\n")[0])


def as_markdown(text: str) -> str:
    """Words of a docstring as a table's cell has them: on one line, names in code's letters.

    Examples
    --------
    >>> as_markdown(":class:`IBCC` whose   prior is ``learnt``")
    '`IBCC` whose prior is `learnt`'
    """
    return re.sub(r":\w+:`", "`", " ".join(text.split())).replace("``", "`")


def _methods() -> list[tuple[str, tuple[str, ...], type]]:
    """Every form of a method with its name and tasks, by kind and name; one form may serve both tasks."""
    forms: dict[type, tuple[str, list[str]]] = {}
    for task in TASKS:
        for (name, served), method in METHODS.items():
            if served == task:
                forms.setdefault(method, (name, []))[1].append(task)
    order = {kind: number for number, kind in enumerate(KINDS)}
    listed = [(name, tuple(tasks), method) for method, (name, tasks) in forms.items()]
    return sorted(listed, key=lambda form: (order[_kind(form[2])], form[0], form[1]))


def _kind(method: type) -> str:
    return method.__module__.split(".")[2]


def methods_in_short() -> str:
    """For the README: one line per kind."""
    rows = []
    for kind in KINDS:
        folder = import_module(f"annotruth.methods.{kind}")
        names = dict.fromkeys(f"`{name}`" for name, _, method in _methods() if _kind(method) == kind)
        rows.append([first_sentence(folder).rstrip("."), ", ".join(names)])
    return markdown(["kind", "methods"], rows)


def methods_in_full() -> str:
    """For the reference: what each learns and where it comes from, kind by kind."""
    parts = []
    for kind in KINDS:
        rows = [
            [f"`{name}`", WORDS[tasks], method.summary, first_sentence(method), method.paper]
            for name, tasks, method in _methods()
            if _kind(method) == kind
        ]
        title = first_sentence(import_module(f"annotruth.methods.{kind}")).rstrip(".")
        heads = ["method", "learns from", "what it learns", "its idea", "paper"]
        parts.append(f"### {title}\n\n{markdown(heads, rows)}")
    return "\n" + "\n".join(parts) + "\n"


def options() -> str:
    """For the reference: every option of every method, as its docstring explains it."""
    rows = []
    for name, tasks, method in _methods():
        forms = [tasks for other, tasks, _ in _methods() if other == name]
        label = f"`{name}`" if len(forms) == 1 else f"`{name}` ({WORDS[tasks]})"
        meanings = option_meanings(method)
        for field in fields(method):
            rows.append([label, f"`{field.name}`", f"`{field.default!r}`", meanings[field.name]])
            label = ""
    return markdown(["method", "option", "default", "what it is"], rows)


def option_meanings(method: type) -> dict[str, str]:
    """What the docstrings of a method and of those it derives from say of each option."""
    found: dict[str, str] = {}
    for cls in method.__mro__:
        _, _, listed = inspect.cleandoc(cls.__doc__ or "").partition("Options\n-------\n")
        for entry in re.findall(r"^(\w[\w, ]*) : (.+(?:\n +.+)*)", listed, re.MULTILINE):
            for name in entry[0].split(", "):
                found.setdefault(name, " ".join(entry[1].split()).replace("``", "`"))
    return found


def estimators_in_short() -> str:
    """For the README: label fusion."""
    return markdown(["estimator", "`--method`", "what it estimates"], [row[:3] for row in _estimators()])


def estimators() -> str:
    """For the reference: label fusion."""
    return markdown(["estimator", "`--method`", "what it estimates", "paper"], _estimators())


def _estimators() -> list[list[str]]:
    kinds = [(name, type(make_estimator(name))) for name in method_names()]
    return [[f"`{kind.__name__}`", f"`{name}`", first_sentence(kind), _reference(kind)] for name, kind in kinds]


def answer_models() -> str:
    """Fusion of answers that are no classes."""
    rows = []
    for name in model_names():
        model = type(make_model(name))
        takes = f"`{model.takes.__name__}`: {', '.join(model.takes.columns)}"
        rows.append([f"`{model.__name__}`", f"`{name}`", takes, first_sentence(model), _reference(model)])
    return markdown(["model", "`--method`", "takes", "what it estimates", "paper"], rows)


def _reference(estimator: type) -> str:
    """All that its docstring gives as its papers."""
    found = re.search(r"References\n-+\n((?:.+\n?)+)", inspect.getdoc(estimator) or "")
    return as_markdown(found[1]).rstrip(".") if found else "–"


HELD = ("image", "mask", "polygon", "box", "ellipse", "point", "class", "3D")
"""What a source may hold, in the order of the table's columns."""
BACK = {"cvat-tags": "cvat", "label-studio-choices": "label-studio"}
"""Exports that go by another key than the source they go back to."""


def sources() -> str:
    """What can be imported: what is read of it, where raters' names come from, and whether it can be written back."""
    rows = []
    for source in sorted(SOURCES.values(), key=lambda source: source.key):
        if isinstance(source, ImportSource):
            marks = ["✓" if what in source.held else "" for what in HELD]
            back = BACK.get(source.key, source.key)
            written = f"`{back}`" if back in EXPORTS else ""
            rows.append([f"`{source.key}`", _plain(source.description), *marks, source.identity, written])
    return markdown(["`--from`", "what it is", *HELD, "who the rater is", "`export --to`"], rows)


def _plain(text: str) -> str:
    """Text in which <rater> is not taken for HTML."""
    return text.replace("<", "&lt;").replace(">", "&gt;")


def source_options() -> str:
    """What `--option` takes, by the kind of source."""
    taken = [(source.key, *each) for source in SOURCES.values() for each in source.options.items()]
    return markdown(["`--from`", "`--option`", "what it is"], [[f"`{k}`", f"`{o}`", w] for k, o, w in sorted(taken)])


def exports() -> str:
    """What can be written."""
    rows = [
        [f"`{key}`", _plain(export.description), " and ".join(export.kinds)] for key, export in sorted(EXPORTS.items())
    ]
    return markdown(["`--to`", "what it is", "holds"], rows)


TABLES: dict[str, Callable[[], str]] = {
    "methods-in-short": methods_in_short,
    "methods": methods_in_full,
    "options": options,
    "estimators-in-short": estimators_in_short,
    "estimators": estimators,
    "answer-models": answer_models,
    "sources": sources,
    "source-options": source_options,
    "exports": exports,
}


def renewed(text: str) -> str:
    """A page with its tables made anew."""
    return TABLE.sub(lambda found: f"{found[1]}\n{TABLES[found['name']]().strip()}\n\n{found[3]}", text)


def stale() -> list[Path]:
    """Pages whose tables are not as the code says."""
    return [ROOT / page for page in PAGES if renewed((ROOT / page).read_text()) != (ROOT / page).read_text()]


def main() -> None:
    """Write tables anew, and say where."""
    for path in stale():
        path.write_text(renewed(path.read_text()))
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
