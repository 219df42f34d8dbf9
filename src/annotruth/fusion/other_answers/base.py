"""The contract of models of answers that are no classes, and what all share."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from annotruth.errors import InputError
from annotruth.fusion.base import convergence_warning
from annotruth.fusion.params import Parameters

if TYPE_CHECKING:
    import pandas as pd

    from annotruth.data.comparisons import Comparisons
    from annotruth.data.findings import Findings
    from annotruth.data.marks import Marks

    Data = TypeVar("Data", Comparisons, Findings, Marks)
else:
    Data = TypeVar("Data")


class AnswerModel(Parameters, ABC, Generic[Data]):
    """Base of the models of comparisons, marks and findings: one ``fit``, and two tables of what was learnt.

    Attributes
    ----------
    takes : the type of the answers, such as :class:`~annotruth.data.marks.Marks`
    items_, raters_ : names, in the order of all arrays that were learnt
    truth_ : table with a row per item
    ranking_ : table of the raters, the best first
    converged_ : whether the stopping rule was met
    """

    takes: ClassVar[type[Any]]
    items_: tuple[str, ...]
    raters_: tuple[str, ...]

    def fit(self, answers: Data) -> Self:
        """Learn from answers, forgetting what was learnt before."""
        if not isinstance(answers, self.takes):
            wanted = self.takes.__name__
            raise InputError(
                f"{type(self).__name__} takes {wanted}, not {type(answers).__name__}: "
                f"annotruth.{wanted}.from_table(frame) makes them of the columns {', '.join(self.takes.columns)}."
            )
        if not len(answers):
            raise InputError("There is no answer to learn from.")
        self.items_, self.raters_ = answers.items, answers.raters
        self.converged_ = True
        self.learn(answers)
        if not self.converged_:
            warnings.warn(
                f"{type(self).__name__} did not settle within max_iter iterations; raise max_iter or tol.",
                convergence_warning(),
                stacklevel=2,
            )
        return self

    @abstractmethod
    def learn(self, answers: Data) -> None:
        """Set what is learnt, under names that end in ``_``."""

    @abstractmethod
    def truth_columns(self) -> dict[str, np.ndarray]:
        """Columns (items,) of ``truth_`` beside the item, by name."""

    @abstractmethod
    def rater_columns(self) -> dict[str, np.ndarray]:
        """Columns (raters,) of ``ranking_`` beside the rater, by name; the first one, the higher the better."""

    @property
    def truth_(self) -> pd.DataFrame:
        """A row per item, in the items' order."""
        import pandas as pd

        self._check_fitted()
        return pd.DataFrame({"item": np.array(self.items_, dtype=object), **self.truth_columns()})

    @property
    def ranking_(self) -> pd.DataFrame:
        """A row per rater, the best first."""
        import pandas as pd

        self._check_fitted()
        columns = self.rater_columns()
        order = np.argsort(-next(iter(columns.values())), kind="stable")
        raters = np.array(self.raters_, dtype=object)
        return pd.DataFrame({"rater": raters[order], **{name: values[order] for name, values in columns.items()}})

    def _check_fitted(self) -> None:
        if not hasattr(self, "items_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"This {type(self).__name__} has not learnt anything yet: call fit(answers) first.")
