"""Steps of a training: what they log, and tables of which few rows are touched."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from annotruth import Annotations, Segmenter
from annotruth.training.module import RowAdamW, touched_rows


@pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")
def test_the_loss_of_an_epoch_is_the_mean_over_all_its_labels(cases: Annotations) -> None:
    masks = cases.masks.copy()
    masks[:5, :, 3:] = 255  # so that batches hold different numbers of labels, and the last one one item only
    some = Annotations.from_masks(masks[:9], images=cases.images[:9])
    network = torch.nn.Conv2d(1, 2, kernel_size=1)
    model = Segmenter(
        "mean", network=network, max_epochs=1, batch_size=4, learning_rate=1e-30, validation=0, augment=False,
        progress=False,
    ).fit(some)  # fmt: skip
    images = torch.from_numpy(cases.images[:9])
    scores = network((images - images.mean()) / images.std(correction=0))
    each = [
        F.cross_entropy(scores, of.long(), ignore_index=255, reduction="sum")
        for of in torch.tensor(masks[:9]).unbind(1)
    ]
    expected = torch.stack(each).sum().item() / (masks[:9] != 255).sum()
    assert model.history_["train_loss"].tolist() == pytest.approx([expected], rel=1e-5)


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
