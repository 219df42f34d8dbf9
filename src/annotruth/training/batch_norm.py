"""Batch norm over the items of all processes, so that many processes learn what one would."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn.modules.batchnorm import _BatchNorm


@contextmanager
def shared_batch_norm(network: nn.Module) -> Iterator[None]:
    """Let all batch norms within a network count the items of all processes, for a while."""
    layers = [
        (parent, name, layer)
        for parent in network.modules()
        for name, layer in parent.named_children()
        if isinstance(layer, _BatchNorm) and not isinstance(layer, nn.SyncBatchNorm)
    ]
    shared = [_SharedBatchNorm(layer) for _, _, layer in layers]
    for (parent, name, _), layer in zip(layers, shared):
        setattr(parent, name, layer)
    try:
        yield
    finally:
        for (parent, name, before), layer in zip(layers, shared):
            before.load_state_dict(layer.state_dict())  # a move to another device and back leaves new buffers behind
            setattr(parent, name, before)


class _SharedBatchNorm(_BatchNorm):
    """As PyTorch's SyncBatchNorm, which refuses to work on a CPU."""

    def __init__(self, layer: _BatchNorm) -> None:
        super().__init__(layer.num_features, layer.eps, layer.momentum, layer.affine, layer.track_running_stats)
        self.weight, self.bias = layer.weight, layer.bias
        self.running_mean, self.running_var = layer.running_mean, layer.running_var
        self.num_batches_tracked = layer.num_batches_tracked
        self.train(layer.training)

    def _check_input_dim(self, input: Tensor) -> None:
        """Any number of axes will do."""

    def forward(self, input: Tensor) -> Tensor:
        if not self.training:
            return super().forward(input)
        axes, shape = [0, *range(2, input.ndim)], (1, -1, *[1] * (input.ndim - 2))
        # In double precision, or the variance would drown in the square of a large mean.
        mean, variance = input.mean(axes).double(), input.var(axes, unbiased=False).double()
        ours = torch.stack([torch.ones_like(mean), mean, variance + mean**2]) * (input.numel() / len(mean))
        sums = _SumOfAll.apply(ours)
        count, mean = sums[0].detach(), sums[1] / sums[0].detach()
        variance = sums[2] / count - mean**2
        self._keep(mean.detach(), variance.detach() * count / (count - 1).clamp_min(1))
        scale = (variance + self.eps).rsqrt()
        if self.affine:
            scale = scale * self.weight
        shift = -mean * scale
        if self.affine:
            shift = shift + self.bias
        return input * scale.to(input.dtype).view(shape) + shift.to(input.dtype).view(shape)

    def _keep(self, mean: Tensor, variance: Tensor) -> None:
        """Follow the statistics, for later use without them."""
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked += 1
        step = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), step)
        self.running_var.lerp_(variance.to(self.running_var.dtype), step)


class _SumOfAll(torch.autograd.Function):
    """The sum of all processes' tensors. Each process's loss depends on it, so its gradient is a sum over them, too."""

    @staticmethod
    def forward(ctx: Any, ours: Tensor) -> Tensor:
        total = ours.clone()
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        total = gradient.contiguous().clone()
        distributed.all_reduce(total)
        return total
