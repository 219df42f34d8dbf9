"""Pictures of cases: maps of errors or differences, and drawings over images."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth import Annotations, Segmenter, report
from annotruth.reporting.case_statistics import case_statistics
from annotruth.reporting.gallery import Gallery


def test_error_maps_show_the_chance_of_a_wrong_label(make_study) -> None:
    study = make_study(pixel_wise=True)
    statistics = case_statistics(study.model, study.ann)
    gallery = Gallery(study.model, study.ann, statistics)
    case = statistics.cases[0]
    error = gallery._error_map("over", case)
    posterior = study.model.predict_proba(study.ann.images[:1])[0]
    confusion = study.model.annotators_["over"].confusion
    for row, column in [(0, 0), (8, 9), (4, 4)]:
        wrong = sum(posterior[i, row, column] * confusion[i, j] for i in range(2) for j in range(2) if i != j)
        assert error[row, column] == pytest.approx(wrong, abs=1e-6)  # type: ignore[index]
    maps, top = gallery.rater_maps(["good", "over"], statistics.cases)
    assert top == pytest.approx(np.ceil(10 * error.max()) / 10)  # type: ignore[union-attr]
    assert len(maps[0].tiles) == 3


def test_other_methods_show_differences_on_what_the_rater_labelled(make_study) -> None:
    study = make_study(pixel_wise=False)
    study.ann.masks[1:, 1] = 255
    statistics = case_statistics(study.model, study.ann)
    maps, top = Gallery(study.model, study.ann, statistics).rater_maps(study.ann.raters, statistics.cases)
    assert top is None
    assert [tile.title for tile in maps[1].tiles] == ["item_0"]


def test_the_page_shows_drawings(drawn, tmp_path):
    masks = drawn.masks.copy()
    masks[:, 1] = 255  # bob draws only what is not there
    negatives = [drawn.item_negatives(index) for index in range(len(drawn))]
    drawn = Annotations.from_masks(
        masks, drawn.images, drawn.raters, classes=["background", "digit"], negatives=np.stack(negatives)
    )
    model = Segmenter("coarse-cm", max_epochs=1, progress=False).fit(drawn)
    page = report(model, drawn, tmp_path / "report.html", max_cases=2).read_text()
    assert "What bob drew on" in page
    assert "striped: not this class" in page
    assert "marked" in page
