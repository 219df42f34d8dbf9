"""annotruth fetch: a published data set, from where its owners keep it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from annotruth.cli.options import Quiet
from annotruth.cli.printing import escape, progress_bar, screen


def fetch(
    name: Annotated[Optional[str], typer.Argument(help="Which data set; without a name, all are listed.")] = None,
    output: Annotated[
        Optional[Path], typer.Option("--output", "-o", help="Folder for its files; by default its name.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Fetch a published data set, or say where to register for it and what to put where.

    Files are compared with their checksums where these are known, and a broken download is gone on with by calling
    again.
    """
    from annotruth.io.published import PUBLISHED
    from annotruth.io.published import fetch as fetch_data
    from annotruth.parallel.signals import hint_if_stopped

    if name is None:
        for key, known in PUBLISHED.items():
            compared = all(archive.checksum for archive in known.archives)
            how = " (by hand)" if not known.archives else "" if compared else " (no checksum is known)"
            screen.print(f"{key}{how}: {escape(known.title)}", highlight=False)
        return
    folder = output or Path(name)
    hint = "What was fetched is kept: the same command goes on from there."
    with hint_if_stopped(lambda: hint), progress_bar(quiet) as tell:
        for sentence in fetch_data(name, folder, tell):
            screen.print(f"Fetched {escape(sentence)}", highlight=False)
    known = PUBLISHED[name]
    screen.print(f"{escape(known.terms)} {escape(known.page)}", highlight=False)
    screen.print(f"Next: annotruth import {escape(folder)} -o cases/", highlight=False)
