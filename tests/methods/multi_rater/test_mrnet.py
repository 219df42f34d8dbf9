"""mrnet: whom to trust can be said, and changes what is drawn."""

from __future__ import annotations

import pytest
import torch

from annotruth import Segmenter
from annotruth.errors import InputError
from annotruth.methods import Batch, DataSpec, make_method
from annotruth.nn.prism.losses import ssim_loss
from annotruth.simulate import noisy_digits, simulate_masks

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.AnnotruthWarning")

SPEC = DataSpec(channels=1, raters=3, classes=2, dims=2)


def test_mrnet_is_told_whom_to_trust():
    images, truth, _ = noisy_digits(48)
    ann = simulate_masks(truth, ["good", "over", "blank"]).annotations(images=images)
    model = Segmenter("mrnet", max_epochs=12, batch_size=6, validation=0, progress=False).fit(ann)
    drawn = {name: model.predict_proba(images[:8], confidences={name: 3.0})[:, 1].mean() for name in ("over", "blank")}
    assert drawn["over"] > drawn["blank"]
    with pytest.raises(InputError, match="mrnet knows nothing of recurrence="):
        model.predict_proba(images[:1], recurrence=1)


def test_mrnet_learns_where_all_raters_are_thought_to_agree():
    torch.manual_seed(0)
    method = make_method("mrnet", "masks")
    model = method.build(SPEC)
    with torch.no_grad():
        model.truth.each.weight.zero_()
        model.truth.each.bias.zero_()
    method.loss(model, Batch(torch.randn(1, 1, 8, 8), torch.ones(1, 3, 8, 8, dtype=torch.uint8)), 0.5)[0].backward()
    assert all(torch.isfinite(weight.grad).all() for weight in model.truth.parameters())


def test_mrnet_learns_the_weighted_mean_and_every_rater():
    torch.manual_seed(0)
    method = make_method("mrnet", "masks")
    model = method.build(SPEC).eval()
    batch = Batch(torch.randn(2, 1, 9, 10), torch.randint(0, 2, (2, 3, 9, 10), dtype=torch.uint8))
    log_truth, log_each = model.truth(batch.images, torch.ones(2, 3))
    mean = torch.stack([(batch.labels == k).float().mean(dim=1) for k in range(2)], dim=1)
    of_mask = -(mean * log_truth).sum(dim=1).mean()
    of_raters = torch.nn.functional.nll_loss(log_each.flatten(0, 1), batch.labels.flatten(0, 1).long())
    nodule, drawn = log_truth.exp()[:, 1], mean[:, 1]
    of_overlap = 1 - (2 * (nodule * drawn).sum() + 1) / ((nodule + drawn).sum() + 1)
    everywhere = torch.ones(2, 9, 10, dtype=torch.bool)
    of_structure = ssim_loss(nodule[:, None], drawn[:, None], everywhere)
    loss, likelihood = method.loss(model, batch, 0.5)
    torch.testing.assert_close(loss, of_mask + of_overlap + of_structure + of_raters)
    torch.testing.assert_close(likelihood, of_mask.detach())
