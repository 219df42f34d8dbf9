"""``method="auto"``: methods are compared on the annotations at hand, and the recommended one is learnt by."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError

if TYPE_CHECKING:
    from annotruth.training.estimator import Estimator

AUTO = "auto"
COMPARISON = "comparison"
"""The folder, in that of a run, in which the comparison's trainings are kept."""
_OWN = ("method", "seed", "fold", "folds", "progress")
"""Parameters that a comparison sets by itself."""

E = TypeVar("E", bound="Estimator")


def compare_for(estimator: Estimator, annotations: Annotations, run_folder: Path | None, **more: Any) -> Any:
    """The comparison of methods that decides for an estimator, an ``annotruth.choosing.Comparison``.

    Parameters
    ----------
    estimator : its parameters are those of every training that is compared
    run_folder : where finished trainings are kept, in ``comparison``; None = nowhere
    more : further arguments of ``annotruth.compare``
    """
    if estimator.options:
        raise InputError(
            f"method={AUTO!r} chooses between methods, and takes no options of one: leave out "
            f"{', '.join(estimator.options)}, or name the method."
        )
    if estimator._processes().count > 1:
        raise InputError(
            f"method={AUTO!r} compares methods in one process. Compare first (`annotruth compare`), and train the "
            "recommended method with several."
        )
    settings = {name: value for name, value in estimator.get_params().items() if name not in _OWN}
    folder = None if run_folder is None else run_folder / COMPARISON
    # By its name: what compares estimators stands above them.
    return import_module("annotruth.choosing").compare(annotations, folder=folder, **settings, **more)


def fit_chosen(estimator: E, data: tuple[Any, ...], annotations: Annotations, run_folder: Any, resume: bool) -> E:
    """Fit an estimator by the method that a comparison recommends; ``data`` is what its ``fit`` is given."""
    folder = None if run_folder is None else Path(run_folder)
    found = compare_for(estimator, annotations, folder)
    params = {**estimator.get_params(), "method": found.recommended}
    fitted = type(estimator)(**params).fit(*data, run_folder=run_folder, resume=resume)
    for name, value in vars(fitted).items():
        if name not in params and name != "options":
            setattr(estimator, name, value)
    estimator._set_annotators(fitted._raters)
    estimator.comparison_ = found
    return estimator
