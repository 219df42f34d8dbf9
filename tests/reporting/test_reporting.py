"""The page as a whole: its sections, what it warns of, odd data, and what it refuses."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import annotruth
from annotruth.data.annotations import Annotations
from annotruth.errors import AnnotruthError, InputError
from annotruth.reporting import report
from annotruth.reporting.case_statistics import case_statistics

NESTED = {
    "dense": {"majority": {"dice": 0.84, "cm_rmse": 0.2}, "pixel-cm": {"dice": 0.92, "cm_rmse": 0.04}},
    "one-label": {"majority": {"dice": 0.85}, "pixel-cm": {"dice": 0.91, "cm_rmse": float("nan")}},
}


class Page(HTMLParser):
    """What a reader and a browser find in the file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._skip = 0
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._skip += tag in ("style", "script")

    def handle_endtag(self, tag: str) -> None:
        self._skip -= tag in ("style", "script")

    def handle_data(self, data: str) -> None:
        if not self._skip:
            self.text = " ".join([self.text, *data.split()])

    def all(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        return [a for t, a in self.tags if t == tag and all(wanted[k] in (a.get(k.strip("_")) or "") for k in wanted)]


def test_sections_stand_in_order_and_the_contents_link_to_them(make_study, tmp_path: Path) -> None:
    study = make_study(pixel_wise=True)
    page = Page(report(study.model, study.ann, tmp_path / "r.html", scores=NESTED))
    wanted = ["summary", "scores", "truth", "raters", "confusion", "error-maps", "cases", "training", "settings"]
    assert [a["id"] for a in page.all("section")] == wanted
    assert [a["href"] for a in page.all("a", href="#")][1:] == [f"#{name}" for name in wanted]
    ids = [a["id"] for _, a in page.tags if a.get("id")]
    assert len(ids) == len(set(ids))


def test_nothing_is_fetched_from_elsewhere(make_study, tmp_path: Path) -> None:
    study = make_study()
    page = Page(report(study.model, study.ann, tmp_path / "r.html", scores={"dice": 0.9}))
    sources = [a[k] for _, a in page.tags for k in ("src", "href") if a.get(k)]
    assert sources
    assert all(source.startswith(("data:", "#")) for source in sources)
    assert all(url.startswith("data:") for url in re.findall(r"url\(([^)]*)", page.source))
    assert "@import" not in page.source
    assert page.all("meta", content="default-src 'none'")


def test_every_picture_has_words_for_those_who_cannot_see_it(make_study, tmp_path: Path) -> None:
    study = make_study()
    page = Page(report(study.model, study.ann, tmp_path / "r.html", scores=NESTED))
    assert all(image.get("alt") for image in page.all("img"))
    assert all(tile["aria-label"] for tile in page.all("button", class_="tile"))


def test_names_cannot_smuggle_markup_in(make_study, tmp_path: Path) -> None:
    evil = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'
    study = make_study(raters=(evil, "b", "c"), items=(evil, "i2", "i3", "i4"))
    study.model.warnings_ = [evil]
    study.model.settings_ = {evil: evil}
    page = Page(report(study.model, study.ann, tmp_path / "r.html", scores={evil: {evil: {evil: 0.5}}}))
    assert len(page.all("script")) == 1
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)
    assert evil in page.text


def test_long_names_are_cut_and_shown_whole_on_hover(make_study, tmp_path: Path) -> None:
    name = "the radiologist with the remarkably long name"
    study = make_study(raters=(name, "b", "c"))
    page = Page(report(study.model, study.ann, tmp_path / "r.html"))
    assert page.all("span", title=name)
    assert "the radiolo…" in page.text


def test_warnings_come_before_everything_else(make_study, tmp_path: Path) -> None:
    study = make_study()
    assert "Read this first" not in Page(report(study.model, study.ann, tmp_path / "r.html")).text
    study.model.warnings_ = ["Classes may be swapped."]
    page = Page(report(study.model, study.ann, tmp_path / "r.html"))
    assert page.text.index("Classes may be swapped.") < page.text.index("Items")


def test_raters_are_sorted_by_skill_and_described(make_study, tmp_path: Path) -> None:
    study = make_study()
    page = Page(report(study.model, study.ann, tmp_path / "r.html"))
    table = page.text[page.text.index("How they err") : page.text.index("Confusion matrices")]
    skills = {name: study.model.annotators_[name].skill for name in study.ann.raters}
    ranked = sorted(skills, key=lambda name: -skills[name])
    places = [re.search(rf"\b{name}\b \d", table).start() for name in ranked]  # type: ignore[union-attr]
    assert places == sorted(places)
    assert "draws too much finds" in table
    assert "draws too little finds only" in table
    assert "0.40 to 0.90" in table  # the interval


def test_truth_adds_scores_and_its_absence_harms_nothing(make_study, tmp_path: Path) -> None:
    known, unknown = make_study(with_truth=True), make_study(with_truth=False)
    with_truth = Page(report(known.model, known.ann, tmp_path / "a.html"))
    without = Page(report(unknown.model, unknown.ann, tmp_path / "b.html"))
    for words in ("missed (FN)", "Against the truth", "Against the known truth", "Dice with the truth"):
        assert words in with_truth.text
        assert words not in without.text
    assert len(with_truth.all("button", class_="tile")) == len(without.all("button", class_="tile")) + 4


def test_partly_known_truth_is_scored_where_it_is_known(make_study, tmp_path: Path) -> None:
    study = make_study()
    study.truth[1:] = 255
    page = Page(report(study.model, study.ann, tmp_path / "r.html"))
    assert page.text.count("against the truth: right") == 0
    assert len(page.all("img", alt="against the truth")) == 1


def test_cases_most_disputed_first_and_no_more_than_asked_for(make_study, tmp_path: Path) -> None:
    study = make_study(n_items=5)
    disputed = [case.name for case in case_statistics(study.model, study.ann).most_disputed(3)]
    page = Page(report(study.model, study.ann, tmp_path / "r.html", max_cases=3))
    shown = re.findall(r"Enlarge: Image of (\w+)", page.source)
    assert shown == disputed
    assert "3 of 5 cases" in page.text
    assert "No cases were asked for" in Page(report(study.model, study.ann, tmp_path / "r.html", max_cases=0)).text


def test_volumes_show_a_slice(make_study, tmp_path: Path) -> None:
    study = make_study(spatial=(12, 14, 7), pixel_wise=True)
    page = Page(report(study.model, study.ann, tmp_path / "r.html"))
    assert re.search(r"slice \d of 7", page.text)


def test_images_of_different_sizes_and_in_colour(make_study, tmp_path: Path) -> None:
    study = make_study(channels=3)
    ann = Annotations.from_masks(
        [study.ann.item_masks(i)[:, : 16 - i] for i in range(4)],
        [study.ann.item_image(i)[:, : 16 - i] for i in range(4)],
        raters=study.ann.raters, classes=study.ann.classes,
    )  # fmt: skip
    study.model.truth_of = {ann.item_image(i).tobytes(): study.truth[i, : 16 - i] for i in range(4)}
    page = Page(report(study.model, ann, tmp_path / "r.html"))
    assert set(re.findall(r"--h: (\d+)", page.source)) == {"16", "15", "14", "13"}


def test_many_raters_are_thinned_out_and_the_report_says_so(make_study, tmp_path: Path) -> None:
    study = make_study(n_items=2, raters=tuple(f"worker {i}" for i in range(59)))
    study.ann.masks[0, 10:] = 255
    page = Page(report(study.model, study.ann, tmp_path / "r.html"))
    assert "8 of 59 masks shown" in page.text
    assert "8 of 10 masks shown" in page.text
    assert "labelled by 10 of 59 raters" in page.text
    assert "8 of 59 raters are shown" in page.text
    assert len(page.all("figure", class_="matrix")) == 59


def test_many_classes_get_matrices_without_numbers(make_study, tmp_path: Path) -> None:
    few, many = make_study(n_classes=11), make_study(n_classes=12)
    assert not Page(report(few.model, few.ann, tmp_path / "a.html")).all("img", alt="Confusion matrix")
    page = Page(report(many.model, many.ann, tmp_path / "b.html"))
    assert len(page.all("img", alt="Confusion matrix of")) == 3
    assert "Classes in order" in page.text


def test_several_classes_have_a_legend_and_an_uncertainty_map(make_study, tmp_path: Path) -> None:
    study = make_study(n_classes=4)
    page = Page(report(study.model, study.ann, tmp_path / "r.html"))
    assert "Uncertainty" in page.text
    assert "other class" in page.text
    assert page.text.count("class 3") > 1


def test_scores_as_table_and_chart(make_study, tmp_path: Path) -> None:
    study = make_study(pixel_wise=True)
    page = Page(report(study.model, study.ann, tmp_path / "r.html", scores=NESTED))
    assert len(page.all("tr", class_="current")) == 2
    assert "foreground Dice ↑" in page.text
    assert "CM RMSE ↓" in page.text
    assert "0.9200" in page.text
    assert page.all("img", alt="Bar chart")
    flat = Page(report(study.model, study.ann, tmp_path / "r.html", scores={"dice": np.float32(0.5), "items": 3}))
    assert "Setting " not in flat.text
    assert "0.500" in flat.text


@pytest.mark.parametrize("scores", [{"dice": "good"}, {"a": {"dice": 0.9}}, {"a": {"b": {"c": None}}}, {"a": [1]}])
def test_scores_of_another_form_are_refused(make_study, tmp_path: Path, scores: dict) -> None:
    study = make_study()
    with pytest.raises(InputError, match="scores must be"):
        report(study.model, study.ann, tmp_path / "r.html", scores=scores)


def test_settings_versions_and_curves(make_study, tmp_path: Path) -> None:
    study = make_study()
    page = Page(report(study.model, study.ann, tmp_path / "r.html"))
    assert json.dumps({"channels": [8, 16]}) in page.text
    assert annotruth.__version__ in page.text
    assert page.all("img", alt="Training curves: the loss over 3 epochs, at the end 0.4")
    study.model.history_ = study.model.history_[:0]
    assert "no curves" in Page(report(study.model, study.ann, tmp_path / "r.html")).text


def test_raters_the_model_does_not_know_are_shown_as_such(make_study, tmp_path: Path) -> None:
    study = make_study()
    study.model.raters_ = ("good", "absent")
    study.model.annotators_["absent"] = study.model.annotators_.pop("over")
    page = Page(report(study.model, study.ann, tmp_path / "r.html"))
    assert "not known to the model" in page.text
    assert "absent" in page.text


def test_one_rater_and_one_item_suffice(make_study, tmp_path: Path) -> None:
    study = make_study(n_items=1, raters=("solo",))
    assert "Truth from 1 rater " in Page(report(study.model, study.ann, tmp_path / "r.html")).text


def test_bad_input_is_refused_with_a_way_out(make_study, tmp_path: Path) -> None:
    study = make_study()
    path = tmp_path / "r.html"
    labels = Annotations.from_answers(np.array([[0, 1]]))
    with pytest.raises(InputError, match="pictures or features"):
        report(study.model, labels, path)
    with pytest.raises(InputError, match="images="):
        report(study.model, Annotations.from_masks(study.ann.masks, classes=study.ann.classes), path)
    with pytest.raises(InputError, match="max_cases"):
        report(study.model, study.ann, path, max_cases=-1)
    study.model.classes_ = ("background", "vessel")
    with pytest.raises(InputError, match="vessel"):
        report(study.model, study.ann, path)
    assert not path.exists()


def test_the_file_is_there_whole_or_not_at_all(make_study, tmp_path: Path) -> None:
    study = make_study()
    written = report(study.model, study.ann, tmp_path / "new" / "folder" / "r.html")
    assert written == tmp_path / "new" / "folder" / "r.html"
    assert [file.name for file in written.parent.iterdir()] == ["r.html"]
    (tmp_path / "taken").mkdir()
    with pytest.raises(AnnotruthError, match="could not be written"):
        report(study.model, study.ann, tmp_path / "taken")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["new", "taken"]


def test_the_public_name_works_after_the_folder_was_imported(make_study, tmp_path: Path) -> None:
    study = make_study()
    import annotruth.reporting.figures

    for _ in range(2):
        assert annotruth.report(study.model, study.ann, tmp_path / "r.html").exists()


def test_the_page_is_small_and_its_parts_are_installed(make_study, tmp_path: Path) -> None:
    study = make_study(n_items=12, spatial=(28, 28), pixel_wise=True)
    assert report(study.model, study.ann, tmp_path / "r.html").stat().st_size < 2e6
    assert {"page.html.j2", "style.css", "script.js"} <= {file.name for file in files("annotruth.reporting").iterdir()}


def test_ranks_and_intervals_of_entries(make_study, tmp_path: Path) -> None:
    study = make_study()
    for number, annotator in enumerate(study.model.annotators_.values()):
        annotator.interval = (annotator.skill - 0.01, annotator.skill) if number else (0.2, 1.0)
        annotator.confusion_interval = np.stack([annotator.confusion * 0.5, (annotator.confusion + 1) / 2])
    page = Page(report(study.model, study.ann, tmp_path / "r.html"))
    assert "1 (1–3)" in page.text
    assert "95 %: 50" in page.source
    assert "50–100" in page.text


def test_many_classes_show_intervals_only_when_pointed_at(make_study, tmp_path: Path) -> None:
    study = make_study(n_classes=6)
    for annotator in study.model.annotators_.values():
        annotator.confusion_interval = np.stack([annotator.confusion * 0.5, (annotator.confusion + 1) / 2])
    page = Page(report(study.model, study.ann, tmp_path / "r.html"))
    assert "shown when you point at an entry" in page.text
    assert "50–100" not in page.text
    assert "most often calls" in page.text
