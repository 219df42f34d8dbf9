"""The command line: one verb per job. Heavy imports happen inside the verbs, so that help answers at once."""

from __future__ import annotations

import sys

import typer

from annotruth.errors import AnnotruthError, InputError

app = typer.Typer(
    name="annotruth",
    help="Learn the truth from annotators who disagree.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def common() -> None:
    """Learn the truth from annotators who disagree."""


def main() -> None:
    """Run the command line. Exit codes: 0 good, 1 the job failed, 2 wrong use or bad input."""
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        app(arguments)
    except AnnotruthError as error:
        if debug:
            raise
        from rich.console import Console

        Console(stderr=True).print(f"[bold red]error:[/] {error}", highlight=False, soft_wrap=True)
        sys.exit(2 if isinstance(error, InputError) else 1)
    except KeyboardInterrupt:
        sys.exit(130)
