"""What methods ask of their options, refused in the same words by all of them."""

from __future__ import annotations

from typing import Any

from annotruth.errors import InputError


def check_at_least(least: int, **options: int) -> None:
    """Refuse whole numbers that are too small, by name.

    Examples
    --------
    >>> check_at_least(1, latent=6, samples=16)
    """
    for option, value in options.items():
        if value < least:
            raise InputError(f"{option} must be at least {least}, not {value}.")


def check_not_negative(**options: Any) -> None:
    """Refuse weights below 0, by name.

    Examples
    --------
    >>> check_not_negative(beta=1.0)
    """
    for option, value in options.items():
        if value < 0:
            raise InputError(f"{option} must not be negative, as {value} is.")
