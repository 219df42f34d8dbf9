"""Models of answers that are no classes: known by name, beside the estimators of classes, and all of one contract."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.fusion.other_answers import listed_models, make_model, model_names
from annotruth.fusion.other_answers.base import AnswerModel
from annotruth.fusion.other_answers.checks import CHECKS
from annotruth.fusion.registry import method_names

ROOT = Path(__file__).parents[3]
OPTIONS: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in model_names()]
OPTIONS.append(("multi-label", {"dependence": False}))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=str)
def test_model(name: str, options: dict[str, Any], check: Callable[[AnswerModel[Any]], None]) -> None:
    check(make_model(name, options))


@pytest.mark.parametrize("name", model_names())
def test_types_of_answers_name_the_methods_that_take_them(name: str) -> None:
    assert name in make_model(name).takes.methods
    assert name not in method_names()


def test_every_model_is_a_name_of_the_package() -> None:
    for module, class_name in listed_models().values():
        assert getattr(at, class_name).__module__ == module


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/fuse.md", "docs/reference/methods.md"])
def test_tables_in_the_documentation_have_every_model(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert not [each.class_name for each in listed_models().values() if f"`{each.class_name}`" not in text]


def test_the_reference_has_every_model() -> None:
    commands = (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8")
    api = (ROOT / "docs/reference/api/fusion.md").read_text(encoding="utf-8")
    for name, listed in listed_models().items():
        assert f"`{name}`" in commands
        assert f"::: {'.'.join(listed)}\n" in api


def test_options_that_a_model_does_not_have_are_refused() -> None:
    with pytest.raises(InputError, match=r"bradley-terry has no option 'speed'. Its options: max_iter, prior, tol"):
        make_model("bradley-terry", {"speed": 1})
    with pytest.raises(InputError, match="dependence must be true or false, not 'yes'"):
        make_model("multi-label", {"dependence": "yes"})


@pytest.mark.filterwarnings("ignore:.*did not settle")
def test_iterations_that_run_out_are_told() -> None:
    frame = at.fusion.other_answers.checks.made_up_answers(at.Marks)
    assert not at.ContinuousSTAPLE(max_iter=2, tol=0).fit(frame).converged_
