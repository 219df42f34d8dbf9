"""Old names work for one version more, and say where what they stood for is now."""

from __future__ import annotations

from importlib import import_module

import pytest

import annotruth

OLD = {
    "annotruth.nn.is_given": "annotruth.nn.is_labelled",
    "annotruth.methods.Parts": "annotruth.methods.MethodModel",
    "annotruth.methods.Shape": "annotruth.methods.DataSpec",
    "annotruth.methods.base.register": "annotruth.methods.register",
    "annotruth.methods.base.METHODS": "annotruth.methods.METHODS",
    "annotruth.fusion.threads.threads": "annotruth.parallel.threads.threads",
    "annotruth.report.suspects": "annotruth.reporting.suspects",
}


def found(path: str) -> object:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


@pytest.mark.parametrize(("old", "new"), OLD.items())
def test_an_old_name_warns_and_works(old, new):
    with pytest.warns(DeprecationWarning, match=rf"{old} is {new} now") as warned:
        assert found(old) is found(new)
    assert warned[0].filename == __file__


def test_a_name_that_never_was_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"annotruth\.nn.*no_such_name"):
        found("annotruth.nn.no_such_name")


def test_the_public_function_works_after_its_old_module_was_imported():
    import_module("annotruth.report")
    with pytest.raises(TypeError, match="missing 3 required positional arguments"):
        annotruth.report()
