"""Label Studio's pre-annotations: brushes and choices with probabilities, and the interface they go with."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from annotruth.io.exports import export_result
from annotruth.io.results import read_result
from annotruth.io.runs import label_studio_mask


def test_brushes_hold_the_fused_masks(fused: Path, tmp_path: Path) -> None:
    out = export_result(fused, tmp_path / "out", "label-studio")
    tasks = json.loads((out / "predictions.json").read_text())
    assert [task["data"] for task in tasks] == [{"image": "in/a.png"}, {"image": "in/b.png"}]
    names = {"cell": 1, "wall": 2}
    for task, item in zip(tasks, read_result(fused).items):
        [prediction] = task["predictions"]
        assert prediction["model_version"] == "annotruth mean"
        labels = np.zeros(item.shape, dtype=np.uint8)
        for region in prediction["result"]:
            value = region["value"]
            size = (region["original_height"], region["original_width"])
            labels[label_studio_mask(value["rle"], size)] = names[value["brushlabels"][0]]
        np.testing.assert_array_equal(labels, item.read_labels())
    assert 0.6 < tasks[0]["predictions"][0]["score"] < 1
    interface = ElementTree.fromstring((out / "label_config.xml").read_text())
    assert [label.get("value") for label in interface.iter("Label")] == ["cell", "wall"]


def test_choices_hold_the_fused_answers(fused_answers: Path, tmp_path: Path) -> None:
    out = export_result(fused_answers, tmp_path / "out", "label-studio")
    tasks = json.loads((out / "predictions.json").read_text())
    assert [task["predictions"][0]["result"][0]["value"]["choices"] for task in tasks] == [["cat"], ["dog"]]
    assert [task["predictions"][0]["score"] for task in tasks] == [0.75, 1]
    assert '<Choice value="dog"/>' in (out / "label_config.xml").read_text()
