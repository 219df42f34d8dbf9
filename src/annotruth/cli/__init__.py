"""The command line: one verb per job. Heavy imports happen inside the verbs, so that help answers at once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import Annotated

import typer

from annotruth import __version__
from annotruth.cli.check import check
from annotruth.cli.compare import compare
from annotruth.cli.demo import demo
from annotruth.cli.export import export
from annotruth.cli.fetch import fetch
from annotruth.cli.fuse import fuse
from annotruth.cli.import_ import import_
from annotruth.cli.next_ import next_
from annotruth.cli.plan import plan
from annotruth.cli.predict import predict
from annotruth.cli.printing import plain_warnings, say
from annotruth.cli.report import report
from annotruth.cli.reproduce import reproduce
from annotruth.cli.serve import serve
from annotruth.cli.simulate import simulate
from annotruth.cli.train import train
from annotruth.errors import AnnotruthError, InputError
from annotruth.parallel.signals import Stopped, ending_on_signals

__all__ = ["app", "main"]


def _make_app() -> typer.Typer:
    return typer.Typer(
        name="annotruth",
        help="Learn the truth from annotators who disagree.",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


app = _make_app()


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"annotruth {__version__}")
        raise typer.Exit()


@app.callback(epilog="Add --debug to any command for the full traceback of an error.")
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Learn the truth from annotators who disagree."""


EXAMPLES: dict[Callable[..., None], str] = {
    demo: "demo -o runs/demo",
    check: "check cases/",
    fetch: "fetch stare -o stare/",
    import_: "import annotations.xml -o cases/",
    fuse: "fuse cases/ --method staple -o fused/",
    export: "export fused/ --to label-studio -o back/",
    simulate: "simulate digits/ -o cases/ --raters good,over,under,wrong,blank --keep 1",
    plan: "plan cases/ -o plan.json",
    train: "train cases/ --method pixel-cm -o runs/first",
    compare: "compare cases/ -o compared/",
    predict: "predict runs/first new_images/ -o labelled/",
    next_: "next labels.csv --budget 100 -o queue.csv",
    serve: "serve cases/ --rater ann",
    report: "report runs/first",
    reproduce: "reproduce zhang2020-mnist --quick",
}
"""The verbs, in the order in which help lists them."""

VERBS = {verb.__name__.rstrip("_"): verb for verb in EXAMPLES}


def _add(name: str, to: typer.Typer) -> None:
    verb = VERBS[name]
    to.command(name, epilog=f"Example:  annotruth {EXAMPLES[verb]}")(verb)


for name in VERBS:
    _add(name, to=app)


def _run(arguments: list[str]) -> None:
    """Run one verb alone if it is named: preparing all of them takes longer than many a job."""
    if not arguments or arguments[0] not in VERBS:
        app(arguments)
    name, *arguments = arguments
    alone = _make_app()
    _add(name, to=alone)
    alone(arguments, prog_name=f"annotruth {name}")


def main() -> None:
    """Run the command line.

    Exit codes: 0 good, 1 the job failed, 2 wrong use or bad input; 130, 143 and 129 if Ctrl-C, a cluster (SIGTERM) or
    a terminal that was closed (SIGHUP) ended it.
    """
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    if not debug:
        plain_warnings()
    for stream in (sys.stdout, sys.stderr):  # file names need not be text that a screen can show
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with ending_on_signals():
            _run(arguments)
    except AnnotruthError as error:
        if debug:
            raise
        say("bold red", "error", str(error))
        sys.exit(2 if isinstance(error, InputError) else 1)
    except OSError as error:
        if debug:
            raise
        say("bold red", "error", f"{error.filename or 'A file'}: {error.strerror or error}.")
        sys.exit(1)
    except (KeyboardInterrupt, SystemExit) as ended:
        stopped = _find_stopped(ended)
        if stopped is None:
            raise
        say("bold yellow", "stopped", f"{stopped} {stopped.hint}".strip())
        sys.exit(stopped.exit_code)


def _find_stopped(error: BaseException | None) -> Stopped | None:
    """The request to end behind an exception: Typer, too, turns one into an exit of its own."""
    while error is not None and not isinstance(error, Stopped):
        error = error.__cause__ or error.__context__
    return error
