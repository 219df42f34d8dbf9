"""Old names of what is called otherwise now: they work for one version more, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def old_names(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's ``__getattr__`` that gives old names what the new ones stand for.

    Parameters
    ----------
    module : the module that had the old names
    names : where each is found now, by old name, as "package.module.name"

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as noted:
    ...     warnings.simplefilter("always")
    ...     root = old_names("annotruth.old", {"square_root": "math.sqrt"})("square_root")
    >>> root(9.0), str(noted[0].message)
    (3.0, 'annotruth.old.square_root is math.sqrt now; the old name goes with the next version.')
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(
            f"{module}.{name} is {names[name]} now; the old name goes with the next version.",
            DeprecationWarning,
            stacklevel=2,
        )
        home, _, new = names[name].rpartition(".")
        return getattr(import_module(home), new)

    return find
