"""What an annotator model is: a module that gives each rater's confusion matrices for a batch of images."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod

from torch import Tensor, nn

from annotruth.errors import InputError
from annotruth.nn.confusion import Confusion


class AnnotatorModel(nn.Module, ABC):
    """Gives the matrices of all raters, or of some of them.

    Examples
    --------
    >>> import torch
    >>> from annotruth.nn import GlobalConfusion
    >>> class AlikeAnnotators(AnnotatorModel):
    ...     "Raters who are right eight times in ten, all of them."
    ...
    ...     def forward(self, images, raters=None):
    ...         matrices = torch.tensor([[0.8, 0.2], [0.2, 0.8]]).expand(3, 2, 2)
    ...         return GlobalConfusion(matrices if raters is None else matrices[raters])
    >>> model, images = AlikeAnnotators(), torch.zeros(1, 1, 8, 8)
    >>> model(images).dense().shape, model(images, torch.tensor([2, 0])).dense().shape
    (torch.Size([1, 3, 2, 2]), torch.Size([1, 2, 2, 2]))
    """

    @abstractmethod
    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        """Matrices for images (batch, channels, *spatial), or feature vectors (batch, features).

        Parameters
        ----------
        raters : (n,) positions of those whose matrices are wanted, in their order; None = all raters
        """


def check_annotator_model(model: nn.Module) -> None:
    """Refuse a module whose ``forward`` cannot be asked for the matrices of some raters only.

    Looks at the signature alone; the module need not derive from :class:`AnnotatorModel`.

    Examples
    --------
    >>> from annotruth.nn import GlobalAnnotators
    >>> check_annotator_model(GlobalAnnotators(raters=3, classes=2))
    >>> check_annotator_model(nn.Flatten())
    Traceback (most recent call last):
    annotruth.errors.InputError: Flatten is no annotator model: its forward takes (input: torch.Tensor), ...
    """
    signature = inspect.signature(model.forward)
    if not _takes_some_raters(signature):
        takes = signature.replace(return_annotation=inspect.Signature.empty)
        raise InputError(
            f"{type(model).__name__} is no annotator model: its forward takes {takes}, but must take "
            "(images, raters=None). Add `raters: Tensor | None = None` to it, the positions of some raters, and return "
            "the matrices of these raters only, e.g. `matrices if raters is None else matrices[raters]`."
        )


def _takes_some_raters(signature: inspect.Signature) -> bool:
    """Whether ``raters`` can be left out, be the second argument, and be given by name."""
    try:
        signature.bind("images")
        by_place = signature.bind("images", "raters").arguments
        by_name = signature.bind("images", raters="raters").arguments
    except TypeError:
        return False
    passes_on = any(each.kind is each.VAR_POSITIONAL for each in signature.parameters.values())
    return passes_on or by_place == by_name
