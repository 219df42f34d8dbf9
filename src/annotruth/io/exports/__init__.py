"""The way back: fused or predicted labels in the form of a labelling tool or of another program, one module each.

An export is a class with the names of :class:`Export`, under the decorator :func:`register_export`. To add one, put a
module with such a class into this folder; ``annotruth export`` asks this registry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, ClassVar, TypeVar

from annotruth.errors import InputError
from annotruth.io.problems import Progress
from annotruth.io.results import Result, read_result
from annotruth.io.writing import fresh_folder


class Export(ABC):
    """A form in which labels are written.

    Attributes
    ----------
    key : what it is chosen by, ``--to cvat``
    description : what it is, in a line
    kinds : "masks", "labels" or both: what it can hold
    options : what :meth:`write` takes, by name, with a line on each
    """

    key: ClassVar[str]
    description: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]] = ("masks",)
    options: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def write(self, result: Result, folder: Path, progress: Progress, **options: Any) -> None:
        """Write a result into a folder that is there and empty, or may be overwritten."""


EXPORTS: dict[str, Export] = {}
"""Every registered export by its key."""

ExportClass = TypeVar("ExportClass", bound=type[Export])


def register_export(export: ExportClass) -> ExportClass:
    """Make an export known to ``export_result`` and the command line; for use as a decorator."""
    if export.key in EXPORTS:
        raise InputError(f"There is already an export called {export.key!r}; an export needs a key of its own.")
    EXPORTS[export.key] = export()
    return export


def export_result(
    result: str | Path,
    output: str | Path,
    to: str,
    *,
    cases: str | Path | None = None,
    disputed: float | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Path:
    """Write what ``annotruth fuse`` or ``predict`` left, or a case folder's truth, as another program reads it.

    Parameters
    ----------
    result : folder of a fusion or of predictions, or a case folder with truth
    to : key of the form, ``annotruth.io.exports.EXPORTS``
    cases : what was fused: gives images, classes and the names that items had where they were imported from
    disputed : pixels whose most probable class is less probable than this become a class of their own
    options : further ones of the form

    Examples
    --------
    >>> import json, tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cases = Path(folder) / "cases"
    ...     for part in ("raters/ann", "truth"):
    ...         (cases / part).mkdir(parents=True)
    ...         np.save(cases / part / "a.npy", np.eye(4, dtype=np.uint8))
    ...     made = export_result(cases, Path(folder) / "out", "coco")
    ...     [each["area"] for each in json.loads((made / "annotations.json").read_text())["annotations"]]
    [4]
    """
    if to not in EXPORTS:
        raise InputError(f"There is no export called {to!r}; there are {', '.join(sorted(EXPORTS))}.")
    export = EXPORTS[to]
    strangers = sorted(options.keys() - export.options.keys())
    if strangers:
        known = f"it takes {', '.join(export.options)}" if export.options else "it takes none"
        raise InputError(f"{strangers[0]} is not an option of the export {to}; {known}.")
    found = read_result(Path(result), None if cases is None else Path(cases), disputed)
    if found.kind not in export.kinds:
        what = "one class per item" if found.kind == "labels" else "masks"
        fitting = [key for key, each in sorted(EXPORTS.items()) if found.kind in each.kinds]
        raise InputError(f"{result}: this is {what}, which {to} cannot hold; {', '.join(fitting)} can.")
    folder = fresh_folder(output, overwrite)
    export.write(found, folder, progress or (lambda done, total: None), **options)
    return folder


for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
