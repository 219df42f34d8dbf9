"""The warm-up: labels at their word, then weighed raters, before truth and errors are learnt together."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from annotruth.methods import Batch, DataSpec, make_method
from annotruth.methods.warmup import FIRST_WEIGHT, LATEST, MAX_WEIGHT, SMOOTHING, Consensus, TraceRule
from annotruth.nn import IdentityConfusion, noisy_label_loss


def scene(items=4, side=16):
    """A truth of two classes, a rater who is right, one who errs in a quarter of the places, one who says nothing."""
    generator = torch.Generator().manual_seed(0)
    truth = (torch.rand(items, side, side, generator=generator) < 0.3).long()
    flipped = torch.where(torch.rand(items, side, side, generator=generator) < 0.25, 1 - truth, truth)
    labels = torch.stack([truth, flipped, torch.zeros_like(truth)], dim=1).to(torch.uint8)
    return torch.nn.functional.one_hot(truth, 2).movedim(-1, 1).float(), labels


def counted(truth, labels):
    consensus = Consensus(labels.shape[1], truth.shape[1])
    for _ in range(200):
        consensus.balance(truth.clamp(1e-4, 1).log())
    consensus.counts.zero_()  # forget the start
    consensus.count(truth.clamp(1e-4, 1).log(), labels)
    return consensus


def test_matrices_by_hand():
    truth, labels = scene()
    matrices = counted(truth, labels).matrices()
    is_one, say_one = labels.sum(dim=1) >= 2, labels[:, 0] == 1  # counted against the vote of the three
    error = say_one[~is_one].float().mean()
    assert matrices[0, 0, 1].item() == pytest.approx(error.item() * (1 - 2 * SMOOTHING) + SMOOTHING, rel=1e-4)
    torch.testing.assert_close(matrices[2, :, 0], torch.full((2,), 1 - SMOOTHING))
    torch.testing.assert_close(matrices.sum(dim=2), torch.ones(3, 2))


def test_evidence_is_the_posterior_of_dawid_and_skene():
    """With the same matrices and the same prior, the evidence is the posterior that the fusion estimator gives."""
    truth, labels = scene(items=2, side=8)
    consensus = counted(truth, labels)
    ours = consensus.evidence(labels).softmax(dim=1)
    matrices, prior = consensus.matrices().numpy(), np.bincount(truth.argmax(1).flatten()) / truth[:, 0].numel()
    for pixel in [(0, 0, 0), (0, 3, 5), (1, 7, 2)]:
        said = labels[pixel[0], :, pixel[1], pixel[2]]
        joint = np.array([prior[k] * np.prod([matrices[r, k, said[r]] for r in range(3)]) for k in range(2)])
        np.testing.assert_allclose(ours[pixel[0], :, pixel[1], pixel[2]], joint / joint.sum(), rtol=0.02)


def test_a_silent_rater_has_no_say_and_a_missing_label_none_either():
    truth, labels = scene()
    consensus = counted(truth, labels)
    only_silent = labels.clone()
    only_silent[:, :2] = 255
    prior = consensus.evidence(torch.full_like(labels, 255))
    gap = consensus.evidence(only_silent) - prior
    torch.testing.assert_close(gap[:, 1], gap[:, 0])
    nobody = torch.full_like(labels, 255)
    assert consensus.loss(truth.clamp(0.1, 0.9).log(), nobody) == 0


def test_one_label_an_item_teaches_the_same_as_all_labels_on_average():
    """The bound is linear in the labels: each rater alone, weighed up, and averaged, is all of them together."""
    truth, labels = scene()
    consensus = counted(truth, labels)
    together = consensus.evidence(labels)
    alone = []
    for rater in range(3):
        single = torch.full_like(labels, 255)
        single[:, rater] = labels[:, rater]
        alone.append(consensus.evidence(single))
    torch.testing.assert_close(torch.stack(alone).mean(dim=0), together, rtol=1e-4, atol=1e-4)


def test_the_loss_of_few_labels_is_least_at_the_posterior():
    truth, labels = scene()
    consensus = counted(truth, labels)
    labels[:, 2] = 255
    best = consensus.evidence(labels).log_softmax(dim=1).requires_grad_()
    (gradient,) = torch.autograd.grad(consensus.loss(best.log_softmax(dim=1), labels), best)
    assert gradient.abs().max() < 1e-6
    worse = consensus.loss((best.detach() + torch.randn(best.shape)).log_softmax(dim=1), labels)
    assert worse > consensus.loss(best.detach(), labels)


def test_the_loss_of_many_labels_is_the_likelihood_of_all_of_them_together():
    truth, labels = scene()
    consensus = counted(truth, labels)
    log_truth = torch.randn(truth.shape).log_softmax(dim=1)
    matrices, expected = consensus.matrices(), 0.0
    for item, y, x in np.ndindex(4, 16, 16):
        chance = sum(
            log_truth[item, k, y, x].exp() * math.prod(matrices[r, k, int(labels[item, r, y, x])] for r in range(3))
            for k in range(2)
        )
        expected -= math.log(chance) / (4 * 16 * 16)
    assert consensus.loss(log_truth, labels).item() == pytest.approx(expected, rel=1e-5)


def test_a_rare_class_that_the_network_is_unsure_of_does_not_vanish():
    """Of five places that look alike it is in two: the network cannot know better than 0.4, and learns that."""
    labels = (torch.arange(1000) % 5 < 2).long().expand(1, 3, 1000)
    consensus = Consensus(3, 2)
    logit = torch.zeros((), requires_grad=True)
    optimiser = torch.optim.Adam([logit], lr=0.1)
    for _ in range(200):
        log_truth = torch.stack([-logit / 2, logit / 2]).log_softmax(dim=0).view(1, 2, 1).expand(1, 2, 1000)
        consensus.count(log_truth, labels)
        optimiser.zero_grad()
        consensus.loss(log_truth, labels).backward()
        optimiser.step()
    assert logit.sigmoid().item() == pytest.approx(0.4, abs=0.02)


def test_counting_forgets_and_knows_only_the_raters_of_the_batch():
    truth, labels = scene()
    consensus = Consensus(5, 2)
    consensus.counts.zero_()
    consensus.count(truth.clamp(0.1, 0.9).log(), labels, raters=torch.tensor([4, 0, 2]))
    assert (consensus.counts.sum(dim=(1, 2)) > 0).tolist() == [True, False, True, False, True]
    before = consensus.counts.clone()
    consensus.count(truth.clamp(0.1, 0.9).log(), labels, raters=torch.tensor([4, 0, 2]))
    torch.testing.assert_close(consensus.counts, 1.95 * before)


def test_a_rare_class_is_taken_for_true_where_it_is_likeliest_although_nowhere_likely():
    """A young network: no pixel above one half, but ten in a hundred stand out, and ten are expected."""
    probability = torch.full((1, 1, 10, 10), 0.07)
    probability[..., 0] = 0.4
    log_truth = torch.cat([1 - probability, probability], dim=1).log()
    consensus, nobody = Consensus(1, 2), torch.full((1, 1, 10, 10), 255)
    assert consensus.hard_truth(log_truth, nobody)[:, 1].sum() == 0
    for _ in range(20):
        consensus.balance(log_truth)
    torch.testing.assert_close(consensus.hard_truth(log_truth, nobody)[:, 1], (probability[:, 0] == 0.4).float())


def test_sure_networks_are_taken_at_their_word():
    truth, _ = scene()
    consensus = Consensus(3, 2)
    for _ in range(20):
        consensus.balance(truth.clamp(1e-3, 1 - 1e-3).log())
    nobody = torch.full((4, 3, 16, 16), 255)
    torch.testing.assert_close(consensus.hard_truth(truth.clamp(1e-3, 1 - 1e-3).log(), nobody), truth)


def test_three_people_are_counted_against_their_vote_and_say_what_is_true():
    """However wrong the network; a rater alone with it is counted against the network."""
    truth, labels = scene()
    labels = torch.cat([labels, labels[:, :1]], dim=1)  # now two are right
    wrong = (1 - truth).clamp(0.2, 0.8).log()
    consensus = Consensus(4, 2)
    for _ in range(50):
        consensus.count(wrong, labels)
    vote = (labels.sum(dim=1) >= 3).long()  # ties go to the wrong network here
    vote[labels.sum(dim=1) == 2] = wrong.argmax(dim=1)[labels.sum(dim=1) == 2]
    share = ((labels[:, 0] == 1) & (vote == 1)).sum() / (vote == 1).sum()
    assert consensus.matrices()[0, 1, 1].item() == pytest.approx(
        share.item() * (1 - 2 * SMOOTHING) + SMOOTHING, abs=1e-3
    )
    assert (consensus.hard_truth(wrong, labels) == truth).float().mean() > 0.9
    alone = labels.clone()
    alone[:, 1:] = 255
    torch.testing.assert_close(consensus.hard_truth(wrong, alone), 1 - truth)


def test_classes_told_apart_by_hand():
    truth, labels = scene()
    consensus = Consensus(3, 3)
    three = torch.cat([truth.clamp(1e-6, 1), torch.full_like(truth[:, :1], 1e-9)], dim=1).log()
    for _ in range(100):
        consensus.count(three, labels)
    assert consensus.class_separation() == pytest.approx(1, abs=1e-4), (
        "nobody names the third class, so it does not matter"
    )
    unsure = Consensus(3, 2)
    unsure.count(torch.full_like(truth, 0.5).log(), labels)
    best = max(min(mean, 1 - mean) for mean in (labels[:, r].float().mean().item() for r in range(3)))
    assert unsure.class_separation() == pytest.approx(best, abs=1e-4)


def test_whether_the_vote_or_the_network_decides():
    truth, labels = scene()
    everybody, one = Consensus(3, 2), Consensus(3, 2)
    everybody.count(truth.clamp(0.1, 0.9).log(), labels)
    assert everybody.enough_votes()
    labels[:, 1:] = 255
    one.count(truth.clamp(0.1, 0.9).log(), labels)
    assert not one.enough_votes()


@pytest.mark.parametrize(("name", "early"), [("global-cm", 1.0), ("pixel-cm", 10.0)])
def test_errors_are_learnt_faster_as_long_as_the_vote_decides(name, early):
    method = make_method(name, "masks", {"warmup": 0.4})
    model = method.build(DataSpec(1, 3, 2, 2))
    truth, labels = scene()
    model.consensus.count(truth.clamp(0.1, 0.9).log(), labels)
    assert method.stages.annotator_pace(model, 0.1) == early
    model.joint_from.fill_(0.4)
    assert method.stages.annotator_pace(model, 0.5) == 1


@pytest.mark.parametrize("name", ["global-cm", "pixel-cm", "pixel-cm-lowrank"])
def test_the_three_stages(name):
    method = make_method(name, "masks", {"warmup": 0.6, "trace_weight": 0.0})
    torch.manual_seed(0)
    model = method.build(DataSpec(1, 3, 2, 2))
    _, labels = scene()
    batch = Batch(torch.rand(4, 1, 16, 16), labels)
    at_their_word, likelihood = method.loss(model, batch, progress=0.1)
    assert at_their_word.item() == likelihood.item()
    torch.testing.assert_close(
        at_their_word, noisy_label_loss(model.log_truth(batch.images), IdentityConfusion(3, 2), labels)[0]
    )
    assert not method.stages.objective_is_final(model, 0.5)
    weighed, likelihood = method.loss(model, batch, progress=LATEST)
    assert model.weighed_from == pytest.approx(LATEST)
    assert weighed.item() != likelihood.item()
    model.zero_grad()
    weighed.backward()
    assert any(weight.grad.abs().max() > 0 for weight in model.annotators.parameters())
    together, _ = method.loss(model, batch, progress=LATEST + 0.31)
    assert method.stages.objective_is_final(model, LATEST + 0.31)
    joint = noisy_label_loss(model.log_truth(batch.images), model.annotators(batch.images), labels)[0]
    torch.testing.assert_close(together, joint, rtol=1e-3, atol=1e-4)


def test_raters_are_weighed_only_once_the_network_tells_classes_apart():
    class Seen(torch.nn.Module):
        scores = torch.zeros(4, 2, 16, 16)

        def forward(self, images):
            return self.scores

    truth, labels = scene()
    method, network = make_method("global-cm", "masks", {"warmup": 0.4}), Seen()
    model = method.build(DataSpec(1, 3, 2, 2), network)
    batch = Batch(torch.zeros(4, 1, 16, 16), labels)
    method.loss(model, batch, progress=0.25)
    assert model.weighed_from == math.inf
    network.scores = 8 * truth
    for step in range(30):
        method.loss(model, batch, progress=0.26 + step / 1000)
    assert 0.255 < model.weighed_from < 0.285
    assert model.joint_from == math.inf
    method.loss(model, batch, progress=0.5)
    assert model.joint_from == pytest.approx(0.5)


def test_without_warm_up_everything_is_learnt_together_at_once():
    _, labels = scene()
    method = make_method("global-cm", "masks", {"warmup": 0.0})
    model = method.build(DataSpec(1, 3, 2, 2))
    for _ in range(2):
        method.loss(model, Batch(torch.rand(4, 1, 16, 16), labels), progress=0.0)
    assert method.stages.objective_is_final(model, 0.0)


def test_validation_counts_nothing():
    method = make_method("global-cm", "masks", {"warmup": 0.4})
    model = method.build(DataSpec(1, 3, 2, 2)).eval()
    _, labels = scene()
    method.loss(model, Batch(torch.rand(4, 1, 16, 16), labels), progress=0.25)
    assert torch.equal(model.consensus.counts, Consensus(3, 2).counts)


def test_the_trace_gains_weight_only_while_labels_are_explained():
    rule = TraceRule()
    rule.after_epoch(0.5, 0.1)
    assert rule.weight == 0
    for _ in range(10):
        rule.after_epoch(0.4, 0.7)
    assert rule.weight.item() == pytest.approx(MAX_WEIGHT)
    rule.after_epoch(0.41, 0.8)
    assert rule.weight.item() == pytest.approx(MAX_WEIGHT / 4)
    rule.after_epoch(math.inf, 0.9)
    assert rule.weight.item() == pytest.approx(MAX_WEIGHT / 16)
    rule.after_epoch(0.4, 0.95)
    assert rule.weight.item() == pytest.approx(max(MAX_WEIGHT / 8, FIRST_WEIGHT))


def test_the_weight_is_found_or_given():
    method = make_method("pixel-cm", "masks", {"warmup": 0.4})
    model = method.build(DataSpec(1, 3, 2, 2))
    method.stages.after_epoch(model, 0.5, progress=0.1)
    assert model.trace_rule.best == math.inf  # the warm-up measures something else
    model.joint_from.fill_(0.3)
    method.stages.after_epoch(model, 0.5, progress=0.9)
    assert model.trace_rule.weight.item() == pytest.approx(FIRST_WEIGHT)
    _, labels = scene()
    batch = Batch(torch.rand(4, 1, 16, 16), labels)
    model.eval()
    found, likelihood = method.loss(model, batch, progress=0.9)
    given, _ = make_method("pixel-cm", "masks", {"warmup": 0.4, "trace_weight": FIRST_WEIGHT}).loss(
        model, batch, progress=0.9
    )
    torch.testing.assert_close(found, given)
    assert found > likelihood
