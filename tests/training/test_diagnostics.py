"""Each reason to doubt a model is named in its situation, in the log, the model, the file and the report."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from annotruth import Annotations, Segmenter, load_model, report
from annotruth.errors import DiffuseConfusionWarning, IdentifiabilityWarning
from annotruth.simulate import noisy_digits, simulate_masks
from annotruth.training.diagnostics import warn_of_diffuse_matrices


class Told(nn.Module):
    """A network that is told the truth, or something else, by the images: it shows what a given estimate leads to."""

    def __init__(self, estimate: str = "truth") -> None:
        super().__init__()
        self.estimate = estimate
        self.unused = nn.Parameter(torch.zeros(()))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        truth = 20 * images.sign() + 0 * self.unused
        if self.estimate == "background":
            truth = -20 + 0 * truth
        return torch.cat([-truth, truth] if self.estimate != "swapped" else [truth, -truth], dim=1)


def fitted(raters, estimate="truth", strength=1.0, keep="all"):
    _, truth, _ = noisy_digits(24)
    ann = simulate_masks(truth, raters, strength=strength, keep=keep).annotations(
        images=2.0 * truth[:, None] - 1, classes=["background", "digit"]
    )
    model = Segmenter("mean", network=Told(estimate), max_epochs=1, validation=0, progress=False)
    return model.fit(ann), ann


ALL = ["good", "over", "under", "wrong", "blank"]


@pytest.mark.parametrize(
    ("raters", "strength"),
    [
        (ALL, 1.0),
        (ALL, 0.5),
        (ALL[:4], 1.0),
        (ALL[:3], 1.0),
        (["over", "under", "wrong"], 0.4),
        (["good", "good", "blank"], 1.0),
        (["wrong"] * 7, 0.5),
    ],
)
@pytest.mark.parametrize("keep", ["all", 1])
def test_sound_groups_are_left_in_peace(raters, strength, keep):
    assert fitted(raters, strength=strength, keep=keep)[0].warnings_ == []


def doubted(words, *args, **kwargs):
    with pytest.warns(IdentifiabilityWarning, match=words):
        model, ann = fitted(*args, **kwargs)
    return model, ann


@pytest.mark.parametrize("keep", ["all", 1])
def test_nobody_is_faithful(keep, tmp_path: Path):
    words = r"No rater is faithful on digit \(closest: (wrong|over), Dice 0\.6\d\): each misses or invents much of it"
    model, ann = doubted(words, ["over", "under", "wrong"], keep=keep)
    (problem,) = model.warnings_
    assert load_model(model.save(tmp_path / "m.annotruth"), Told()).warnings_ == [problem]
    page = report(model, ann, tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Read this first: 1 warning" in page
    assert "No rater is faithful on digit" in page


def test_swapped_classes():
    doubted("Classes look swapped: .*true background is called digit", ALL[:3], "swapped")


def test_a_mean_confusion_that_is_not_dominant():
    """What is called 1 is more often 0 or 2, though no other naming of the classes would do better."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, (8, 32, 32)).astype(np.uint8)
    matrix = np.array([[0.6, 0.4, 0.0], [0.3, 0.35, 0.35], [0.0, 0.4, 0.6]])
    masks = (rng.random((8, 3, 32, 32, 1)) > matrix.cumsum(axis=1)[truth][:, None]).sum(axis=-1).astype(np.uint8)
    ann = Annotations.from_masks(masks, images=truth[:, None].astype(np.float32), classes=3)
    network = nn.Conv2d(1, 3, kernel_size=1)
    with torch.no_grad():  # images are standardised to -1.2, 0 and 1.2
        network.weight.copy_(torch.tensor([-100.0, 0.0, 100.0]).view(3, 1, 1, 1))
        network.bias.copy_(torch.tensor([-50.0, 0.0, -50.0]))
    model = Segmenter("mean", network=network, max_epochs=1, learning_rate=1e-6, validation=0, progress=False)
    with pytest.warns(IdentifiabilityWarning, match=r"not diagonally dominant for 1 \(right 0\.3\d, but given to true"):
        model.fit(ann)


def test_a_class_that_got_lost():
    doubted("hardly any digit .*the class got lost", ALL, "background")


def test_an_estimate_that_rests_on_one_rater_alone():
    doubted("The estimated digit rests on good alone: all others draw less of it. If good draws too much",
            ["good", "blank", "under"])  # fmt: skip


def test_few_raters():
    doubted("Only two raters", ["good", "over"])


def test_methods_that_do_not_learn_from_raters_have_nothing_to_doubt():
    _, truth, _ = noisy_digits(24)
    ann = simulate_masks(truth, ["over", "under", "wrong"]).annotations(images=2.0 * truth[:, None] - 1)
    for method in ("clean", "oracle-cm"):
        assert Segmenter(method, network=Told(), max_epochs=1, progress=False).fit(ann).warnings_ == []


def test_training_from_the_command_line_says_so(annotruth, tmp_path: Path):
    from annotruth.io import write_case_folder

    images, truth, _ = noisy_digits(16)
    raters = simulate_masks(truth, ["over", "under", "blank"])
    write_case_folder(tmp_path / "cases", raters.annotations(images=images, classes=["background", "digit"]))
    ended = annotruth("train", tmp_path / "cases", "-o", tmp_path / "run", "--method", "majority", "--epochs", 2, "-q")
    assert ended.code == 0
    assert "warning: The estimated truth may be wrong." in ended.err
    assert load_model(tmp_path / "run" / "model.annotruth").warnings_


@pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")
def test_a_trace_so_heavy_that_the_matrices_diffuse(make_cases, tiny):
    """The network is told the truth by the images, so that only the matrices suffer."""
    cases = make_cases(12, (12, 12), raters=("good", "good", "over"))
    told = Annotations.from_masks(cases.masks, 2.0 * cases.truth[:, None] - 1)
    settings = {"max_epochs": 16, "learning_rate": 0.3, "validation": 0, "network": nn.Conv2d(1, 2, kernel_size=1)}
    with torch.no_grad():
        settings["network"].weight.copy_(torch.tensor([-9.0, 9.0]).view(2, 1, 1, 1))
    with pytest.warns(DiffuseConfusionWarning, match=r"too diffuse: .*rater_\d has a skill of .*lower trace_weight"):
        model = tiny("pixel-cm", warmup=0.4, trace_weight=30.0, **settings).fit(told)
    assert any("too diffuse" in problem for problem in model.warnings_)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DiffuseConfusionWarning)
        assert tiny("pixel-cm", warmup=0.4, trace_weight=0.01, **settings).fit(told).warnings_ == []


def test_diffuse_means_far_below_what_the_labels_say():
    names = ["ann", "bob"]
    assert warn_of_diffuse_matrices(np.array([0.85, 0.9]), np.array([0.94, 0.5]), names) == []
    with pytest.warns(DiffuseConfusionWarning, match=r"ann has a skill of 0\.97, but by the learnt matrix 0\.60"):
        (problem,) = warn_of_diffuse_matrices(np.array([0.6, 0.5]), np.array([0.97, 0.65]), names)
    assert problem.endswith("leave it out.")


def test_identifiability_is_still_looked_at_beside(make_cases, tiny):
    with pytest.warns(IdentifiabilityWarning):
        model = tiny("pixel-cm", max_epochs=1).fit(make_cases(raters=["good"]))
    assert any("Only one rater" in problem for problem in model.warnings_)
