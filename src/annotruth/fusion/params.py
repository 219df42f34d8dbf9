"""An estimator's parameters in scikit-learn's manners, without loading scikit-learn, which takes longer than most jobs.

``sklearn.base.clone`` and whatever else goes by ``get_params`` and ``set_params`` take these estimators as their own.
"""

from __future__ import annotations

from copy import deepcopy
from inspect import Parameter, signature
from typing import Any, Self, TypeVar

T = TypeVar("T", bound="Parameters")


class Parameters:
    """Base of classes whose constructor stores each argument under its own name, and does nothing else.

    Examples
    --------
    >>> class Vote(Parameters):
    ...     def __init__(self, least=1):
    ...         self.least = least
    >>> Vote(least=2).get_params(), Vote().set_params(least=3), Vote()
    ({'least': 2}, Vote(least=3), Vote())
    """

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """Parameters by name, in the order of the alphabet, with what they are if not given."""
        given = sorted(signature(cls.__init__).parameters.items())
        return {name: each.default for name, each in given if name != "self" and each.kind != Parameter.VAR_KEYWORD}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Give all parameters by name; no parameter is an estimator, so that ``deep`` changes nothing."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> Self:
        """Set some parameters; others stay as they are."""
        known = list(self._defaults())
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: {known}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        usual = self._defaults()
        changed = {name: value for name, value in self.get_params().items() if repr(value) != repr(usual[name])}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of any estimator; by then it is loaded."""
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()


def clone(estimator: T) -> T:
    """Give an estimator with the same parameters that has learnt nothing.

    Examples
    --------
    >>> from annotruth import STAPLE
    >>> clone(STAPLE(max_iter=7))
    STAPLE(max_iter=7)
    """
    return type(estimator)(**deepcopy(estimator.get_params()))
