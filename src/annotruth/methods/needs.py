"""What methods need of data and cannot do without, refused before the training in words that name another method."""

from __future__ import annotations

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError


def need_several_raters(annotations: Annotations, method: str, does: str, instead: str = "majority") -> None:
    """Refuse the labels of one rater.

    Parameters
    ----------
    method : its name
    does : what it does with several raters, as a verb: "weighs raters against each other"
    instead : what to use for one

    Examples
    --------
    >>> import numpy as np
    >>> one = Annotations.from_masks(np.zeros((1, 1, 4, 4), dtype=np.uint8), raters=["ann"], classes=2)
    >>> need_several_raters(one, "mrnet", "is told whom to trust more")
    Traceback (most recent call last):
        ...
    annotruth.errors.InputError: The method mrnet is told whom to trust more, and there is only ann. Use majority for the labels of one rater.
    """  # noqa: E501
    if len(annotations.raters) < 2:
        raise InputError(
            f"The method {method} {does}, and there is only {annotations.raters[0]}. Use {instead} for the labels of "
            "one rater."
        )
