"""Methods by name, their options, and what they learn from."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from annotruth import methods
from annotruth.errors import InputError
from annotruth.methods import METHODS, Method, MethodModel, make_method, methods_for, register
from annotruth.methods.confusion.global_cm import GlobalCM
from annotruth.methods.confusion.global_cm_table import CountedCM
from annotruth.nn import IdentityConfusion

PAIRS = sorted(METHODS)


def test_names():
    masks = {"pixel-cm", "pixel-cm-lowrank", "global-cm", "majority", "mean", "clean"}
    assert masks <= set(methods_for("masks"))
    assert {"global-cm", "gem", "crowd-layer", "majority"} <= set(methods_for("labels"))
    for (name, task), method in METHODS.items():
        assert method.name == name
        assert task in method.tasks
        assert method.summary
        assert method.paper


def test_two_forms_of_one_name_are_told_apart_by_their_task():
    forms = {task: make_method("global-cm", task) for task in ("masks", "labels")}
    assert isinstance(forms["masks"], GlobalCM)
    assert isinstance(forms["labels"], CountedCM)
    with pytest.raises(TypeError, match="task"):
        make_method("global-cm")  # nobody gets one of them by chance


def test_every_file_of_a_kind_is_found():
    folder = Path(methods.__file__).parent
    with_methods = [path for path in folder.glob("*/*.py") if "@register" in path.read_text()]
    assert {type_.__module__.rpartition(".")[2] for type_ in METHODS.values()} == {path.stem for path in with_methods}


class Forgetful(nn.Module):
    """An annotator model that cannot be asked for some raters only."""

    def forward(self, images):
        return IdentityConfusion(2, 2)


def test_an_annotator_model_that_takes_no_raters_is_refused_when_it_is_registered():
    @dataclass(frozen=True)
    class Unfinished(Method[MethodModel]):
        name = "unfinished"
        paper = "a test"
        summary = "a method that label tables would fail in the middle of a training"

        def annotator_model(self, spec):
            return Forgetful()

    with pytest.raises(InputError, match=r"unfinished cannot be registered: .*Forgetful.*raters"):
        register(Unfinished)
    assert not [pair for pair in METHODS if pair[0] == "unfinished"]


def test_registering_draws_no_random_number():
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    register(METHODS["pixel-cm", "masks"])
    assert torch.equal(before, torch.random.get_rng_state())


def test_an_unknown_method_lists_the_known_ones():
    with pytest.raises(InputError) as refused:
        make_method("unet", "masks")
    assert all(name in str(refused.value) for name, _ in METHODS)


def test_an_unknown_task_is_refused():
    with pytest.raises(InputError, match=r"Unknown task 'boxes'\. Known: masks, labels"):
        make_method("mean", "boxes")


@pytest.mark.parametrize(("name", "task"), PAIRS)
def test_an_unknown_option_lists_the_methods_own(name, task):
    with pytest.raises(InputError, match=f"The method {name} has no option 'colour'. Its options: ") as refused:
        make_method(name, task, {"colour": 1})
    options = [field.name for field in fields(METHODS[name, task])]
    assert all(option in str(refused.value) for option in options or ["none"])


@pytest.mark.parametrize(("name", "task"), PAIRS)
def test_options_are_kept(name, task):
    given_options = {field.name: field.default for field in fields(METHODS[name, task])}
    assert vars(make_method(name, task, given_options)) == vars(make_method(name, task)) == given_options


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("pixel-cm", {"trace_weight": "much"}, "trace_weight of pixel-cm must be a number, not 'much'"),
        ("pixel-cm", {"trace_weight": True}, "must be a number"),
        ("pixel-cm", {"warmup": None}, "must be a number"),
        ("pixel-cm", {"trace": 1}, "Unknown trace 1"),
        ("pixel-cm", {"features": "both"}, "Unknown features 'both'. Known: own, encoder, shared"),
        ("global-cm", {"trace": "sum"}, "Unknown trace 'sum'. Known: posterior, plain"),
        ("global-cm", {"warmup": 1.0}, "warmup"),
        ("global-cm", {"warmup": -0.1}, "warmup"),
        ("pixel-cm-lowrank", {"rank": 0}, "rank must be at least 1"),
        ("pixel-cm-lowrank", {"rank": 1.5}, "rank of pixel-cm-lowrank must be a whole number"),
    ],
)
def test_wrong_values_are_refused(name, options, words):
    with pytest.raises(InputError, match=words):
        make_method(name, "masks", options)


@pytest.mark.parametrize("value", [1, 0.5, np.float32(0.5), np.int64(1)])
def test_any_number_will_do(value):
    assert make_method("pixel-cm", "masks", {"trace_weight": value}).trace_weight == value


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("soft-bootstrap", {"trust": -0.1}, "trust is a share, 0 ≤ trust ≤ 1, not -0.1"),
        ("soft-bootstrap", {"trust": 1.1}, "trust is a share"),
        ("soft-bootstrap", {"trust": "much"}, "trust of soft-bootstrap must be a number"),
        ("shared-cm", {"trace_weight": None}, "trace_weight of shared-cm must be a number"),
        ("dawid-skene", {"one_coin": True}, "has no option 'one_coin'. Its options: none"),
        ("global-cm-lowrank", {"rank": 0}, "rank must be at least 1, not 0"),
        ("global-cm-lowrank", {"warmup": 1.0}, "warmup is a share of the training"),
    ],
)
def test_wrong_options_on_label_tables_are_refused(name, options, words):
    with pytest.raises(InputError, match=words):
        make_method(name, "labels", options)


def test_one_implementation_serves_masks_and_label_tables():
    both = {"doctor-net", "crowd-layer", "aggnet", "max-mig"}
    assert both <= set(methods_for("masks")) & set(methods_for("labels"))
    assert {"mrprism", "mrnet", "multi-hypothesis", "label-sampling"} <= set(methods_for("masks"))
