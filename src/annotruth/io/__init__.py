"""Read annotations from files and write results back in the same format."""

from __future__ import annotations

from annotruth.io.atomic import atomic, fresh_folder

__all__ = ["atomic", "fresh_folder"]
