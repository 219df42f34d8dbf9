"""A new estimator is one file: here GLAD, whose state holds the ease of each item and the ability of each rater."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import annotruth as at
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.checks import CHECKS, noisy_masks
from annotruth.fusion.folder import fuse
from annotruth.fusion.registry import METHODS, make_estimator, method_names
from annotruth.io import write_case_folder

FILE = '''
from dataclasses import dataclass

import numpy as np

from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.em import confusion_from_counts, expected_counts
from annotruth.fusion.registry import register
from annotruth.fusion.state import FusionState


@dataclass(frozen=True)
class GladState(FusionState):
    ability: np.ndarray = ()


@register("item-ease")
class ItemEase(FusionEstimator):
    """A rater is right with probability sigmoid(ability · ease), and otherwise gives any other class."""

    has_item_state = True

    def __init__(self, n_steps=60, scope="dataset"):
        self.n_steps = n_steps
        self.scope = scope

    def estimate(self, votes, start=None):
        item, rater, label = votes.answers.item, votes.answers.rater, votes.answers.label
        weight = np.where(votes.answered, votes.weight, 0.0)
        ability, log_ease = np.ones(votes.n_raters), np.zeros(votes.n_rows)
        prior = np.full(votes.n_classes, 1 / votes.n_classes)
        load = np.maximum(np.bincount(rater, weight[item], votes.n_raters), 1)
        for _ in range(self.n_steps):
            posterior = self._posterior(votes, ability, np.exp(log_ease), prior)
            surprise = posterior[item, label] - _sigmoid(ability[rater] * np.exp(log_ease[item]))
            slope = np.bincount(item, surprise * ability[rater], votes.n_rows)
            pull = weight[item] * surprise * np.exp(log_ease[item])
            ability = ability + np.bincount(rater, pull, votes.n_raters) / load
            log_ease = np.clip(log_ease + 0.1 * (slope * np.exp(log_ease) - log_ease), -2, 2)
            prior = (posterior * weight[:, None]).sum(axis=0) / max(weight.sum(), 1)
        counts = expected_counts(votes.answers, posterior, votes.n_raters, weight)
        items = {"ease": np.exp(log_ease)}
        return GladState(confusion_from_counts(counts), counts, prior, items=items, ability=ability)

    def posterior(self, votes, state):
        return self._posterior(votes, state.ability, state.items["ease"], state.prior)

    def _posterior(self, votes, ability, ease, prior):
        item, rater, label = votes.answers.item, votes.answers.rater, votes.answers.label
        right = np.clip(_sigmoid(ability[rater] * ease[item]), 1e-9, 1 - 1e-9)
        wrong = (1 - right) / max(votes.n_classes - 1, 1)
        score = np.tile(np.log(np.maximum(prior, 1e-300)), (votes.n_rows, 1))
        score += np.bincount(item, np.log(wrong), votes.n_rows)[:, None]
        np.add.at(score, (item, label), np.log(right / wrong))
        known = np.flatnonzero(votes.gold >= 0)
        score[known] = -np.inf
        score[known, votes.gold[known]] = 0
        score = np.exp(score - score.max(axis=1, keepdims=True))
        return score / score.sum(axis=1, keepdims=True)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))
'''


@pytest.fixture(scope="module")
def item_ease(tmp_path_factory: pytest.TempPathFactory) -> Iterator[type[FusionEstimator]]:
    """The estimator, after its file was put where Python finds it."""
    folder = tmp_path_factory.mktemp("package")
    (folder / "ease_of_a_test.py").write_text(FILE)
    sys.path.insert(0, str(folder))
    yield import_module("ease_of_a_test").ItemEase
    sys.path.remove(str(folder))
    del METHODS["item-ease"]


@pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_common_checks(item_ease: type[FusionEstimator], check: Callable[[FusionEstimator], None]) -> None:
    check(item_ease())


def test_an_items_state_is_found_for_its_item(item_ease: type[FusionEstimator]) -> None:
    rng = np.random.default_rng(0)
    truth, hard = rng.integers(0, 2, 400), np.arange(400) % 2 == 1
    skill = np.where(hard[:, None], 0.6, [0.95] * 7)
    answers = np.where(rng.random((400, 7)) < skill, truth[:, None], 1 - truth[:, None])
    fused = item_ease().fit(at.Annotations.from_answers(answers))
    assert (fused.predict() == truth)[~hard].mean() > 0.99
    assert fused.state_.items["ease"][~hard].mean() > fused.state_.items["ease"][hard].mean() + 0.2


@pytest.mark.parametrize("scope", ["dataset", "case"])
@pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")
def test_a_folder_is_fused_by_its_name_in_any_process(
    item_ease: type[FusionEstimator], tmp_path: Path, scope: str
) -> None:
    assert "item-ease" in method_names()
    masks, _ = noisy_masks((24, 20), 5)
    write_case_folder(tmp_path / "cases", at.Annotations.from_masks(masks))
    expected = make_estimator("item-ease", scope).fit(at.load(tmp_path / "cases"))
    for jobs in (1, 2):
        fuse(tmp_path / "cases", tmp_path / str(jobs), "item-ease", scope=scope, jobs=jobs)
        for index in range(5):
            posterior = np.load(tmp_path / str(jobs) / "probabilities" / f"item_{index}.npy")
            np.testing.assert_array_equal(posterior, expected.predict_proba_item(index))


def test_a_state_with_items_must_be_declared(item_ease: type[FusionEstimator], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_ease, "has_item_state", False)
    with pytest.raises(TypeError, match="set has_item_state = True"):
        item_ease().fit(at.Annotations.from_masks(noisy_masks()[0], classes=3))
