"""Wrong data and wrong settings are refused before any training, by name, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from annotruth import Annotations, Segmenter
from annotruth.errors import InputError


def refused(model: Segmenter, annotations: Annotations, words: str, folder: Path) -> None:
    with pytest.raises(InputError, match=words):
        model.fit(annotations, run_folder=folder / "run")
    assert not (folder / "run").exists()


def test_unknown_method_lists_the_known_ones(cases, tiny, tmp_path):
    refused(tiny("pixel-cmm"), cases, r"Unknown method 'pixel-cmm'.*Known: .*majority.*pixel-cm", tmp_path)


def test_unknown_option_lists_the_methods_own(cases, tiny, tmp_path):
    refused(tiny("pixel-cm", trace_wieght=0.1), cases, r"pixel-cm has no option 'trace_wieght'.*trace_weight", tmp_path)
    refused(tiny("mean", trace_weight=0.1), cases, r"mean has no option 'trace_weight'.*none", tmp_path)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"validation": 1.0}, "validation"),
        ({"validation": -0.1}, "validation"),
        ({"max_epochs": 0}, "max_epochs must be positive, not 0"),
        ({"max_epochs": -1}, "max_epochs"),
        ({"batch_size": 0}, "batch_size"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"patch_size": (8,)}, "patch_size needs a positive number for each of the 2 axes"),
        ({"patch_size": 8}, "patch_size"),
        ({"patch_size": (8, 0)}, "patch_size"),
    ],
)
def test_wrong_settings(cases, tiny, tmp_path, params, words):
    refused(tiny(**params), cases, words, tmp_path)


def test_label_table(tiny, tmp_path):
    table = Annotations.from_answers(np.array([[0, 1], [1, 1]]), images=np.zeros((2, 1, 4, 4)))
    refused(tiny(), table, "label table", tmp_path)


def test_missing_images(cases, tiny, tmp_path):
    refused(tiny(), Annotations.from_masks(cases.masks), "needs the images", tmp_path)


def test_clean_needs_the_truth(cases, tiny, tmp_path):
    refused(tiny("clean"), Annotations.from_masks(cases.masks, cases.images), "clean.*truth", tmp_path)


@pytest.mark.parametrize("shape", [(9,), (2, 3, 4, 5)])
def test_axes_other_than_two_or_three(tiny, tmp_path, shape):
    flat = Annotations.from_masks(np.zeros((4, 3, *shape), np.uint8), images=np.zeros((4, 1, *shape), np.float32))
    refused(tiny(), flat, "2 or 3 spatial axes", tmp_path)


def test_items_with_different_numbers_of_axes(make_cases, tiny, tmp_path):
    refused(tiny(), make_cases(2, [(8, 8), (8, 8, 8)]), r"all the same; these have \[2, 3\]", tmp_path)


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("channels", [1, 2])
def test_an_image_with_other_channels_is_named(cases, tiny, tmp_path, held_out, channels):
    """A channel too many or too few must not be broadcast silently, among the held-out items either."""
    model = tiny(validation=0.25)
    parts = cases.split([0.75, 0.25], seed=model.seed)
    item = parts[held_out].items[1]
    images = [np.repeat(image, channels, axis=0) for image in cases.images]
    position = cases.items.index(item)
    images[position] = np.repeat(cases.images[position], 3 - channels, axis=0)
    odd = Annotations.from_masks(cases.masks, images)
    refused(model, odd, f"Item {item} has {3 - channels} channels, but other items {channels}", tmp_path)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_non_finite_image_is_named(cases, tiny, tmp_path, value):
    for position in range(len(cases)):  # whether it is trained on or held out
        images = cases.images.copy()
        images[position, 0, 3, 3] = value
        broken = Annotations.from_masks(cases.masks, images)
        refused(tiny(), broken, rf"Item item_{position}: .*1 non-finite", tmp_path)


def test_prediction_before_training(cases, tiny, tmp_path):
    with pytest.raises(NotFittedError):
        tiny().predict(cases.images)
    with pytest.raises(NotFittedError):
        tiny().save(tmp_path / "model.annotruth")
    assert not any(tmp_path.iterdir())
