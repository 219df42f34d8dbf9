"""A page for each rater: what it shows, and what it keeps to itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.io.timing import AnswerTimes
from annotruth.reporting import write_rater_pages

Make = Callable[..., Any]


def test_a_page_of_masks_shows_where_they_differ_and_names_nobody_else(make_study: Make, tmp_path: Path) -> None:
    raters = ("Gudrun", "Ottokar", "Ulrike")
    study = make_study(raters=raters)
    pages = write_rater_pages(study.model, study.ann, tmp_path / "pages")
    assert set(pages) == set(raters)
    for name, path in pages.items():
        text = path.read_text(encoding="utf-8")
        assert name in text
        assert not any(other in text for other in raters if other != name)
        assert path.name == f"{name}.html"
    careful, generous = (pages[name].read_text(encoding="utf-8") for name in ("Gudrun", "Ottokar"))
    assert "You recognise" in careful
    assert "There is none to speak of" in careful
    assert "you call" in generous
    assert generous.count('<button type="button" class="tile') == 3
    assert 'src="data:image/png' in generous
    assert "http" not in generous.replace("http-equiv", "").replace("http://www.w3.org", "")


def test_a_page_of_answers_shows_the_likely_mistakes(fake_classifier: Make, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60)
    answers = np.stack([truth, truth, np.where(np.arange(60) < 30, truth, (truth + 1) % 3)], axis=1)
    images = np.zeros((60, 1, 5, 5), dtype=np.float32) + truth[:, None, None, None]
    names = ["Gudrun", "Ottokar", "../x"]
    ann = Annotations.from_answers(answers, images, raters=names, classes=["cat", "<b>", "dog"])
    times = AnswerTimes(60.0 * ann.answers.item, np.full(len(ann.answers), 5.0))
    pages = write_rater_pages(fake_classifier(ann), ann, tmp_path, times=times)
    assert pages["../x"].parent == tmp_path
    text = pages["../x"].read_text(encoding="utf-8")
    assert text.count('class="thumb"') == 8
    assert "You said" in text
    assert "<td><b><span><b></span>" not in text  # names are escaped
    assert "worse from" in text
    assert "Gudrun" not in text
    assert "as good at the end" in pages["Gudrun"].read_text(encoding="utf-8")


def test_what_cannot_be_shown_is_refused(make_study: Make, tmp_path: Path) -> None:
    study = make_study()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="name a folder"):
        write_rater_pages(study.model, study.ann, tmp_path / "file")
    bare = Annotations.from_masks(np.stack([study.ann.item_masks(0)]), classes=study.ann.classes)
    with pytest.raises(InputError, match="show images"):
        write_rater_pages(study.model, bare, tmp_path)
