"""Input that is odd but no error is worked with, and said where it matters; what belongs elsewhere is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch import nn

from annotruth import Annotations, Segmenter, load_model
from annotruth.errors import DiffuseConfusionWarning, IdentifiabilityWarning, InputError, SmallImageWarning
from annotruth.training.diagnostics import warn_of_diffuse_matrices

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")


def test_a_trace_so_heavy_that_the_matrices_diffuse(make_cases, tiny):
    """The network is told the truth by the images, so that only the matrices suffer."""
    cases = make_cases(12, (12, 12), raters=("good", "good", "over"))
    told = Annotations.from_masks(cases.masks, 2.0 * cases.truth[:, None] - 1)
    settings = {"max_epochs": 16, "learning_rate": 0.3, "validation": 0, "network": nn.Conv2d(1, 2, kernel_size=1)}
    with torch.no_grad():
        settings["network"].weight.copy_(torch.tensor([-9.0, 9.0]).view(2, 1, 1, 1))
    with pytest.warns(DiffuseConfusionWarning, match=r"too diffuse: .*rater_\d has a skill of .*lower trace_weight"):
        model = tiny("pixel-cm", trace_weight=30.0, **settings).fit(told)
    assert any("too diffuse" in problem for problem in model.warnings_)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DiffuseConfusionWarning)
        assert tiny("pixel-cm", trace_weight=0.01, **settings).fit(told).warnings_ == []


def test_diffuse_means_far_below_what_the_labels_say():
    names = ["ann", "bob"]
    assert warn_of_diffuse_matrices(np.array([0.85, 0.9]), np.array([0.94, 0.5]), names) == []
    with pytest.warns(DiffuseConfusionWarning, match=r"ann has a skill of 0\.97, but by the learnt matrix 0\.60"):
        (problem,) = warn_of_diffuse_matrices(np.array([0.6, 0.5]), np.array([0.97, 0.65]), names)
    assert problem.endswith("leave it out.")


@pytest.mark.parametrize("method", ["pixel-cm", "global-cm", "staple", "majority", "oracle-cm"])
@pytest.mark.parametrize("label", [0, 1])
def test_a_rater_who_gives_one_class_only(cases, tiny, method, label):
    masks = cases.masks.copy()
    masks[:, 2] = label
    model = tiny(method, max_epochs=1).fit(Annotations.from_masks(masks, cases.images, truth=cases.truth))
    assert np.isfinite(model.confusion_).all()
    assert model.annotators_["rater_3"].labelled > 0


def test_a_class_nobody_gives(cases, tiny):
    """Three classes are named, two are used."""
    model = tiny("pixel-cm", max_epochs=1).fit(Annotations.from_masks(cases.masks, cases.images, classes=3))
    assert model.predict_proba(cases.images).shape == (12, 3, 12, 12)
    assert np.isfinite(model.confusion_).all()


def test_different_numbers_of_raters_per_case(cases, tiny):
    """From one to all; and a case that nobody labelled teaches nothing."""
    masks = cases.masks.copy()
    for item in range(len(cases)):
        masks[item, 3 - item % 4 :] = 255
    some = Annotations.from_masks(masks, cases.images)
    assert set(some.labelled().sum(axis=1)) == {0, 1, 2, 3}
    for method in ("pixel-cm", "global-cm", "majority", "staple", "separate"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = tiny(method, validation=0).fit(some)
        assert np.isfinite(model.history_.train_loss).all()
        assert [model.annotators_[name].labelled for name in some.raters] == some.labelled().sum(axis=0).tolist()


def test_small_images_are_padded_and_this_is_said_once(make_cases, tiny):
    cases = make_cases(4, [(12, 12), (5, 20), (12, 12), (3, 3)])
    with pytest.warns(SmallImageWarning, match=r"8 pixels .*padded: item_1 \(5×20\), item_3 \(3×3\)\.") as said:
        model = tiny(max_epochs=2, validation=0).fit(cases)
    assert sum(issubclass(warning.category, SmallImageWarning) for warning in said) == 1
    assert said[-1].filename == __file__ or any(warning.filename == __file__ for warning in said)
    with pytest.warns(SmallImageWarning, match=r"padded: image 1 \(2×9\)\."):
        labels = model.predict([np.zeros((1, 8, 8), np.float32), np.zeros((1, 2, 9), np.float32)])
    assert labels[1].shape == (2, 9)


def test_networks_of_the_user_are_not_spoken_for(make_cases, tiny):
    with warnings.catch_warnings():
        warnings.simplefilter("error", SmallImageWarning)
        tiny(network=nn.Conv2d(1, 2, 1), max_epochs=1).fit(make_cases(4, (5, 5)))


# -- what belongs to something else ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def begun(cases, tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tiny("pixel-cm").fit(cases, run_folder=folder)
    return folder


@pytest.mark.parametrize(
    ("method", "names", "words"),
    [
        ("mean", {}, r"another method \(then pixel-cm, now mean\)"),
        ("pixel-cm", {"classes": ["a", "b"]}, r"another list of classes \(then \['0', '1'\], now \['a', 'b'\]"),
        ("pixel-cm", {"classes": 3}, "another list of classes"),
        ("pixel-cm", {"raters": ["a", "b", "c"]}, "another list of raters"),
    ],
)  # fmt: skip
def test_a_checkpoint_of_something_else_is_not_resumed(begun, cases, tiny, method, names, words):
    other = Annotations.from_masks(cases.masks, cases.images, **{"raters": cases.raters, **names})
    with pytest.raises(InputError, match=words):
        tiny(method).fit(other, run_folder=begun, resume=True)


def test_a_model_loaded_around_another_network(cases, tiny, tmp_path):
    model = tiny(network=nn.Conv2d(1, 2, 3, padding=1), max_epochs=1).fit(cases)
    path = model.save(tmp_path / "m.annotruth")
    with pytest.raises(InputError, match=r"m\.annotruth does not fit .*of another shape: truth\.bias, truth\.weight"):
        load_model(path, nn.Conv2d(1, 3, 3, padding=1))
    with pytest.raises(InputError, match=r"missing: truth\.0\.bias, truth\.0\.weight; unknown: truth\.bias"):
        Segmenter.load(path, nn.Sequential(nn.Conv2d(1, 2, 3, padding=1)))


def test_identifiability_is_still_looked_at_beside(make_cases, tiny):
    with pytest.warns(IdentifiabilityWarning):
        model = tiny("pixel-cm", max_epochs=1).fit(make_cases(raters=["good"]))
    assert any("Only one rater" in problem for problem in model.warnings_)
