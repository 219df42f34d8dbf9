"""oracle-cm: the matrices that are known, how the network learns through them, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from annotruth import Annotations, Classifier, Segmenter, load_model
from annotruth.errors import InputError
from annotruth.methods import Batch, DataSpec, make_method
from annotruth.simulate import label_group, noisy_digits, simulate_labels, simulate_masks
from annotruth.training.datasets import MaskDataset


def standardised(annotations, method):
    items = MaskDataset(annotations, method)
    return items.standardise(items.measure())


@pytest.fixture(scope="module")
def simulation():
    images, truth, _ = noisy_digits(12)
    return images, simulate_masks(truth, raters=["good", "over", "blank"])


@pytest.fixture(scope="module")
def digits(simulation):
    return simulation[1].annotations(images=simulation[0])


def tiny(**options) -> Segmenter:
    return Segmenter("oracle-cm", max_epochs=2, batch_size=4, validation=0.25, progress=False, **options)


def test_counted_from_the_truth_item_by_item_and_over_all_items(simulation, digits):
    method = make_method("oracle-cm", "masks")
    batch = standardised(digits, method).__getitems__([3, 5])
    expected = simulation[1].confusion_per_item[[3, 5]]
    np.testing.assert_allclose(batch.confusion, expected, rtol=1e-6)
    model = method.build(DataSpec(1, 3, 2, 2))
    method.prepare(model, digits)
    np.testing.assert_allclose(model.annotators.matrices, simulation[1].confusion, rtol=1e-6)


def test_other_methods_know_nothing_beforehand(digits):
    batch = standardised(digits, None).__getitems__([0])
    assert batch.confusion is None


def test_rows_nobody_has_evidence_for(digits):
    """An item without the class gets the rater's row over all items; where there is none at all, the rater is right."""
    truth, masks = digits.truth.copy(), digits.masks.copy()
    truth[0] = 0
    masks[:, 2] = 255
    bare = Annotations.from_masks(masks, digits.images, truth=truth)
    method = make_method("oracle-cm", "masks")
    known = method.known_confusion(bare, 0)
    assert known[:2, 1].isnan().all()
    assert known[2].isnan().all()
    model = method.build(DataSpec(1, 3, 2, 2))
    method.prepare(model, bare)
    assert not model.annotators.matrices.isnan().any()
    torch.testing.assert_close(model.annotators.matrices[2], torch.eye(2))
    loss, _ = method.loss(model, standardised(bare, method).__getitems__([0, 1]), 0.0)
    assert torch.isfinite(loss)


@pytest.mark.parametrize("own", [True, False])
def test_the_loss_by_hand(own):
    """−log Σ_i p_i · A[i, label], each item with its own matrix, or all with the given ones."""
    generator = torch.Generator().manual_seed(0)
    given = torch.rand(3, 2, 2, generator=generator).softmax(dim=2)
    per_item = torch.rand(4, 3, 2, 2, generator=generator).softmax(dim=3)
    method = make_method("oracle-cm", "masks")
    model = method.build(DataSpec(1, 3, 2, 2)).eval()
    model.annotators.matrices.copy_(given)
    images = torch.randn(4, 1, 8, 8, generator=generator)
    labels = torch.randint(0, 2, (4, 3, 8, 8), generator=generator, dtype=torch.uint8)
    labels[2, 0] = 255
    loss, likelihood = method.loss(model, Batch(images, labels, confusion=per_item if own else None), 0.5)
    truth = model.log_truth(images).exp()
    matrices = per_item if own else given.expand(4, -1, -1, -1)
    total, count = 0.0, 0
    for item in range(4):
        for rater in range(3):
            if (item, rater) == (2, 0):
                continue
            chance = torch.einsum("ihw,ij->jhw", truth[item], matrices[item, rater])
            total += -chance.gather(0, labels[item, rater][None].long()).log().sum().item()
            count += 64
    assert loss.item() == pytest.approx(total / count, rel=1e-4)
    assert likelihood.item() == pytest.approx(loss.item())
    few = Batch(images, labels[:, [2, 0]], None, torch.tensor([2, 0]), per_item if own else None)
    alone, _ = method.loss(model, few, 0.5)
    assert torch.isfinite(alone)
    assert alone.item() != pytest.approx(loss.item(), rel=1e-6)


def test_nothing_is_learnt_of_the_raters(simulation, digits, tmp_path):
    _, simulated = simulation
    given = dict(zip(simulated.raters, simulated.confusion.tolist()))
    with (tmp_path / "confusion.json").open("w") as file:
        json.dump({"orientation": "[true][observed]", "raters": given}, file)
    models = [tiny(matrices=given).fit(digits), tiny(matrices=str(tmp_path / "confusion.json")).fit(digits)]
    (tmp_path / "confusion.json").unlink()  # a trained model does not need it any more
    for model in models:
        np.testing.assert_allclose(model.confusion_, simulated.confusion, atol=1e-6)
        assert model.warnings_ == []
        again = load_model(model.save(tmp_path / "m.annotruth"))
        np.testing.assert_array_equal(again.predict_proba(digits.images), model.predict_proba(digits.images))
    np.testing.assert_array_equal(*(model.predict_proba(digits.images) for model in models))


def test_given_matrices_need_no_truth(simulation, digits):
    without = Annotations.from_masks(digits.masks, digits.images, digits.raters)
    given = {rater: matrix.tolist() for rater, matrix in zip(simulation[1].raters, simulation[1].confusion)}
    assert tiny(matrices=given).fit(without).predict(digits.images).shape == (12, 28, 28)
    with pytest.raises(InputError, match=r"matrices=.*truth.*neither"):
        tiny().fit(without)


def test_a_label_that_the_matrices_call_impossible_does_not_end_the_training(digits):
    always_background = [[1.0, 0.0], [1.0, 0.0]]
    model = tiny(matrices=dict.fromkeys(digits.raters, always_background)).fit(digits)
    assert np.isfinite(model.history_.train_loss).all()


GOOD = [[0.9, 0.1], [0.2, 0.8]]


@pytest.mark.parametrize(
    ("matrices", "words"),
    [
        ({"good": GOOD, "over": GOOD}, "lack some raters: blank"),
        ({"good": GOOD, "over": GOOD, "blank": GOOD, "zoe": GOOD}, "do not know: zoe"),
        ({"good": GOOD, "over": GOOD, "blank": np.eye(3).tolist()}, "rater blank must be 2×2 numbers"),
        ({"good": GOOD, "over": [[1, 0], [1]], "blank": GOOD}, "rater over must be 2×2 numbers"),
        ({"good": GOOD, "over": "faithful", "blank": GOOD}, "rater over must be 2×2 numbers"),
        ({"good": [[0.9, 0.2], [0.2, 0.8]], "over": GOOD, "blank": GOOD}, "rater good .*rows sum to 1.1, 1"),
        ({"good": [[1.5, -0.5], [0.2, 0.8]], "over": GOOD, "blank": GOOD}, "rater good .*from 0 to 1"),
        ({"good": [[np.nan, 1.0], [0.2, 0.8]], "over": GOOD, "blank": GOOD}, "rater good .*from 0 to 1"),
        ([GOOD, GOOD, GOOD], "a matrix by rater"),
        ("nowhere.json", r"nowhere\.json: matrices cannot be read"),
    ],
)
def test_wrong_matrices_are_refused(digits, matrices, words, tmp_path):
    with pytest.raises(InputError, match=words):
        tiny(matrices=matrices).fit(digits, run_folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_label_tables(tmp_path):
    """Matrices are counted over all answers of a rater, and the classifier learns through them."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 300)
    features = np.eye(3)[truth] + rng.normal(0, 0.2, (300, 3))
    simulated = simulate_labels(truth, label_group("pairwise-flipper", 4, 3, skill=0.7), keep=2)
    table = Annotations.from_answers(simulated.answers, features, truth=np.where(rng.random(300) < 0.3, -1, truth))
    model = Classifier("oracle-cm", network="linear", max_epochs=20, learning_rate=0.03, progress=False).fit(table)
    assert model.score(features, truth) > 0.9
    for rater in range(4):
        for true in range(3):
            given = simulated.answers[(table.truth == true) & (simulated.answers[:, rater] >= 0), rater]
            share = np.bincount(given, minlength=3) / len(given)
            np.testing.assert_allclose(model.confusion_[rater, true], share, atol=1e-6)
    again = load_model(model.save(tmp_path / "m.annotruth"))
    np.testing.assert_array_equal(again.predict_proba(features), model.predict_proba(features))
