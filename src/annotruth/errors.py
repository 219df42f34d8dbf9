"""What can go wrong, under names a caller can catch."""

from __future__ import annotations


class AnnotruthError(Exception):
    """A job failed; the message says what and, where possible, what to do about it."""


class InputError(AnnotruthError, ValueError):
    """The user's data or settings are wrong: the message names the file, item or rater and the way out."""


class AnnotruthWarning(UserWarning):
    """Base of every warning annotruth gives."""


class IdentifiabilityWarning(AnnotruthWarning):
    """The labels cannot tell the truth from the annotators' errors, or the estimate looks as if they could not."""


class DiffuseConfusionWarning(AnnotruthWarning):
    """The learnt matrices make raters out to be worse than their labels are: the trace weighs too much."""


class SmallImageWarning(AnnotruthWarning):
    """Images are smaller than the network can take, and are padded."""


class UnansweredClassWarning(AnnotruthWarning):
    """There is a class that nobody ever gave as an answer."""


class CopiesWarning(AnnotruthWarning):
    """Raters give the same answers, wrong ones too, as if they had copied them."""


class SpammerWarning(AnnotruthWarning):
    """Raters answer as if they did not look at the items."""


class NamesWarning(AnnotruthWarning):
    """Names of raters or classes differ by capitals and spaces only."""


class ContradictionWarning(AnnotruthWarning):
    """Some pixels are drawn both as a class and as not that class; they are ignored."""


def shorten(names: list[str] | tuple[str, ...], most: int = 5) -> str:
    """Join names for a message, cutting long lists: ``a, b, c and 7 more``."""
    shown = [str(name) for name in names[:most]]
    rest = len(names) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest > 0 else "")
