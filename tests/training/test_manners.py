"""scikit-learn manners: the constructor only stores, parameters can be read, set and cloned."""

from __future__ import annotations

import inspect

import pytest
import torch
from sklearn.base import clone
from torch import nn

from annotruth import Segmenter
from annotruth.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")


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
    assert settings["network"] == "U-Net"
    assert settings["batch_size"] == 1
    assert settings["patch_size"] is None
    assert settings["options"]["trace_weight"] == 0.25
    assert "warmup" in settings["options"]  # defaults too
