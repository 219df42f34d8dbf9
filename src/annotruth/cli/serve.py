"""annotruth serve: the desk, at which disputed cases are decided."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from annotruth.cli.options import Duplicates, Images
from annotruth.cli.printing import say, screen
from annotruth.errors import InputError

if TYPE_CHECKING:
    from annotruth.data.annotations import Annotations


def serve(
    cases: Annotated[
        Path, typer.Argument(metavar="CASES|RUN|TABLE", help="A case folder, a run's folder, or a label table.")
    ],
    output: Annotated[
        Optional[Path], typer.Option("--output", "-o", help="Folder for decisions; by default CASES-desk, beside it.")
    ] = None,
    rater: Annotated[
        Optional[list[str]], typer.Option(metavar="NAME", help="Print a link for this rater, to label their own queue.")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; any but this machine's own needs a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")] = 8765,
    replay: Annotated[
        bool, typer.Option("--replay", help="Make all decided labels anew from the log, and serve nothing.")
    ] = False,
    images: Images = None,
    duplicates: Duplicates = "error",
) -> None:
    """Decide disputed cases in a browser: see what everybody drew, accept, correct, ask; the fusion follows."""
    from annotruth.desk import Study, desk_folder
    from annotruth.desk import serve as start
    from annotruth.io.extras import need
    from annotruth.io.locks import only_writer

    if not replay:
        for module in ("starlette", "uvicorn"):  # before anything is read
            need(module, "desk")
    folder = output or desk_folder(cases)
    annotations, model, problems = _load(cases, images, duplicates)
    for problem in problems:
        say("bold red", "set aside", str(problem))
    if replay:
        if not folder.is_dir():
            raise InputError(f"{folder}: there is no desk; nothing was decided yet.")
        with only_writer(folder):
            study = Study(annotations, folder)
            for words in study.told:
                screen.print(words, markup=False)
            count, entries = study.rewrite(), len(study.journal.entries)
        screen.print(f"{entries} entries of {study.journal.path}: {count} labels written.", markup=False)
        return
    start(
        annotations, folder, title=cases.resolve().name, host=host, port=port, raters=tuple(dict.fromkeys(rater or ())),
        model=model, told=lambda words: screen.print(words, markup=False, soft_wrap=True),
    )  # fmt: skip


def _load(cases: Path, images: Path | None, duplicates: str) -> tuple[Annotations, Any, list[Any]]:
    """The labels, a run's model if it is one, and problems of cases that are set aside."""
    from annotruth.io import find_source, load

    if (cases / "run.json").is_file():
        from annotruth.training.ensemble import load_file
        from annotruth.training.runs import open_run

        if images is not None:
            raise InputError("--images goes with a label table; a run knows its own.")
        run = open_run(cases)
        return run.annotations(), load_file(run.model), []
    source = find_source(cases)
    if source.kind == "masks" and "truth" not in source.inputs and images is None:
        annotations, problems = source.load_sound(cases)
        return annotations, None, problems
    return load(cases, images=images, duplicates=duplicates), None, []
