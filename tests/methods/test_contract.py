"""What every method must do: build, learn, predict, say something of raters, be saved and loaded, shun the truth."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from annotruth import Annotations, Segmenter, load_model
from annotruth.methods import Batch, DataSpec, make_method
from annotruth.methods.base import methods_for
from annotruth.simulate import noisy_digits, simulate_masks

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")


@pytest.fixture(scope="module")
def digits():
    images, truth, _ = noisy_digits(24)
    return simulate_masks(truth, keep=3).annotations(images=images)


@pytest.fixture(scope="module", params=[name for name in methods_for("masks") if name != "diag"])  # needs a diagnosis
def method(request):
    return request.param


@pytest.fixture(scope="module")
def model(digits, method):
    return Segmenter(method, max_epochs=2, batch_size=8, validation=0.25, progress=False).fit(digits)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("classes", [2, 5])
def test_builds_and_gives_gradients(method, dims, classes):
    torch.manual_seed(0)
    made = make_method(method)
    shape = DataSpec(channels=2, raters=3, classes=classes, dims=dims)
    parts = made.build(shape)
    side = [8] * dims
    images = torch.randn(2, 2, *side)
    labels = torch.randint(0, classes, (2, made.n_targets(shape), *side), dtype=torch.uint8)
    labels[0, 0] = 255
    for progress in (0.0, 0.5, 1.0):
        parts.zero_grad()
        loss, likelihood = made.loss(parts, Batch(images, labels), progress)
        assert torch.isfinite(loss)
        assert loss.shape == likelihood.shape == ()
        loss.backward()
        assert all(torch.isfinite(w.grad).all() for w in parts.parameters() if w.grad is not None)
        assert any((w.grad != 0).any() for w in parts.truth.parameters() if w.grad is not None)
    dense = made.confusion(parts, images).dense()
    torch.testing.assert_close(dense.sum(dim=3), torch.ones_like(dense.sum(dim=3)))


def test_a_batch_without_any_label_is_no_accident(method):
    torch.manual_seed(0)
    made = make_method(method)
    shape = DataSpec(channels=1, raters=3, classes=2, dims=2)
    parts = made.build(shape)
    labels = torch.full((2, made.n_targets(shape), 8, 8), 255, dtype=torch.uint8)
    loss, _ = made.loss(parts, Batch(torch.randn(2, 1, 8, 8), labels), progress=1.0)
    loss.backward()
    assert loss.item() == 0


def test_learns(model):
    assert len(model.history_) == 2
    assert np.isfinite(model.history_[["train_loss", "val_loss"]]).all(axis=None)
    assert model.history_.train_loss.iloc[1] < model.history_.train_loss.iloc[0]


def test_predicts(model, digits):
    probabilities = model.predict_proba(digits.images)
    assert probabilities.shape == (24, 2, 28, 28)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    assert (probabilities >= 0).all()
    np.testing.assert_array_equal(model.predict(digits.images), probabilities.argmax(axis=1))


def test_knows_the_raters(model, digits):
    assert tuple(model.annotators_) == digits.raters
    assert model.confusion_.shape == (5, 2, 2)
    np.testing.assert_allclose(model.confusion_.sum(axis=2), 1, atol=1e-6)
    assert model.confusion(digits.images[:3]).shape == (3, 5, 2, 2)
    maps = model.confusion_maps(digits.item_image(0))
    assert maps is None or maps.shape == (5, 2, 2, 28, 28)
    drawn = model.annotators_["over"].predict_proba(digits.item_image(0))
    assert drawn.shape == (2, 28, 28)
    np.testing.assert_allclose(drawn.sum(axis=0), 1, atol=1e-5)


def test_saved_and_loaded(model, digits, tmp_path):
    again = load_model(model.save(tmp_path / "model.annotruth"))
    np.testing.assert_array_equal(again.predict_proba(digits.images), model.predict_proba(digits.images))
    np.testing.assert_array_equal(again.confusion(digits.images[:3]), model.confusion(digits.images[:3]))
    assert again.settings_ == model.settings_


def test_never_looks_at_the_truth_unless_that_is_its_purpose(method, model, digits, monkeypatch):
    def refuse(*_: object) -> None:
        raise AssertionError("looked at the truth")

    monkeypatch.setattr(Annotations, "item_truth", refuse)
    monkeypatch.setattr(Annotations, "truth", property(refuse))
    blindfold = Segmenter(method, max_epochs=2, batch_size=8, validation=0.25, progress=False)
    if method in ("clean", "oracle-cm"):
        with pytest.raises(AssertionError, match="looked at the truth"):
            blindfold.fit(digits)
        return
    blindfold.fit(digits)
    np.testing.assert_array_equal(blindfold.predict_proba(digits.images), model.predict_proba(digits.images))
