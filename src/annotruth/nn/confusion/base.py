"""What every kind of confusion matrices answers, and how: in blocks of pixels, so that memory stays small.

An objective need not know which kind it has. It asks how likely the labels are and how right the raters, what the
average matrix over an item is, and what the matrices themselves are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from annotruth.nn.labels import class_index, is_labelled

_BLOCK_SIZE_ON_CPU, _BLOCK_SIZE_ON_GPU = 2**19, 2**25
"""Numbers in one block: few enough for a processor's cache, enough to keep a GPU busy."""


class Confusion(ABC):
    """Confusion matrices [true, observed] of every rater for a batch of items.

    A kind of its own gives ``dense``, ``_explain`` and ``_summed_rows``; the latter two see one axis of pixels.
    """

    def likelihood(self, log_truth: Tensor, labels: Tensor, row_weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """How likely the labels are, and how right the raters.

        Parameters
        ----------
        log_truth : (batch, classes, *spatial) log-probabilities of the true class
        labels : (batch, raters, *spatial) integers; 255 or -1 = not labelled
        row_weight : (batch, classes, *spatial), how much each diagonal entry counts in the trace; all of them fully if
            not given

        Returns
        -------
        log_likelihood : (batch, raters, *spatial), 0 where not labelled
        trace : (batch, raters, *spatial), Σ_i row_weight_i · A[i, i]
        """
        row_weight = full_weight(log_truth) if row_weight is None else row_weight
        log_likelihood, trace = self._explain(*(one_pixel_axis(part, 2) for part in (log_truth, labels, row_weight)))
        return log_likelihood.view(labels.shape), trace.view(labels.shape)

    def loss(
        self, log_truth: Tensor, labels: Tensor, trace_weight: float = 0.0, row_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Mean of ``trace_weight`` · trace − log-likelihood over the labels given, and of −log-likelihood alone.

        Both come from :meth:`likelihood`, where the parameters are explained. The row weights are taken as constants,
        and the second result as a figure to look at: no gradient flows into those or from this.
        """
        row_weight = full_weight(log_truth) if row_weight is None else row_weight.detach()
        labelled = is_labelled(labels, log_truth.shape[1])
        count = torch.count_nonzero(labelled).clamp_min(1)  # a third of the time of sum()
        log_likelihood, trace = self.likelihood(log_truth, labels, row_weight)
        negative = -log_likelihood.sum() / count
        if trace_weight == 0:
            return negative, negative.detach()
        return negative + trace_weight * (trace * labelled).sum() / count, negative.detach()

    def mean_rows(self, truth: Tensor) -> tuple[Tensor, Tensor]:
        """Truth-weighted sums of rows over an item, and their weights: numerator and denominator of the mean matrix.

        A row is identified only at pixels of its own class, so each pixel counts as far as it belongs to the class.

        Parameters
        ----------
        truth : (batch, classes, *spatial) probabilities

        Returns
        -------
        rows : (batch, raters, classes, classes);  weights : (batch, 1, classes, 1)
        """
        truth = one_pixel_axis(truth, 2)
        return self._summed_rows(truth), truth.sum(dim=2)[:, None, :, None]

    @abstractmethod
    def dense(self) -> Tensor:
        """The matrices: (batch, raters, classes, classes, *spatial).

        Without the spatial axes where all pixels share one matrix, and with a batch of 1 where all items do.
        """

    @abstractmethod
    def _explain(self, log_truth: Tensor, labels: Tensor, row_weight: Tensor) -> tuple[Tensor, Tensor]:
        """As :meth:`likelihood`."""

    @abstractmethod
    def _summed_rows(self, truth: Tensor) -> Tensor:
        """The first part of :meth:`mean_rows`."""


@dataclass
class IdentityConfusion(Confusion):
    """Everybody is taken at their word.

    Examples
    --------
    >>> log_truth = torch.tensor([[0.9, 0.1]]).log()
    >>> log_likelihood, trace = IdentityConfusion(raters=2, classes=2).likelihood(log_truth, torch.tensor([[0, 255]]))
    >>> log_likelihood.exp(), trace
    (tensor([[0.9000, 1.0000]]), tensor([[2., 2.]]))
    """

    raters: int
    classes: int
    device: torch.device | str | None = None

    def dense(self) -> Tensor:
        return torch.eye(self.classes, device=self.device).expand(1, self.raters, -1, -1)

    def loss(
        self, log_truth: Tensor, labels: Tensor, trace_weight: float = 0.0, row_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """As of any confusion; without a weight on the trace it is not computed, and this is cross-entropy."""
        if trace_weight != 0:
            return super().loss(log_truth, labels, trace_weight, row_weight)
        count = torch.count_nonzero(is_labelled(labels, self.classes)).clamp_min(1)
        negative = -self._log_likelihood(log_truth, labels).sum() / count
        return negative, negative.detach()

    def _explain(self, log_truth: Tensor, labels: Tensor, row_weight: Tensor) -> tuple[Tensor, Tensor]:
        trace = row_weight.sum(dim=1, keepdim=True).repeat(1, self.raters, 1)
        return self._log_likelihood(log_truth, labels), trace

    def _log_likelihood(self, log_truth: Tensor, labels: Tensor) -> Tensor:
        observed = log_truth.gather(1, class_index(labels, self.classes))
        return observed.masked_fill(~is_labelled(labels, self.classes), 0)

    def _summed_rows(self, truth: Tensor) -> Tensor:
        return torch.diag_embed(truth.sum(dim=2))[:, None].expand(-1, self.raters, -1, -1)


def full_weight(log_truth: Tensor) -> Tensor:
    """Row weights that count the whole diagonal: ones, which take no memory."""
    return log_truth.new_ones(()).expand(log_truth.shape)


def one_pixel_axis(tensor: Tensor, leading: int) -> Tensor:
    """Merge all axes after the ``leading`` ones into one; where there are none, make one of length 1.

    Examples
    --------
    >>> one_pixel_axis(torch.empty(5, 3, 4, 6), 2).shape, one_pixel_axis(torch.empty(5, 3), 2).shape
    (torch.Size([5, 3, 24]), torch.Size([5, 3, 1]))
    """
    return tensor.reshape(*tensor.shape[:leading], tensor.shape[leading:].numel())


def blocks(tensor: Tensor) -> Iterator[tuple[slice, slice]]:
    """Cut a tensor (items, ..., pixels) into blocks of items and pixels.

    Examples
    --------
    >>> list(blocks(torch.empty(2, 2**10, 2**9)))
    [(slice(0, 1, None), slice(0, 512, None)), (slice(1, 2, None), slice(0, 512, None))]
    """
    items, pixels = tensor.shape[0], tensor.shape[-1]
    per_pixel = tensor.shape[1:-1].numel()
    wide = min(pixels, _most(tensor, per_pixel))
    high = _most(tensor, per_pixel * wide)
    for top in range(0, items, high):
        for left in range(0, pixels, wide):
            yield slice(top, min(top + high, items)), slice(left, min(left + wide, pixels))


def pixel_blocks(*tensors: Tensor, per_pixel: int) -> list[tuple[Tensor, ...]]:
    """Cut tensors (..., pixels) into blocks of pixels, given how many numbers the work on one pixel needs.

    Examples
    --------
    >>> [block.shape for (block,) in pixel_blocks(torch.empty(3, 10), per_pixel=2**17)]
    [torch.Size([3, 4]), torch.Size([3, 4]), torch.Size([3, 2])]
    """
    wide = _most(tensors[0], per_pixel)
    return list(zip(*(tensor.split(wide, dim=-1) for tensor in tensors)))


def in_blocks(work: Callable[..., tuple[Tensor, Tensor]], *tensors: Tensor, per_pixel: int) -> tuple[Tensor, Tensor]:
    """Apply work that treats each pixel by itself to tensors (..., pixels), block by block.

    Of what is computed in between, nothing is kept: it is computed once more where gradients need it.

    Examples
    --------
    >>> in_blocks(lambda x: (x + 1, x * x), torch.arange(3.0), per_pixel=2**18)
    (tensor([1., 2., 3.]), tensor([0., 1., 4.]))
    """
    parts = pixel_blocks(*tensors, per_pixel=per_pixel)
    if len(parts) == 1:
        return work(*tensors)
    done = [checkpoint(work, *part, use_reentrant=False, preserve_rng_state=False) for part in parts]
    first, second = zip(*done)
    return torch.cat(first, dim=-1), torch.cat(second, dim=-1)


def _most(tensor: Tensor, numbers: int) -> int:
    """How many things of so many numbers make one block: at least one."""
    most = _BLOCK_SIZE_ON_CPU if tensor.device.type == "cpu" else _BLOCK_SIZE_ON_GPU
    return max(1, most // numbers)
