"""The panel of what is said not to be there."""

from __future__ import annotations

import re

import numpy as np

from annotruth import Annotations, Segmenter, report


def test_coarse_cm_shows_m(drawn, tmp_path):
    model = Segmenter("coarse-cm", max_epochs=1, progress=False).fit(drawn)
    assert getattr(model, "report_panels_", ("complement",)) == ("complement",)
    page = report(model, drawn, tmp_path / "report.html", max_cases=2).read_text()
    assert "What is said not to be there" in page
    section = page.split('<section id="complement"')[1].split("</section>")[0]
    assert re.findall(r"--share:([\d.]+)", section) == ["0.000", "1.000", "1.000", "0.000"]
    np.testing.assert_allclose(model.complement_, [[0, 1], [1, 0]])


def test_without_negative_drawings_there_is_no_m(make_study, drawn, tmp_path):
    positive = Annotations.from_masks(drawn.masks[:, :1], images=drawn.images, classes=drawn.classes)
    model = Segmenter("partial-ce", max_epochs=1, progress=False, unmarked="background").fit(positive)
    assert getattr(model, "report_panels_", ()) == ()
    assert "What is said not to be there" not in report(model, positive, tmp_path / "r.html", max_cases=1).read_text()
    study = make_study(n_items=1)
    study.model.report_panels_, study.model.complement_ = ("complement",), np.eye(2)
    assert "What is said not to be there" not in report(study.model, study.ann, tmp_path / "r.html").read_text()
