"""One step of a training: tables of which few rows are touched."""

from __future__ import annotations

import torch

from annotruth.training.module import RowAdamW, touched_rows


def test_a_gradient_found_sparse_again_moves_its_own_rows_only() -> None:
    gradient = torch.zeros(4, 2, 2)
    gradient[2, 0, 1] = 1.0
    tables = [torch.ones(4, 2, 2, requires_grad=True) for _ in range(2)]
    for table, slope in zip(tables, (touched_rows(gradient), gradient.to_sparse(1))):
        optimiser = RowAdamW([table], lr=0.1)
        for given in (slope, touched_rows(torch.zeros(4, 2, 2))):
            table.grad = given
            optimiser.step()
    torch.testing.assert_close(*tables)
    moved = (tables[0] != 1).flatten(1).any(dim=1)
    assert moved.tolist() == [False, False, True, False]
