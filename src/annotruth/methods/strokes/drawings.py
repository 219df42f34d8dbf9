"""Strokes as methods take them, and what they can tell, looked at before anything is learnt from them."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import Tensor

from annotruth.data.annotations import Annotations
from annotruth.errors import IdentifiabilityWarning, InputError, UnansweredClassWarning, shorten
from annotruth.methods.base import as_tensor
from annotruth.methods.targets import majority_of
from annotruth.validation import MISSING_PIXEL


def both_drawings(annotations: Annotations, index: int, unmarked_is_background: bool, negatives: bool) -> Tensor:
    """One item's positive, then negative drawings: (2 · raters, *spatial) uint8, 255 = nothing said."""
    positive, negative = as_tensor(annotations.item_masks(index)), as_tensor(annotations.item_negatives(index))
    if unmarked_is_background:
        positive = whole_masks(positive)
    return torch.cat([positive, negative if negatives else torch.full_like(negative, MISSING_PIXEL)])


def whole_masks(drawings: Tensor) -> Tensor:
    """Positive drawings (raters, *spatial) in which what somebody left unmarked on an item they drew on is class 0.

    Examples
    --------
    >>> whole_masks(torch.tensor([[1, 255], [255, 255]]))
    tensor([[  1,   0],
            [255, 255]])
    """
    drew = (drawings != MISSING_PIXEL).flatten(1).any(dim=1).view(-1, *[1] * (drawings.ndim - 1))
    return drawings.masked_fill((drawings == MISSING_PIXEL) & drew, 0)


def seeds(annotations: Annotations, index: int) -> tuple[np.ndarray, np.ndarray]:
    """What everybody's drawings say together of one item.

    Returns
    -------
    marked : (*spatial) uint8, the class that most people marked, 255 = none;  said_not : (classes, *spatial) bool
    """
    classes = len(annotations.classes)
    marked = majority_of(as_tensor(annotations.item_masks(index)), classes)[0].numpy()
    negative = annotations.item_negatives(index)
    return marked, np.stack([(negative == number).any(axis=0) & (marked != number) for number in range(classes)])


def check_strokes(annotations: Annotations, unmarked_is_background: bool = False, negatives: bool = True) -> None:
    """Refuse annotations without a single stroke; warn of classes nobody marks, or that nothing sets apart.

    Parameters
    ----------
    unmarked_is_background : whether pixels that nobody marks count as class 0
    negatives : whether negative drawings count

    Examples
    --------
    >>> masks = np.full((1, 1, 4, 4), 255, dtype=np.uint8)
    >>> masks[0, 0, 0], masks[0, 0, 3] = 1, 0
    >>> check_strokes(Annotations.from_masks(masks))
    """
    marked, said_not = np.zeros((2, MISSING_PIXEL + 1), dtype=bool)
    for index in range(len(annotations)):
        marked[np.unique(annotations.item_masks(index))] = True
        if negatives and annotations.has_negatives:
            said_not[np.unique(annotations.item_negatives(index))] = True
    marked, said_not = marked[: len(annotations.classes)], said_not[: len(annotations.classes)]
    if not marked.any() and not said_not.any():
        raise InputError("Nobody drew anything: there is not a single stroke to learn from.")
    marked[0] |= unmarked_is_background
    names = annotations.classes
    # Where every other class is said not to be somewhere, a class needs no strokes of its own.
    told = marked | (said_not.sum() - said_not == len(names) - 1)
    never = [name for name, shown in zip(names, told) if not shown]
    if not never:
        return
    if marked.sum() == 1 and not said_not.any():
        warnings.warn(
            f"Only {names[int(marked.argmax())]} is ever drawn, and nothing says where it is not. Add negative "
            "drawings or strokes of the background, or give unmarked='background' if what is not drawn is background.",
            IdentifiabilityWarning,
            stacklevel=5,
        )
    else:
        warnings.warn(
            f"Nobody drew a stroke of {shorten(never)}: the model will hardly find what nobody shows.",
            UnansweredClassWarning,
            stacklevel=5,
        )
