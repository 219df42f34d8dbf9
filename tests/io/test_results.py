"""What there is to export: of a fusion, of predictions, of known truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from annotruth.errors import InputError
from annotruth.io.results import read_result


@pytest.fixture
def made(tmp_path: Path, put: Any) -> Path:
    """Labels and probabilities, as predict leaves them: 0 and 255 for two classes."""
    labels = np.zeros((4, 5), dtype=np.uint8)
    labels[1:3, 1:4] = 255
    put(tmp_path / "made" / "labels" / "a.png", labels)
    chance = np.where(labels == 255, 0.9, 0.2).astype(np.float32)
    chance[1, 1] = 0.55
    put(tmp_path / "made" / "probabilities" / "a.tiff", np.stack([1 - chance, chance]))
    put(tmp_path / "cases" / "images" / "a.png", np.zeros((4, 5), dtype=np.uint8))
    content = {"classes": {"background": 0, "cell": 255}, "imported": {"names": {"a": "sub/a.png"}}}
    (tmp_path / "cases" / "dataset.json").write_text(json.dumps(content))
    return tmp_path / "made"


def test_classes_images_and_names_are_the_cases(made: Path, tmp_path: Path) -> None:
    found = read_result(made, tmp_path / "cases")
    [item] = found.items
    assert (found.kind, found.classes, item.origin) == ("masks", ("background", "cell"), "sub/a.png")
    assert item.image == tmp_path / "cases" / "images" / "a.png"
    assert item.read_labels().sum() == 6
    assert item.read_probabilities is not None
    assert item.read_probabilities().shape == (2, 4, 5)


def test_disputed_pixels_are_a_class_of_their_own(made: Path, tmp_path: Path) -> None:
    found = read_result(made, tmp_path / "cases", disputed=0.6)
    assert found.classes == ("background", "cell", "disputed")
    assert np.argwhere(found.items[0].read_labels() == 2).tolist() == [[1, 1]]


def test_without_the_cases_pixel_values_are_classes(made: Path, put: Any) -> None:
    put(made / "labels" / "a.png", np.array([[0, 3], [255, 1]], dtype=np.uint8))
    assert read_result(made).classes == ("background", "class_1", "class_2", "class_3")


def test_a_fusion_tells_its_classes_and_cases(tmp_path: Path, made: Path) -> None:
    content = {"method": "staple", "source": str(tmp_path / "cases"), "pixel_values": {"background": 0, "cell": 255}}
    (made / "fusion.json").write_text(json.dumps(content))
    found = read_result(made)
    assert (found.maker, found.classes, found.items[0].origin) == (
        "annotruth staple",
        ("background", "cell"),
        "sub/a.png",
    )


def test_a_case_folders_truth_is_a_result(cases: Path, put: Any, mask: np.ndarray) -> None:
    put(cases / "truth" / "b.png", mask)
    assert [item.name for item in read_result(cases).items] == ["b"]


def test_tables_are_answers(tmp_path: Path) -> None:
    (tmp_path / "truth.csv").write_text("item,truth,probability of cat,probability of dog\na,cat,0.75,0.25\nb,,,\n")
    found = read_result(tmp_path)
    assert (found.kind, found.classes) == ("labels", ("cat", "dog"))
    assert [(answer.name, answer.label, answer.probability) for answer in found.answers] == [("a", "cat", 0.75)]
    with pytest.raises(InputError, match="disputed= goes with masks"):
        read_result(tmp_path, disputed=0.5)


def test_what_cannot_be_exported_is_refused(tmp_path: Path, made: Path) -> None:
    with pytest.raises(InputError, match="no such folder of results"):
        read_result(tmp_path / "nowhere")
    with pytest.raises(InputError, match="neither labels/ nor truth/"):
        read_result(tmp_path)
    with pytest.raises(InputError, match="no such folder of cases"):
        read_result(made, tmp_path / "nowhere")
    with pytest.raises(InputError, match="a probability above 0"):
        read_result(made, disputed=2.0)
    (made / "probabilities" / "a.tiff").unlink()
    with pytest.raises(InputError, match="nobody knows which pixels are disputed"):
        read_result(made, disputed=0.5)
    (made / "labels" / "a.png").unlink()
    with pytest.raises(InputError, match="holds no labels"):
        read_result(made)
