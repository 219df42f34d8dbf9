"""Batch norm over a batch that processes share, against PyTorch's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import distributed, nn

from annotruth.training.batch_norm import shared_batch_norm


@pytest.fixture
def one_process(tmp_path) -> Iterator[None]:
    store = distributed.FileStore(str(tmp_path / "store"), 1)
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.BatchNorm1d(3), (5, 3)),
        (nn.BatchNorm2d(3), (4, 3, 5, 6)),
        (nn.BatchNorm3d(3, momentum=None), (2, 3, 4, 5, 3)),
        (nn.BatchNorm2d(3, affine=False, track_running_stats=False), (4, 3, 5, 6)),
    ],
)
def test_shared_batch_norm_against_pytorchs(one_process, layer, shape):
    """One process's share is all there is, so it must be plain batch norm."""
    generator = torch.Generator().manual_seed(0)
    plain, network = nn.Sequential(layer), nn.Sequential(type(layer)(3, momentum=layer.momentum, affine=layer.affine))
    network[0].track_running_stats = layer.track_running_stats
    if not layer.track_running_stats:
        network[0].running_mean = network[0].running_var = network[0].num_batches_tracked = None
    before = network[0]
    with shared_batch_norm(network):
        for _ in range(2):
            one = (7 + 2 * torch.randn(shape, generator=generator)).requires_grad_()
            other = one.detach().clone().requires_grad_()
            outputs = plain(one), network(other)
            torch.testing.assert_close(*outputs, rtol=1e-5, atol=1e-5)
            weight = torch.randn(shape, generator=generator)
            for output in outputs:
                (output * weight).sum().backward()
            torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-5)
    assert network[0] is before
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(network.state_dict()[name], value, msg=name)
    torch.testing.assert_close(plain.eval()(one), network.eval()(one))
