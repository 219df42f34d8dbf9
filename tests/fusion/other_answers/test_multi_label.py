"""Several findings per item, on their own and with those that come together."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from annotruth import Annotations, DawidSkene, Findings, MultiLabelDawidSkene
from annotruth.errors import InputError
from annotruth.fusion.other_answers.multi_label import FindingTree


def _findings(
    n_items: int, n_findings: int, n_raters: int = 4, keep: float = 0.8, seed: int = 0
) -> tuple[Findings, np.ndarray, np.ndarray]:
    """Findings that mostly come with another; what raters said (items, raters, findings), -1 = not asked; the truth."""
    rng = np.random.default_rng(seed)
    truth = np.zeros((n_items, n_findings), dtype=bool)
    truth[:, 0] = rng.random(n_items) < 0.35
    for finding in range(1, n_findings):
        truth[:, finding] = rng.random(n_items) < np.where(truth[:, (finding - 1) // 2], 0.75, 0.06)
    shape = n_items, n_raters, n_findings
    said = np.where(
        truth[:, None], rng.random(shape) < rng.uniform(0.55, 0.85, shape[1:]),
        rng.random(shape) < rng.uniform(0.05, 0.2, shape[1:]),
    ).astype(int)  # fmt: skip
    said[np.broadcast_to((rng.random(shape[:2]) > keep)[..., None], shape)] = -1
    item, rater, finding = np.nonzero(said >= 0)
    names = (tuple(f"{letter}{n}" for n in range(count)) for letter, count in zip("irf", shape))
    return Findings(*names, item, rater, finding, said[item, rater, finding] == 1), said, truth


def test_one_by_one_findings_are_those_of_dawid_and_skene() -> None:
    answers, said, _ = _findings(150, 3, keep=1.0)
    fused = MultiLabelDawidSkene(dependence=False, max_iter=2000, tol=1e-13).fit(answers)
    for number in range(3):
        common = fused.prevalence_[number] * 150 + 0.5  # this model has half an item more of either kind
        prior = np.array([151 - common, common]) / 151
        matrices = np.array([[2.0, 1.0], [1.0, 2.0]])
        alone = DawidSkene(prior=prior, confusion_prior=matrices, max_iter=5000, tol=1e-13)
        alone.fit(Annotations.from_answers(said[:, :, number], classes=2))
        np.testing.assert_allclose(fused.predict_proba()[:, number], alone.predict_proba()[:, 1], atol=1e-4)
        np.testing.assert_allclose(fused.sensitivity_[:, number], alone.confusion_[:, 1, 1], atol=1e-4)


def test_beliefs_in_a_tree_are_those_of_all_combinations() -> None:
    rng = np.random.default_rng(0)
    table = rng.dirichlet([1, 1], (5, 2))
    table[2, 1] = table[2, 0]
    parent = np.array([2, 0, -1, 0, 2])
    told = rng.normal(0, 2, (7, 5, 2))
    posterior, pairs, evidence = FindingTree(np.array([2, 0, 1, 4, 3]), parent, table).beliefs(told)
    expected, joint = np.zeros((7, 5, 2)), np.zeros((7, 5, 2, 2))
    for there in product((0, 1), repeat=5):
        chance = np.exp(sum(told[:, f, there[f]] for f in range(5)))
        for f in range(5):
            chance = chance * table[f, there[parent[f]] if parent[f] >= 0 else 0, there[f]]
        for f in range(5):
            expected[:, f, there[f]] += chance
            joint[:, f, there[parent[f]], there[f]] += chance
    np.testing.assert_allclose(evidence, np.log(expected[:, 0].sum(axis=1)))
    np.testing.assert_allclose(posterior, expected / expected.sum(axis=2, keepdims=True))
    linked = parent >= 0
    np.testing.assert_allclose(pairs[:, linked], (joint / joint.sum(axis=(2, 3), keepdims=True))[:, linked])


def test_findings_that_come_together_are_found_better_together() -> None:
    answers, _, truth = _findings(300, 7, seed=1)
    alone = MultiLabelDawidSkene(dependence=False).fit(answers).predict()
    fused = MultiLabelDawidSkene().fit(answers)
    together = fused.predict()
    assert (together == truth).all(axis=1).mean() > (alone == truth).all(axis=1).mean() + 0.08
    assert (together == truth).mean() > (alone == truth).mean() + 0.01
    assert len(fused.links_) == 6
    assert (np.diff(fused.log_likelihood_) >= -1e-8).all()


def test_raters_are_measured_by_what_they_were_asked() -> None:
    answers, _, _ = _findings(60, 2)
    kept = ~((answers.rater == 0) & (answers.finding == 1))
    parts = (each[kept] for each in (answers.item, answers.rater, answers.finding, answers.present))
    fused = MultiLabelDawidSkene().fit(Findings(answers.items, answers.raters, answers.findings, *parts))
    assert fused.skill_[0] == pytest.approx((fused.sensitivity_[0, 0] + fused.specificity_[0, 0]) / 2)
    assert {"skill", "sensitivity to f0", "specificity to f1"} < set(fused.ranking_.columns)


def test_priors_that_are_no_counts_are_refused() -> None:
    with pytest.raises(InputError, match="right and wrong must be positive"):
        MultiLabelDawidSkene(wrong=0).fit(_findings(5, 2)[0])
