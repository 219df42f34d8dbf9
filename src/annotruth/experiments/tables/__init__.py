"""Every table by its name. A file of this folder declares some; importing the folder finds them all."""

from importlib import import_module
from pkgutil import iter_modules

from annotruth.errors import InputError
from annotruth.experiments.core.experiment import Experiment


def _find() -> dict[str, Experiment]:
    """Experiments in the order of their names, as the command line lists them."""
    found: dict[str, Experiment] = {}
    for module in iter_modules(__path__):
        for value in vars(import_module(f"{__name__}.{module.name}")).values():
            if isinstance(value, Experiment) and found.setdefault(value.name, value) is not value:
                raise InputError(f"Two experiments are named {value.name}; the second is in {module.name}.py.")
    return dict(sorted(found.items()))


EXPERIMENTS = _find()
