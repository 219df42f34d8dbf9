"""Checks that any method must pass, for each task it serves; to be run on a new one in its tests.

>>> for check in CHECKS:
...     check("mean", "labels")
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from annotruth.data.annotations import Annotations
from annotruth.errors import AnnotruthWarning
from annotruth.methods import Batch, DataSpec, Task, make_method
from annotruth.methods.base import HEAD_START
from annotruth.nn import plan_network
from annotruth.simulate import label_group, noisy_digits, simulate_labels, simulate_masks
from annotruth.training.classifier import Classifier
from annotruth.training.segmenter import Segmenter
from annotruth.validation import MISSING_LABEL, MISSING_PIXEL

ITEMS, RATERS = 24, 5
BOUNDS = ("clean", "oracle-cm")
"""Methods that look at the truth, as an upper bound."""
SIDE = 8
"""Of random images."""


def small_data(task: Task) -> Annotations:
    """Two dozen items with images (features in a label table) and truth, by five raters of whom three see each."""
    if task == "masks":
        images, truth, _ = noisy_digits(ITEMS)
        return simulate_masks(truth, keep=3).annotations(images=images)
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 2, ITEMS)
    features = np.eye(2)[classes] + rng.normal(0, 0.3, (ITEMS, 2))
    answers = simulate_labels(classes, label_group("hammer-spammer", RATERS, 2, skill=0.8), keep=3)
    return answers.annotations(images=features)


def fitted(name: str, task: Task, data: Annotations, **options: Any) -> Segmenter | Classifier:
    """A model trained for two epochs."""
    settings: dict[str, Any] = {
        "max_epochs": 2,
        "batch_size": 8,
        "validation": 0.25,
        "learning_rate": 0.01,
        "progress": False,
    }
    model: Any = (Segmenter if task == "masks" else Classifier)(name, **settings, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AnnotruthWarning)  # little data, rightly doubted
        return model.fit(data)


def random_batch(name: str, task: Task, classes: int, dims: int, **options: Any) -> tuple[Any, Any, Batch]:
    """A method, its model, and a batch of two random items with labels, some of them missing."""
    torch.manual_seed(0)
    method = make_method(name, task, options)
    side = [SIDE] * dims
    network = plan_network(side) if task == "masks" else None
    spec = DataSpec(channels=2, raters=3, classes=classes, dims=dims, task=task, network=network)
    targets = method.n_targets(spec)
    if task == "masks":
        labels = torch.randint(0, classes, (2, targets, *side), dtype=torch.uint8)
        labels[0, 0] = MISSING_PIXEL
        return method, method.build(spec), Batch(torch.randn(2, 2, *side), labels)
    labels = torch.randint(0, classes, (2, targets), dtype=torch.int16)
    labels[0, 0] = MISSING_LABEL
    return method, method.build(spec), Batch(torch.randn(2, 2, *side), labels, raters=torch.arange(targets))


def check_builds_and_gives_gradients(name: str, task: Task, **options: Any) -> None:
    """Losses and gradients are finite at any time of the training, and matrices' rows sum to 1."""
    for classes in (2, 5):
        for dims in (2, 3) if task == "masks" else (0, 2):
            method, model, batch = random_batch(name, task, classes, dims, **options)
            for progress in (0.0, HEAD_START, 0.5, 1.0):
                model.zero_grad()
                loss, likelihood = method.training_loss(model, batch, progress)
                assert torch.isfinite(loss), f"the loss is {loss} at {progress}"
                assert loss.shape == likelihood.shape == (), "loss and likelihood are numbers"
                loss.backward()
                gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
                dense = [grad.coalesce().values() if grad.is_sparse else grad for grad in gradients]
                assert all(torch.isfinite(grad).all() for grad in dense), "gradients are finite"
                to_truth = [weight.grad for weight in model.truth.parameters() if weight.grad is not None]
                assert any((grad != 0).any() for grad in to_truth), "the truth model learns"
            rows = method.confusion(model, batch.images).dense().sum(dim=3)
            torch.testing.assert_close(rows, torch.ones_like(rows))


def check_nothing_labelled_costs_nothing(name: str, task: Task, **options: Any) -> None:
    """A batch without a single label has a loss of 0, and gradients."""
    method, model, batch = random_batch(name, task, 2, 2 if task == "masks" else 0, **options)
    missing = MISSING_PIXEL if task == "masks" else MISSING_LABEL
    loss, _ = method.loss(model, batch._replace(labels=torch.full_like(batch.labels, missing)), 1.0)
    loss.backward()
    assert loss.item() == 0


def check_learns_and_predicts(name: str, task: Task, **options: Any) -> None:
    """Training lowers the loss; predictions are probabilities; every rater has a matrix; the loaded model is the same.

    A method sees the truth only if that is its purpose, as of ``clean`` and ``oracle-cm``.
    """
    data = small_data(task)
    model = _fitted_without_truth(name, task, data, **options)
    assert len(model.history_) == 2
    losses = model.history_[["train_loss", "val_loss"]].to_numpy()
    assert np.isfinite(losses).all()
    assert losses[1, 0] < losses[0, 0], "the second epoch is better than the first"
    check_predictions(model, data)
    with tempfile.TemporaryDirectory() as folder:
        again = type(model).load(model.save(Path(folder) / "model.annotruth"))
    np.testing.assert_array_equal(again.predict_proba(data.images), model.predict_proba(data.images))
    np.testing.assert_array_equal(again.confusion_, model.confusion_)
    assert again.settings_ == model.settings_


def check_predictions(model: Segmenter | Classifier, data: Annotations) -> None:
    """Probabilities and matrices of a model are such."""
    probabilities = np.asarray(model.predict_proba(data.images))
    assert probabilities.shape[:2] == (ITEMS, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    assert (probabilities >= 0).all()
    labels = np.asarray(model.predict(data.images))
    np.testing.assert_array_equal(labels.astype(int), probabilities.argmax(axis=1))
    assert tuple(model.annotators_) == data.raters
    np.testing.assert_allclose(model.confusion_.sum(axis=2), 1, atol=1e-6)
    if isinstance(model, Segmenter):
        assert model.confusion(data.images[:3]).shape == (3, RATERS, 2, 2)
        maps = model.confusion_maps(data.item_image(0))
        assert maps is None or maps.shape == (RATERS, 2, 2, *data.shape(0))
        drawn = model.annotators_[data.raters[0]].predict_proba(data.item_image(0))
        np.testing.assert_allclose(drawn.sum(axis=0), 1, atol=1e-5)
        assert model.sample(data.images[:2], 3).shape == (3, 2, *data.shape(0))


def _fitted_without_truth(name: str, task: Task, data: Annotations, **options: Any) -> Segmenter | Classifier:
    """A model that was trained while nobody could look at the truth; with it only where that is a method's purpose."""

    class Looked(Exception):
        """The truth was looked at."""

    def refuse(*_: object) -> None:
        raise Looked

    with patch.object(Annotations, "item_truth", refuse), patch.object(Annotations, "truth", property(refuse)):
        try:
            model = fitted(name, task, data, **options)
        except Looked:
            assert name in BOUNDS, f"{name} looked at the truth"
        else:
            assert name not in BOUNDS, f"{name} did not look at the truth"
            return model
    return fitted(name, task, data, **options)


CHECKS: tuple[Callable[..., None], ...] = (
    check_builds_and_gives_gradients,
    check_nothing_labelled_costs_nothing,
    check_learns_and_predicts,
)
"""Each is called with a method's name, a task and the method's options, and raises an AssertionError if it fails."""
