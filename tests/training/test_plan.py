"""Plans: made by the images, read and changed by hand, obeyed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.training.batches import EpochSampler
from annotruth.training.plan import FEWEST_STEPS, PATCH_SIDE, Plan

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.AnnotruthWarning")


def make_plan(annotations: at.Annotations, **asked: Any) -> Plan:
    return at.Segmenter("majority", **asked).make_plan(annotations)


def cases(*shapes: tuple[int, ...], raters: int = 2) -> at.Annotations:
    rng = np.random.default_rng(0)
    masks = [rng.integers(0, 2, (raters, *shape)).astype(np.uint8) for shape in shapes]
    images = [rng.random((1, *shape), dtype=np.float32) for shape in shapes]
    return at.Annotations.from_masks(masks, images=images)


def test_small_images_are_taken_whole_and_large_ones_by_patches():
    assert make_plan(cases((40, 30), (20, 35))).patch_size is None
    assert make_plan(cases((40, 600), (20, 300))).patch_size == (40, PATCH_SIDE[2])
    assert make_plan(cases((80, 20, 90))).patch_size == (64, 20, 64)
    assert make_plan(cases((80, 20, 90)), patch_size=(16, 16, 16)).network.strides[-1] == (2, 2, 2)


def test_small_data_sets_get_steps_and_large_images_small_batches():
    few = make_plan(cases(*[(8, 8)] * 70))
    many = make_plan(cases(*[(8, 8)] * (20 * FEWEST_STEPS)))
    assert (few.batch_size, many.batch_size) == (1, 16)
    assert make_plan(cases(*[(8, 8)] * 70), batch_size=7).batch_size == 7


def test_of_few_large_images_an_epoch_takes_several_patches():
    few, many = (make_plan(cases(*[(400, 300)] * n, raters=1), patch_size=(64, 64)) for n in (4, 40))
    assert few.patches == min(round(400 * 300 / 64**2), FEWEST_STEPS // 4) == 16
    assert many.patches == 2
    assert make_plan(cases((40, 30), (20, 35))).patches == 1


def test_patches_of_an_item_differ_within_an_epoch_and_all_are_learnt_from():
    annotations = cases(*[(40, 30)] * 4)
    model = at.Segmenter("majority", patch_size=(16, 16), max_epochs=1, validation=0, progress=False)
    train = model._read(model._check(annotations)).train
    order = list(EpochSampler(train, seed=0))
    assert len(order) == len(train) * model.plan_.patches
    batch = train.__getitems__([1, 1 + len(train)])
    assert batch.positions.tolist() == [1, 1]
    assert not batch.images[0].equal(batch.images[1])


@pytest.mark.parametrize("network", ["monai:SegResNet", "monai:BasicUNet"])
def test_networks_of_monai_are_trained_and_kept(tmp_path, network):
    annotations = cases(*[(16, 12)] * 6)
    model = at.Segmenter("majority", network=network, max_epochs=1, progress=False).fit(annotations)
    again = at.load_model(model.save(tmp_path / "m.annotruth"))
    images = [annotations.item_image(0)]
    np.testing.assert_array_equal(again.predict_proba(images), model.predict_proba(images))
    with pytest.raises(InputError, match="MONAI has no network"):
        at.Segmenter("majority", network="monai:Nothing", progress=False).make_plan(annotations)


def test_a_plan_is_read_as_it_was_written(tmp_path):
    plan = replace(make_plan(cases((40, 400))), clip=((-10.0, 5.5),), spacing=(0.5, 1.0))
    path = tmp_path / "plan.json"
    path.write_text(plan.to_json())
    assert Plan.read(path) == Plan.read(str(path)) == Plan.read(json.loads(plan.to_json())) == plan
    assert max(len(line) for line in plan.to_json().splitlines()) < 100  # a line per entry, for people


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"patch_size": [4, 4]}, "too deep for patches of 4×4.*at least 16×16"),
        ({"patch_size": [64]}, "for each of the 2 axes"),
        ({"spacing": [0, 1]}, "spacing needs a positive number"),
        ({"spacing": [float("nan"), 1]}, "spacing needs a positive number"),
        ({"clip": [[3, 1]]}, "clip needs a lowest"),
        ({"mirror": [2]}, "axes from 0 to 1"),
        ({"foreground": 2}, "share of the patches"),
        ({"batch_size": 0}, "batch_size must be a positive whole number"),
        ({"colour": 1}, "unknown: colour"),
        ({"network": 3}, "no plan of annotruth"),
    ],
)
def test_a_plan_that_cannot_work_is_refused_before_anything_is_trained(change, words):
    annotations = cases(*[(32, 32)] * 4)
    plan = json.loads(make_plan(annotations).to_json())
    with pytest.raises(InputError, match=words):
        at.Segmenter("majority", plan={**plan, **change}, progress=False).fit(annotations)


def test_a_file_that_is_no_plan_is_named(tmp_path):
    bad = tmp_path / "plan.json"
    for text, words in (("{", "not JSON"), ("[]", "no plan of annotruth"), ("{}", "no plan of annotruth")):
        bad.write_text(text)
        with pytest.raises(InputError, match=f"plan.json.*{words}"):
            Plan.read(bad)
    with pytest.raises(InputError, match=r"absent.json: cannot be opened"):
        Plan.read(tmp_path / "absent.json")


def test_what_is_asked_for_beside_a_plan_counts_and_another_network_is_refused():
    annotations = cases(*[(16, 16)] * 4)
    plan = make_plan(annotations)
    asked = at.Segmenter("majority", plan=plan, batch_size=2, patch_size=(8, 8)).make_plan(annotations)
    assert (asked.batch_size, asked.patch_size, asked.network) == (2, (8, 8), plan.network)
    for name, value in {"network": "standard", "deep_supervision": True}.items():
        with pytest.raises(InputError, match=f"leave out {name}"):
            at.Segmenter("majority", plan=plan, progress=False, **{name: value}).fit(annotations)
    with pytest.raises(InputError, match="for images of 2 axes, but these have 3"):
        at.Segmenter("majority", plan=plan, progress=False).fit(cases((8, 8, 8)))


@pytest.mark.parametrize("network", ["small", "standard", "residual"])
def test_a_trained_model_keeps_its_plan(tmp_path, network):
    annotations = cases(*[(16, 12)] * 6)
    model = at.Segmenter("majority", network=network, max_epochs=1, progress=False).fit(annotations)
    again = at.load_model(model.save(tmp_path / "m.annotruth"))
    assert again.plan_ == model.plan_
    assert again.plan_.network.name == network == model.settings_["network"]
    images = [annotations.item_image(index) for index in range(2)]
    np.testing.assert_array_equal(again.predict_proba(images), model.predict_proba(images))


def test_a_plan_changed_by_hand_is_obeyed():
    annotations = cases(*[(16, 12)] * 6)
    plan = make_plan(annotations)
    narrow = replace(plan, network=plan.network.begun_with(2), batch_size=3)
    model = at.Segmenter("majority", plan=narrow, max_epochs=1, progress=False).fit(annotations)
    assert model.settings_["batch_size"] == 3
    assert model.module_.truth.network.encoder.stages[0].conv1.conv.out_channels == 2


def test_patches_larger_than_every_image_are_refused():
    with pytest.raises(InputError, match="64×64 is larger than the largest image, 16×12"):
        at.Segmenter("majority", patch_size=(64, 64), progress=False).fit(cases(*[(16, 12)] * 6))


def test_an_unknown_network_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match="standard"):
        at.Segmenter("majority", network="huge", progress=False).fit(cases(*[(16, 12)] * 6))


def test_one_case_is_enough():
    assert at.Segmenter("majority", max_epochs=1, progress=False).fit(cases((16, 12))).predict(
        [np.zeros((1, 16, 12), np.float32)]
    ).shape == (1, 16, 12)


def two_parts(items: int = 8) -> at.Annotations:
    """Two boxes, the second always to the right of the first, anywhere up and down."""
    rng, masks = np.random.default_rng(0), np.zeros((items, 2, 12, 10), np.uint8)
    for mask in masks:
        for number, columns in ((1, slice(0, 4)), (2, slice(6, 10))):
            top = int(rng.integers(0, 9))
            mask[:, top : top + 3, columns] = number
    return at.Annotations.from_masks(masks, images=masks[:, :1].astype(np.float32))


def test_images_are_mirrored_only_along_axes_that_tell_no_classes_apart():
    assert make_plan(two_parts()).mirror == (0,)
    one_part = np.minimum(two_parts().masks, 1)
    assert make_plan(at.Annotations.from_masks(one_part, images=two_parts().images)).mirror == (0, 1)
