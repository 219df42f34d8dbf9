"""nnU-Net's and the Decathlon's folders: classes, channels, the ignore label, regions, further raters."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import check, find_source, import_source
from annotruth.io.masks.planes import Planes
from annotruth.io.sources.nnunet import label_rule


def test_channels_raters_and_the_ignore_label(example_nnunet: Path, tmp_path: Path) -> None:
    imported = import_source(example_nnunet, tmp_path / "cases")
    assert imported.notes == ["The image's channels are T1, T2."]
    loaded = at.load(tmp_path / "cases")
    assert (set(loaded.raters), loaded.classes) == ({"labels", "bob"}, ("background", "organ"))
    assert np.unique(loaded.masks[0, loaded.raters.index("labels")]).tolist() == [0, 255]
    assert np.unique(loaded.masks[0, loaded.raters.index("bob")]).tolist() == [0, 1]
    assert loaded.images[0].mean(axis=(1, 2, 3)).tolist() == [0, 1]


def test_the_decathlons_names_by_value(example_msd: Path) -> None:
    assert find_source(example_msd).key == "msd"
    loaded = at.load(example_msd)
    assert loaded.classes == ("background", "Anterior", "Posterior")
    assert loaded.images.shape == (2, 1, 16, 20, 3)


def test_regions_go_to_the_last_one_that_fits() -> None:
    labels = {"background": 0, "whole tumour": [1, 2, 3], "core": [2, 3], "enhancing": [3]}
    rule = label_rule({"labels": labels, "regions_class_order": [1, 2, 3]}, Path("dataset.json"))
    assert rule.classes == ("background", "whole tumour", "core", "enhancing")
    np.testing.assert_array_equal(rule.apply(Planes(np.array([[[0, 1, 2, 3]]])), "here"), [[0, 1, 2, 3]])


def test_a_mask_without_an_image_and_a_value_without_a_class_are_named(example_nnunet: Path) -> None:
    for file in (example_nnunet / "imagesTr").glob("a_2_*"):
        file.unlink()
    content = json.loads((example_nnunet / "dataset.json").read_text())
    content["labels"] = {"background": 0, "organ": 1}
    (example_nnunet / "dataset.json").write_text(json.dumps(content))
    messages = [str(problem) for problem in check(example_nnunet)]
    assert any("a_2.nii.gz (case a_2, rater labels): there is a mask, but no image" in text for text in messages)
    assert any("a_1.nii.gz (case a_1, rater labels): 2 means nothing here" in text for text in messages)
    content["labels"] = {"background": 0, "organ": "x"}
    (example_nnunet / "dataset.json").write_text(json.dumps({**content, "labels": {"background": 0}}))
    with pytest.raises(InputError, match="two classes or more"):
        at.load(example_nnunet)
