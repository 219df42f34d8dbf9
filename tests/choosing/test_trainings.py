"""A finished training is kept, and counts as long as it was asked for the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from torch import nn

from annotruth import Annotations
from annotruth.choosing.trainings import Trained, Training, keep, read_kept, train
from annotruth.errors import AnnotruthError

ANSWERS = Annotations.from_answers(
    np.tile([[0, 0], [1, 1]], (6, 1)), images=np.tile([[0.0, 1.0], [1.0, 0.0]], (6, 1)).astype(np.float32)
)
TRAINING = Training("mean", 0, 2, 0, {"max_epochs": 1, "network": "linear"}, "digest")
TRAINED = Trained(("a", "b"), [np.ones((2, 3), dtype=np.uint8), np.zeros((4, 1), dtype=np.uint8)], 1.5, ("careful",))


def test_what_is_kept_is_read_as_it_was(tmp_path: Path) -> None:
    asked = TRAINING.configuration(ANSWERS)
    keep(tmp_path / TRAINING.file, asked, TRAINED)
    found = read_kept(tmp_path / TRAINING.file, asked)
    assert found is not None
    assert (found.items, found.seconds, found.warnings) == (TRAINED.items, 1.5, ("careful",))
    for one, other in zip(found.predictions, TRAINED.predictions, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("change", [
    {"seed": 1}, {"folds": 3}, {"data": "other"}, {"settings": {"max_epochs": 2, "network": "linear"}},
])  # fmt: skip
def test_a_training_that_was_asked_for_something_else_does_not_count(tmp_path: Path, change: dict) -> None:
    path = tmp_path / "kept.npz"
    keep(path, TRAINING.configuration(ANSWERS), TRAINED)
    assert read_kept(path, replace(TRAINING, **change).configuration(ANSWERS)) is None


def test_a_damaged_or_missing_file_does_not_count(tmp_path: Path) -> None:
    asked, path = TRAINING.configuration(ANSWERS), tmp_path / "kept.npz"
    assert read_kept(path, asked) is None
    keep(path, asked, TRAINED)
    path.write_bytes(path.read_bytes()[:200])
    assert read_kept(path, asked) is None
    path.write_text("something else")
    assert read_kept(path, asked) is None


def test_networks_of_the_users_own_are_told_apart_by_their_weights():
    settings = [{"network": network} for network in (nn.Linear(2, 2), nn.Linear(2, 2))]
    first, second = (replace(TRAINING, settings=each).configuration(ANSWERS) for each in settings)
    assert first != second
    assert replace(TRAINING, settings=settings[0]).configuration(ANSWERS) == first


def test_every_item_of_a_fold_is_predicted_by_a_model_that_never_saw_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from annotruth.training import Classifier

    seen: set[str] = set()
    fit = Classifier.fit

    def watched(self: Classifier, X: Annotations, *more: object, **others: object) -> Classifier:
        seen.update(X.items)
        return fit(self, X, *more, **others)  # type: ignore[arg-type]

    monkeypatch.setattr(Classifier, "fit", watched)
    found = train(TRAINING, ANSWERS)
    assert set(found.items) | seen == set(ANSWERS.items)
    assert not set(found.items) & seen
    assert len(found.predictions) == len(found.items)


def test_an_error_names_the_training():
    with pytest.raises(AnnotruthError, match="mean, fold 1 of 2, seed 0: "):
        train(replace(TRAINING, settings={"network": "nonsense"}), ANSWERS)
