"""Panels of the report: declared by name, shown where declared, and nothing in them unescaped."""

from __future__ import annotations

import re

import numpy as np
import pytest
from markupsafe import Markup

from annotruth.errors import InputError
from annotruth.reporting import panels, report
from annotruth.reporting.panels import Panel


@pytest.fixture
def registry(monkeypatch):
    """A registry that forgets what a test adds."""
    monkeypatch.setattr(panels, "PANELS", dict(panels.PANELS))
    return panels.PANELS


def test_every_file_is_found():
    assert set(panels.PANELS) == {"complement", "recurrences"}


def test_a_declared_panel_is_a_section_before_the_cases_and_stands_in_the_contents(make_study, registry, tmp_path):
    @panels.panel("words")
    def words(page):
        html = Markup("<p>{}</p>").format(f"{len(page.cases)} cases, <b>{page.model.method}</b>")
        return Panel("words", "Words & more", html, in_contents="Words")

    study = make_study(n_items=2)
    study.model.report_panels_ = ("words",)
    text = report(study.model, study.ann, tmp_path / "r.html").read_text()
    assert "<p>2 cases, &lt;b&gt;global-cm&lt;/b&gt;</p>" in text
    assert '<h2 id="words-title">Words &amp; more</h2>' in text
    sections = re.findall(r'<section id="([\w-]+)"', text)
    assert sections.index("confusion") + 1 == sections.index("words") == sections.index("error-maps") - 1
    links = re.findall(r'<li><a href="#([\w-]+)">', text)
    assert links.index("confusion") + 1 == links.index("words") == links.index("error-maps") - 1


def test_a_report_on_a_label_table_has_panels_too(make_label_study, registry, tmp_path):
    panels.panel("words")(lambda page: Panel("words", "Words", Markup(f"<p>{page.gallery}</p>")))
    model, ann = make_label_study()
    model.report_panels_ = ("words",)
    text = report(model, ann, tmp_path / "r.html").read_text()
    assert "<p>None</p>" in text
    assert 'href="#words"' not in text  # it has no word for the contents


def test_panels_that_are_not_declared_or_have_nothing_to_show_are_not_there(make_study, registry, tmp_path):
    panels.panel("nothing")(lambda page: None)
    study = make_study(n_items=2)
    study.model.report_panels_ = ("nothing",)
    study.model.settings_["options"] = {"recurrences": 2}
    study.model.complement_ = np.eye(2)
    text = report(study.model, study.ann, tmp_path / "r.html").read_text()
    assert not re.findall(r'<section id="(nothing|recurrences|complement)"', text)


def test_a_panel_that_nobody_knows_is_refused(make_study, tmp_path):
    study = make_study(n_items=1)
    study.model.report_panels_ = ("strips",)
    with pytest.raises(InputError, match=r"report panel.*strips.*complement, recurrences"):
        report(study.model, study.ann, tmp_path / "r.html")


def test_names_cannot_smuggle_markup_into_a_panel(make_study, tmp_path):
    study = make_study(n_items=1, raters=("<script>alert(1)</script>", "b"), items=("<i>case</i>",))
    model = study.model
    model.report_panels_ = ("recurrences",)
    model.settings_["options"] = {"recurrences": 1}
    plain = model.predict_proba
    model.predict_proba = lambda images, recurrence=0: plain(images)
    model.rater_confidences_ = lambda image, recurrence: np.full((2, *image.shape[1:]), 0.5)
    text = report(model, study.ann, tmp_path / "r.html").read_text()
    assert "Confidence in &lt;script&gt;" in text
    assert "<script>alert" not in text
    assert "<i>case" not in text
