"""Fusion by confidences, each rule against pixels worked out one by one; and the inversion of equation 4."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from annotruth.errors import InputError
from annotruth.nn.prism.fusion import MASK_SLIPS, RULES, SLIPS, confidences, decided, fuse, opinions, said, shares


def problem(seed: int, raters: int, classes: int, pixels: int = 3, patches: int = 2):
    """Labels, some missing, with matrices, a mask and trust."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, (patches, raters, pixels)).astype(np.uint8)
    labels[rng.random(labels.shape) < 0.2] = 255
    matrices = rng.dirichlet(np.ones(classes), (patches, raters, classes))
    truth = rng.dirichlet(np.ones(classes), (patches, pixels)).swapaxes(1, 2)
    trust = rng.uniform(0.2, 2, (patches, raters))
    return labels, matrices, truth, trust


def by_hand(rule, labels, matrices, truth, trust, slips):
    """One pixel after the other, in plain Python."""
    patches, raters, pixels = labels.shape
    classes = truth.shape[1]
    fused = np.zeros_like(truth)
    for patch in range(patches):
        for pixel in range(pixels):
            prior = truth[patch, :, pixel]
            score = np.log((1 - MASK_SLIPS) * prior + MASK_SLIPS / classes) if rule == "bayes" else np.zeros(classes)
            total = 0.0
            for rater in range(raters):
                label, count = labels[patch, rater, pixel], trust[patch, rater]
                if label == 255:
                    continue
                thought = sum(prior[k] * matrices[patch, rater, k, label] for k in range(classes))
                for k in range(classes):
                    if rule == "bayes":
                        likely = (1 - slips) * matrices[patch, rater, k, label] + slips / classes
                        score[k] += count * np.log(likely)
                    elif k == label:
                        score[k] += count * (thought if rule == "weights" else np.log(max(thought, 1e-6)))
                total += count * thought
            if rule == "weights":
                fused[patch, :, pixel] = score / total if total > 0 else 1 / classes
            else:
                fused[patch, :, pixel] = np.exp(score) / np.exp(score).sum()
    return fused


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000), raters=st.integers(1, 4), classes=st.integers(2, 4), rule=st.sampled_from(RULES),
    slips=st.sampled_from([0.01, SLIPS, 0.5]),
)  # fmt: skip
def test_fusion_against_pixels_one_by_one(seed, raters, classes, rule, slips):
    labels, matrices, truth, trust = problem(seed, raters, classes)
    fused = fuse(
        rule, said(torch.from_numpy(labels), classes).double(), torch.from_numpy(matrices), torch.from_numpy(truth),
        torch.from_numpy(trust), slips=slips,
    )  # fmt: skip
    np.testing.assert_allclose(fused.numpy(), by_hand(rule, labels, matrices, truth, trust, slips), atol=1e-6)
    np.testing.assert_allclose(fused.sum(dim=1).numpy(), 1, atol=1e-6)


def test_equation_4_prefers_what_nobody_said():
    """Three of three raters, all reliable, say class 1 of three classes; read literally, the others win."""
    reliable = (0.85 * torch.eye(3) + 0.05).expand(1, 3, 3, 3)
    given_labels, even = said(torch.ones(1, 3, 1, dtype=torch.uint8), classes=3), torch.full((1, 3, 1), 1 / 3)
    fused = {rule: fuse(rule, given_labels, reliable, even)[0, :, 0] for rule in RULES}
    assert fused["bayes"].argmax() == fused["weights"].argmax() == 1
    assert fused["literal"].argmin() == 1
    assert fused["literal"][1] < 0.05
    # The surer DivP is of a rater's label, the less it counts against it: never does it count for it.
    surer = fuse("literal", given_labels, reliable, torch.tensor([[[0.0], [1.0], [0.0]]]))[0, :, 0]
    assert fused["literal"][1] < surer[1] < 1 / 3


def test_a_blank_rater_says_nothing_to_bayes_however_sure_of_their_label():
    blank, faithful = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[0.9, 0.1], [0.1, 0.9]])
    matrices = torch.stack([blank, faithful])[None]
    given_labels, even = said(torch.tensor([[[0], [1]]]), classes=2), torch.full((1, 2, 1), 0.5)
    alone = fuse("bayes", given_labels[:, 1:], matrices[:, 1:], even)
    torch.testing.assert_close(fuse("bayes", given_labels, matrices, even), alone)
    assert fuse("weights", given_labels, matrices, even)[0, 1, 0] < 0.5  # they outvote somebody by weight


def test_trust_of_zero_leaves_a_rater_out_and_nobody_is_even():
    labels, matrices, truth, _ = (torch.from_numpy(part) for part in problem(1, 3, 2))
    given_labels = said(labels, 2).double()
    without = given_labels.clone()
    without[:, 0] = 0
    trust = torch.tensor([[0.0, 1.0, 1.0]]).expand(2, -1)
    for rule in RULES:
        torch.testing.assert_close(
            fuse(rule, given_labels, matrices, truth, trust), fuse(rule, without, matrices, truth)
        )
    nobody = fuse("bayes", torch.zeros_like(given_labels), matrices, truth)
    torch.testing.assert_close(nobody, (1 - MASK_SLIPS) * truth + MASK_SLIPS / 2)  # what is seen alone
    assert (shares(torch.zeros_like(given_labels), torch.ones(2, 3, 3)) == 0.5).all()


def test_opinions_and_confidences_against_sums():
    _, matrices, truth, _ = problem(2, 3, 4)
    thought, right = (f(torch.from_numpy(truth), torch.from_numpy(matrices)) for f in (opinions, confidences))
    np.testing.assert_allclose(thought, np.einsum("pks,prkj->prjs", truth, matrices))
    np.testing.assert_allclose(right, np.einsum("pks,prkk->prs", truth, matrices))


def test_an_unknown_rule_lists_the_known_ones():
    with pytest.raises(InputError, match=r"Unknown fusion 'sum'. Known: bayes, weights, literal"):
        fuse("sum", torch.zeros(1, 1, 2, 1), torch.zeros(1, 1, 2, 2), torch.zeros(1, 2, 1))


def test_the_likeliest_class_is_decided_on_and_ties_are_shared():
    fused = torch.tensor([[[0.2, 0.4, 1 / 3], [0.5, 0.4, 1 / 3], [0.3, 0.2, 1 / 3]]])
    expected = torch.tensor([[[0, 0.5, 1 / 3], [1, 0.5, 1 / 3], [0, 0, 1 / 3]]])
    torch.testing.assert_close(decided(fused), expected)
