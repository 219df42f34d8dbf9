"""Raters whose errors depend on experience: one who has labelled nothing is foretold better than by the average."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from annotruth import Annotations, Segmenter, load_model
from annotruth.errors import InputError

YEARS = np.array([1.0, 2.0, 3.0, 5.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0])
NEW = {4.0: "A", 11.0: "B"}


def error(years: np.ndarray | float) -> np.ndarray:
    """How often a rater of so many years flips a pixel."""
    return 0.02 + 0.38 * np.exp(-np.asarray(years) / 6)


@pytest.fixture(scope="module")
def annotations() -> Annotations:
    rng = np.random.default_rng(0)
    truth = np.zeros((40, 12, 12), dtype=np.uint8)
    for mask in truth:
        top, left = rng.integers(0, 5, 2)
        mask[top : top + 7, left : left + 7] = 1
    images = 2.0 * truth[:, None] - 1 + rng.normal(0, 0.5, (40, 1, 12, 12))
    flipped = rng.random((40, len(YEARS), 12, 12)) < error(YEARS)[:, None, None]
    known = {f"rater_{k}": {"years": years, "site": "AB"[k % 2]} for k, years in enumerate(YEARS.tolist())}
    masks = (truth[:, None] ^ flipped).astype(np.uint8)
    return Annotations.from_masks(masks, images.astype(np.float32), raters=list(known), rater_info=known)


@pytest.fixture(scope="module", params=["global-cm", "pixel-cm"])
def model(request, annotations) -> Segmenter:
    return Segmenter(
        request.param, max_epochs=40, batch_size=8, validation=0, progress=False, rater_features=("years", "site")
    ).fit(annotations)


def test_a_new_rater_is_foretold_better_than_by_the_average(model, annotations):
    for years, site in NEW.items():
        true = np.array([[1 - error(years), error(years)], [error(years), 1 - error(years)]])
        foretold = model.expected_annotator({"years": years, "site": site}).confusion(annotations.images)
        np.testing.assert_allclose(foretold.sum(axis=1), 1, atol=1e-6)
        average = model.confusion_.mean(axis=0)
        assert np.abs(foretold - true).mean() < 0.5 * np.abs(average - true).mean()


def test_more_experience_means_fewer_errors(model, annotations):
    skills = [
        model.expected_annotator({"years": years, "site": "A"}).skill(annotations.images) for years in (1, 4, 8, 15)
    ]
    assert skills == sorted(skills)
    assert skills[-1] - skills[0] > 0.1


def test_what_a_new_rater_would_draw(model, annotations):
    image = annotations.item_image(0)
    novice, expert = (model.expected_annotator({"years": years, "site": "A"}) for years in (1, 15))
    assert "years=1" in repr(novice)
    truth = model.predict_proba(image[None])[0]
    for one in (novice, expert):
        drawn = one.predict_proba(image)
        assert drawn.shape == (2, 12, 12)
        np.testing.assert_allclose(drawn.sum(axis=0), 1, atol=1e-5)
        np.testing.assert_array_equal(one.predict(image), drawn.argmax(axis=0))
    if model.method == "global-cm":
        expected = np.einsum("ihw,ij->jhw", truth, novice.confusion())
        np.testing.assert_allclose(novice.predict_proba(image), expected, atol=1e-5)
    right = truth.argmax(axis=0) == 1
    assert novice.predict_proba(image)[1][right].mean() < expert.predict_proba(image)[1][right].mean()


def test_matrices_that_depend_on_the_image_need_images(model):
    annotator = model.expected_annotator({"years": 3, "site": "B"})
    if model.method == "global-cm":
        assert annotator.confusion().shape == (2, 2)
    else:
        with pytest.raises(InputError, match="depend on the image"):
            annotator.confusion()


def test_saved_and_loaded(model, annotations, tmp_path: Path):
    again = load_model(model.save(tmp_path / "m.annotruth"))
    features = {"years": 3, "site": "B"}
    np.testing.assert_array_equal(
        again.expected_annotator(features).confusion(annotations.images),
        model.expected_annotator(features).confusion(annotations.images),
    )
    assert again.settings_ == model.settings_


def test_strangers_are_refused(model):
    with pytest.raises(InputError, match="site is 'C', but the model knows only A, B"):
        model.expected_annotator({"years": 3, "site": "C"})


@pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")
def test_models_without_features_foretell_nobody(cases, tiny):
    with pytest.raises(InputError, match="trained without rater_features"):
        tiny(max_epochs=1).fit(cases).expected_annotator({"years": 3})


def test_through_the_command_line(annotruth, annotations, tmp_path: Path):
    """dataset.json names what is known of the raters."""
    from annotruth.io import write_case_folder

    write_case_folder(tmp_path / "cases", annotations.take(range(6)))
    asked = ("train", tmp_path / "cases", "-o", tmp_path / "run", "--method", "global-cm", "--epochs", 1, "-q")
    wrong = annotruth(*asked, "--option", "rater_features=age")
    assert wrong.code == 2
    assert "the feature age is missing" in wrong.err
    assert not (tmp_path / "run").exists()
    ended = annotruth(*asked, "--option", "rater_features=years,site")
    assert ended.code == 0, ended.err
    loaded = load_model(tmp_path / "run" / "model.annotruth")
    assert loaded.expected_annotator({"years": 4, "site": "A"}).confusion().shape == (2, 2)
