"""The templates of the pages, and the filters that they use."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from annotruth.reporting import words


def make_environment() -> Environment:
    """Templates of this folder."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,  # names come from users' files: nothing reaches the page unescaped
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        percent=lambda share: words.unbroken(words.percent(share)),
        unbroken=words.unbroken,
        number=words.number,
        short=words.short,
        heading=words.heading,
        score=words.score,
    )
    return environment
