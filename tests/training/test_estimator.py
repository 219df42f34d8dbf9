"""What Segmenter and Classifier share: scikit-learn manners, and which items are held out."""

from __future__ import annotations

import inspect

import pytest
import torch
from sklearn.base import clone
from torch import nn

from annotruth import Segmenter
from annotruth.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")


def test_groups_are_never_torn_apart(make_cases, tiny):
    annotations = make_cases(12, groups=["large"] * 8 + ["a", "b", "c", "d"])
    nothing_held_out = 0
    for seed in range(20):
        train, held_out = tiny(validation=0.2, seed=seed)._split(annotations)
        if held_out is None:  # the large group was dealt last and left nothing
            nothing_held_out += 1
            assert len(train) == 12
        else:
            assert len(held_out) > 0
            assert not set(train.groups) & set(held_out.groups)
    assert 0 < nothing_held_out < 20


def test_a_single_group_is_trained_on(make_cases, tiny):
    model = tiny(max_epochs=1, validation=0.5).fit(make_cases(4, groups=["only"] * 4))
    assert model.history_.val_loss.isna().all()


def test_the_constructor_only_stores():
    model = Segmenter("no such method", max_epochs=-3, validation=7, no_such_option=1)
    assert model.get_params()["method"] == "no such method"
    named = set(inspect.signature(Segmenter.__init__).parameters) - {"self"}
    assert set(vars(model)) == named


def test_parameters_with_options():
    model = Segmenter("pixel-cm", max_epochs=3, trace_weight=0.2)
    params = model.get_params()
    assert params["trace_weight"] == 0.2
    assert params["max_epochs"] == 3
    assert "options" not in params
    assert Segmenter(**params).get_params() == params
    assert model.set_params(trace_weight=0.4, max_epochs=5, warmup=0.1) is model
    assert model.get_params() == {**params, "trace_weight": 0.4, "max_epochs": 5, "warmup": 0.1}
    assert "trace_weight=0.4" in repr(model)


def test_a_clone_has_the_parameters_and_nothing_learnt(cases, tiny):
    model = tiny("global-cm", trace_weight=0.2, max_epochs=1).fit(cases)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not [name for name in vars(copy) if name.endswith("_")]
    copy.set_params(trace_weight=0.9)
    assert model.get_params()["trace_weight"] == 0.2


def test_a_clone_with_an_own_network(cases, tiny, weights, same):
    torch.manual_seed(0)
    model = tiny(network=nn.Conv2d(1, 2, 1), max_epochs=1)
    assert same(weights(clone(model).fit(cases)), weights(model.fit(cases)))


def test_fit_changes_no_parameter_and_returns_the_model(cases, tiny):
    model = tiny("pixel-cm", max_epochs=1)
    before = model.get_params()
    assert model.fit(cases) is model
    assert model.get_params() == before


def test_options_are_checked_when_fitting(cases, tiny):
    model = tiny("mean").set_params(trace_weight=1)
    with pytest.raises(InputError, match="no option 'trace_weight'"):
        model.fit(cases)


def test_settings_name_everything_that_was_used(cases, tiny):
    model = tiny("pixel-cm", max_epochs=1, batch_size=None, trace_weight=0.25).fit(cases)
    settings = model.settings_
    assert settings["method"] == "pixel-cm"
    assert settings["network"] == "small"
    assert settings["batch_size"] == 1
    assert settings["patch_size"] is None
    assert settings["options"]["trace_weight"] == 0.25
    assert "warmup" in settings["options"]  # defaults too
