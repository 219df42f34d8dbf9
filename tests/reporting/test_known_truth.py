"""Scores against the known truth: the metrics' own numbers, in the unit that is known; of much data, of a part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from annotruth.data.annotations import Annotations
from annotruth.metrics import (
    accuracy,
    brier_per_class,
    brier_score,
    dice_per_item,
    ece_per_class,
    expected_calibration_error,
    hd95_per_item,
    surface_dice_per_item,
)
from annotruth.reporting import known_truth, report
from annotruth.reporting.known_truth import KnownTruth, MaskTruth, label_truth


def masks_and_estimate(
    n_items: int = 5, n_classes: int = 3, spacing: object = (0.5, 2.0), known: int = 4
) -> tuple[Annotations, np.ndarray]:
    """Annotations with truth of the first items, and probabilities (items, classes, *spatial) of an estimate."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, n_classes, (n_items, 9, 11)).astype(np.uint8)
    truth[known:] = 255
    probabilities = np.moveaxis(rng.dirichlet(np.full(n_classes, 0.5), truth.shape), -1, 1)
    names = ["background", *(f"class {label}" for label in range(1, n_classes))]
    masks = np.zeros((n_items, 1, 9, 11), dtype=np.uint8)
    return Annotations.from_masks(masks, masks, classes=names, truth=truth, spacing=spacing), probabilities


def compared(ann: Annotations, probabilities: np.ndarray) -> KnownTruth | None:
    found, n_classes = MaskTruth(ann), len(ann.classes)
    for index, posterior in enumerate(probabilities):
        labels, truth = posterior.argmax(axis=0).astype(np.uint8), ann.item_truth(index)
        found.add(index, labels, dice_per_item(labels[None], truth[None], n_classes)[0], posterior, truth)
    return found.summary()


@pytest.mark.parametrize("spacing", [(0.5, 2.0), None])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_number_is_its_metrics(n_classes, spacing):
    ann, probabilities = masks_and_estimate(n_classes=n_classes, spacing=spacing)
    found = compared(ann, probabilities)
    assert found is not None
    labels, truth = probabilities.argmax(axis=1), ann.truth
    by_class = [
        dice_per_item(labels, truth, n_classes)[:4].mean(axis=0),
        hd95_per_item(labels, truth, n_classes, spacing)[:4].mean(axis=0),
        surface_dice_per_item(labels, truth, n_classes, spacing)[:4].mean(axis=0),
        ece_per_class(probabilities, truth),
        brier_per_class(probabilities, truth),
    ]
    for label in range(1, n_classes):
        row = found.rows[label - 1]
        assert (row.name, row.items) == (f"class {label}", 4)
        np.testing.assert_allclose(row.scores, [scores[label] for scores in by_class])
    last = found.rows[-1]
    assert last.name == "all"
    np.testing.assert_allclose(last.scores[:3], [scores[1:].mean() for scores in by_class[:3]])
    expected = expected_calibration_error(probabilities, truth), brier_score(probabilities, truth)
    np.testing.assert_allclose(last.scores[3:], expected)
    assert (found.known, found.surfaces, found.sampled) == (4, 4, False)


def test_distances_are_in_pixels_as_soon_as_one_spacing_lacks():
    assert [
        compared(*masks_and_estimate(spacing=spacing)).unit  # type: ignore[union-attr]
        for spacing in ((1.0, 1.0), [(1.0, 1.0)] * 4 + [None], None)
    ] == ["mm", "pixels", "pixels"]
    found = compared(*masks_and_estimate(spacing=None))
    assert found is not None
    assert (found.columns[1][1:], found.tolerance) == (("HD95 (pixels)", "↓"), "1 pixel")


def test_of_much_data_a_part_is_looked_at(monkeypatch):
    ann, probabilities = masks_and_estimate(n_items=12, known=12)
    whole = compared(ann, probabilities)
    monkeypatch.setattr(known_truth, "MOST_SURFACES", 4)
    monkeypatch.setattr(known_truth, "MOST_PIXELS", 50)
    monkeypatch.setattr(known_truth, "MOST_CLASSES", 1)
    part = compared(ann, probabilities)
    assert whole is not None
    assert part is not None
    assert (part.known, part.surfaces, part.sampled) == (12, 4, True)
    assert len(part.rows) == 2
    assert part.rows[-1].scores[0] == whole.rows[-1].scores[0]  # Dice is known of all anyway
    np.testing.assert_allclose(part.rows[-1].scores[3:], whole.rows[-1].scores[3:], atol=0.1)
    monkeypatch.setattr(known_truth, "MOST_SURFACE_PIXELS", 2 * 9 * 11)
    fewer = compared(ann, probabilities)
    assert fewer is not None
    assert fewer.surfaces == 2


def test_classes_in_one_of_both_alone_are_counted():
    truth = np.zeros((2, 4, 4), dtype=np.uint8)
    truth[0, 1, 1] = 1
    truth[1, :, 2:] = 255
    ann = Annotations.from_masks(truth[:, None], classes=3, truth=truth)
    estimate = np.zeros((2, 4, 4), dtype=int)
    estimate[0, 0, 0], estimate[1, 0, 0], estimate[1, 0, 3] = 2, 1, 2  # the last where nothing is known
    found = compared(ann, np.moveaxis(np.eye(3)[estimate], -1, 1))
    assert found is not None
    assert found.one_sided == 3
    assert [row.items for row in found.rows] == [1, 0, None]


def test_nothing_is_shown_where_nothing_is_known():
    ann, probabilities = masks_and_estimate(known=0)
    assert compared(ann, probabilities) is None
    assert label_truth(np.full(3, -1), {"network": np.full((3, 2), 0.5)}) is None


def test_a_label_table_shows_the_network_alone_and_with_the_answers():
    rng = np.random.default_rng(0)
    truth, told = rng.integers(-1, 3, 40), {name: rng.dirichlet([1, 1, 1], 40) for name in ("alone", "answers")}
    found = label_truth(truth, told)
    assert found is not None
    assert found.known == (truth >= 0).sum()
    for row, (name, probabilities) in zip(found.rows, told.items(), strict=True):
        assert row.name == name
        expected = [metric(probabilities, truth) for metric in (expected_calibration_error, brier_score)]
        np.testing.assert_allclose(row.scores, [accuracy(probabilities.argmax(axis=1), truth), *expected])


def test_the_section_stands_in_both_pages_and_says_its_units(make_study, make_label_study, tmp_path: Path) -> None:
    def section(model, ann) -> str:
        page = report(model, ann, tmp_path / "r.html").read_text()
        return page[page.index('<section id="truth"') : page.index('<section id="raters"')]

    study = make_study(n_classes=3)
    shown = section(study.model, study.ann)
    for words in (
        "known for 4 of 4",
        "HD95 (pixels) ↓",
        "within 1 pixel",
        "class 2",
        "Surface Dice ↑",
        "ECE ↓",
        "Brier",
    ):
        assert words in shown
    assert shown.count('alt="Reliability plot') == 1
    in_mm = section(study.model, study.ann._with(spacing=[(0.5, 0.5)] * 4))
    assert "HD95 (mm) ↓" in in_mm
    assert "within 1 mm" in in_mm
    model, ann = make_label_study()
    answered = ann.answer_matrix(), ann.images, ann.raters, ann.classes
    truth = np.zeros(len(ann), dtype=int)
    assert "network and answers" in section(model, Annotations.from_answers(*answered, truth=truth))
    with pytest.raises(ValueError, match="not found"):
        section(model, Annotations.from_answers(*answered))
