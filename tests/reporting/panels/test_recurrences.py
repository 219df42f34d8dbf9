"""The panel of pictures from one recurrence to the next."""

from __future__ import annotations

import re

import pytest

from annotruth import Segmenter, report
from annotruth.simulate import noisy_digits, simulate_masks

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.AnnotruthWarning")


@pytest.mark.parametrize(("method", "shown"), [("mrprism", 2), ("majority", 0)])
def test_estimate_and_confidences_after_each_recurrence(tmp_path, method, shown):
    images, truth, _ = noisy_digits(8)
    ann = simulate_masks(truth, ["good", "over", "under"]).annotations(images=images)
    options = {"recurrences": 2} if method == "mrprism" else {}
    model = Segmenter(method, max_epochs=1, validation=0, progress=False, **options).fit(ann)
    declared = ("recurrences",) if shown else ()
    assert getattr(model, "report_panels_", declared) == declared
    page = report(model, ann, tmp_path / "report.html", max_cases=1).read_text()
    assert len(re.findall(r"<h3>.*, recurrence \d</h3>", page)) == shown
    assert ('href="#recurrences"' in page) == bool(shown)
    for rater in ann.raters:
        assert len(re.findall(f"Confidence in {rater} on .* after recurrence", page)) == shown
