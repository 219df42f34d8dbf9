"""annot-mix on label tables, by loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from annotruth.errors import InputError
from annotruth.methods import make_method
from annotruth.methods.confusion.annot_mix import mixed_loss


def test_items_raters_and_labels_are_mixed(build_shaken, given, batch):
    _, model = build_shaken("annot-mix")
    item, rater, label = (torch.tensor(part) for part in zip(*((i, r, int(k)) for i, r, k in given)))
    rng = np.random.default_rng(0)
    other, share = torch.tensor(rng.permutation(len(item))), torch.tensor(rng.random(len(item)))
    raters, said = model.annotators, []
    for one, (two, part) in enumerate(zip(other.tolist(), share.tolist())):
        image = part * batch.images[item[one]] + (1 - part) * batch.images[item[two]]
        who = part * raters.raters[rater[one]] + (1 - part) * raters.raters[rater[two]]
        matrix = raters.log_matrices(raters.items(image[None])[0], who).exp()
        answer = (model.log_truth(image[None]).exp()[0] @ matrix).log()
        said.append(part * answer[label[one]] + (1 - part) * answer[label[two]])
    torch.testing.assert_close(mixed_loss(model, batch, item, rater, other, share), -torch.stack(said).mean())


def test_held_out_labels_are_not_mixed(build_shaken, batch):
    method, model = build_shaken("annot-mix")
    model.eval()
    first, second = method.loss(model, batch, 0.5), method.loss(model, batch, 0.5)
    assert first[0] == second[0] == second[1]
    with pytest.raises(InputError, match="mixing must not be negative"):
        make_method("annot-mix", "labels", {"mixing": -1.0})
