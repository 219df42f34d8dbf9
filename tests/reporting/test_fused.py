"""Reports on labels that were fused, without a network and without images."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from annotruth import STAPLE, Annotations, DawidSkene, MajorityVote
from annotruth.errors import InputError
from annotruth.reporting import report, write_rater_pages
from annotruth.reporting.fused import FusedModel
from annotruth.simulate import hammer_spammer, noisy_digits, simulate_labels, simulate_masks


@pytest.fixture(scope="module")
def masks() -> Annotations:
    truth = noisy_digits(8)[1]
    return simulate_masks(truth, ["good", "good", "careless", "over", "under"]).annotations()


@pytest.fixture(scope="module")
def table() -> Annotations:
    truth = np.random.default_rng(0).integers(0, 3, 200)
    made = simulate_labels(truth, np.stack([hammer_spammer(3, skill) for skill in (0.9, 0.8, 0.7, 0.2)]), seed=0)
    return Annotations.from_answers(made.answers, classes=["cat", "dog", "elk"], truth=truth)


def test_what_is_told_of_raters_is_the_fusions_own(table: Annotations) -> None:
    fused = DawidSkene().fit(table)
    model = FusedModel(fused, ["look out"])
    assert (model.method, model.warnings_, model.raters_) == ("dawid-skene", ["look out"], fused.raters_)
    low, high = fused.skill_interval()
    for rater, name in enumerate(fused.raters_):
        told = model.annotators_[name]
        np.testing.assert_array_equal(told.confusion, fused.confusion_[rater])
        assert told.interval == (low[rater], high[rater])
        assert (told.confusion_interval[0] <= told.confusion).all()
        assert (told.confusion <= told.confusion_interval[1]).all()
    np.testing.assert_array_equal(model.predict_proba(table), fused.predict_proba())


def test_a_table_is_reported_without_pictures(table: Annotations, tmp_path: Path) -> None:
    fused = DawidSkene().fit(table)
    page = report(fused, table, tmp_path / "report.html").read_text(encoding="utf-8")
    assert re.search(
        rf"The fusion is right on {100 * (fused.predict() == table.truth).mean():.0f}.% of the items", page
    )
    assert "fused answers" in page
    assert "network" not in page.split("<main", 1)[-1].split("<footer")[0]
    assert 'id="training"' not in page
    pages = write_rater_pages(fused, table, tmp_path / "raters")
    assert set(pages) == set(table.raters)


def test_masks_are_reported_without_images(masks: Annotations, tmp_path: Path) -> None:
    fused = STAPLE().fit(masks)
    page = report(fused, masks, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Closest to the estimated truth" in page
    assert "against the known truth" in page
    pages = write_rater_pages(fused, masks, tmp_path / "raters")
    assert len(pages) == 5
    assert report(MajorityVote().fit(masks), masks, tmp_path / "vote.html").is_file()


def test_a_fusion_of_other_items_is_refused(masks: Annotations, table: Annotations, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give those that were fused"):
        report(STAPLE().fit(masks.take([0, 1])), masks, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
