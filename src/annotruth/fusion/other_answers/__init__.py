"""Models of answers that are no classes: comparisons of two items, numbers, sets of findings.

They have names of their own beside those of the estimators of class labels, which know nothing of them. Adding one is
adding a file: a class that derives from :class:`~annotruth.fusion.other_answers.base.AnswerModel`, under
``@register("its-name")``, in this folder. Nothing is loaded before it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from annotruth.fusion.registry import Listed, check_options, find_registered

if TYPE_CHECKING:
    from annotruth.fusion.other_answers.base import AnswerModel

    T = TypeVar("T", bound=type[AnswerModel[Any]])
else:
    T = TypeVar("T")
MODELS: dict[str, type[AnswerModel[Any]]] = {}
"""Models that have been loaded, by name."""


def register(name: str) -> Callable[[T], T]:
    """Make a model known by a name, to :func:`make_model`, the command line, and the names of ``annotruth``."""

    def add(model: T) -> T:
        MODELS[name] = model
        return model

    return add


@cache
def listed_models() -> dict[str, Listed]:
    """The models of this package by name, found in the text of its modules.

    Examples
    --------
    >>> listed_models()["bradley-terry"]
    Listed(module='annotruth.fusion.other_answers.bradley_terry', class_name='BradleyTerry')
    """
    return find_registered(Path(__file__).parent, __name__)


def model_names() -> tuple[str, ...]:
    """All names that :func:`make_model` takes.

    Examples
    --------
    >>> model_names()
    ('bradley-terry', 'continuous-staple', 'multi-label', 'noisy-bradley-terry')
    """
    return tuple(sorted({*listed_models(), *MODELS}))


def make_model(method: str, options: Mapping[str, Any] | None = None) -> AnswerModel[Any]:
    """Make the model of a name; unknown names and options are refused with the known ones.

    Examples
    --------
    >>> make_model("bradley-terry", {"prior": 0.5})
    BradleyTerry(prior=0.5)
    """
    from annotruth.validation import one_of  # which loads NumPy

    one_of(method, model_names(), "method")
    if method not in MODELS:
        import_module(listed_models()[method].module)
    made = MODELS[method]()
    check_options(method, made.get_params(), options)
    return made.set_params(**(options or {}))
