"""The base of sources that others lay out: a labelling tool's export, a paper's folder, a crowd's table.

Such a source says how to know its data (``matches``) and what is in them (``read``). Loading, checking, importing and
setting aside what is bad are the same for all, and are here.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.io.contents import Contents
from annotruth.io.problems import Problem, Progress, Report, refuse, reporting
from annotruth.io.reading import refuse_irregular
from annotruth.io.sources import Source
from annotruth.parallel import MapFunction


class ImportSource(Source):
    """A source that gives :class:`Contents`.

    Attributes
    ----------
    identity : where a rater's identity comes from, in a few words, for the documentation
    holds : of "image", "mask", "polygon", "box", "ellipse", "point", "class" and "3D", what is read of it, likewise
    options : what :meth:`read` takes beside the ``inputs``, by name, with a line on each
    """

    identity: ClassVar[str] = ""
    holds: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[Mapping[str, str]] = {}

    @property
    def held(self) -> tuple[str, ...]:
        """What is read of it; of most sources that do not say so, images and masks, or answers."""
        return self.holds or (("class",) if self.kind == "labels" else ("image", "mask"))

    @abstractmethod
    def read(self, path: Path, report: Report, **inputs: Any) -> Contents:
        """Say what is there, without reading pixels.

        Parameters
        ----------
        report : takes what is left out: a fatal problem where something is wrong (``load`` raises it, ``import`` goes
            on without that part, with exit code 1), a warning where it is left out as it should be
        inputs : of the declared ``inputs`` and ``options``, those that were given
        """

    def load(self, path: Path, **inputs: Any) -> Annotations:
        contents = self._something(path, refuse, inputs)
        return self._annotations(path, contents, inputs)

    def load_sound(
        self, path: Path, truth: Path | None = None, progress: Progress | None = None, across: MapFunction = map
    ) -> tuple[Annotations, list[Problem]]:
        """Load what is sound; masks are read later, and may then turn out to be bad."""
        problems: list[Problem] = []
        contents = self._something(path, problems.append, {})
        fatal = [problem for problem in problems if problem.severity == "fatal"]
        return self._annotations(path, contents, {}), fatal

    def find_truth(self, truth: Path) -> Path:
        raise InputError(
            f"{truth}: known truth goes with a case folder or a label table; make one with `annotruth import` first."
        )

    def check(self, path: Path, report: Report, progress: Progress | None = None, **inputs: Any) -> None:
        contents = self._something(path, report, inputs)
        if contents.answers is None:
            for _ in contents.sound_masks(report, progress):
                pass
        with reporting(report, path):
            made = self._annotations(path, contents, inputs)
            for index in range(len(made)) if made.has_images else ():
                with reporting(report, path, made.items[index]):
                    made.item_image(index)
        contents.warn(path, report)

    def _something(self, path: Path, report: Report, inputs: Mapping[str, Any]) -> Contents:
        """Read, and refuse what holds nothing at all."""
        report_irregular(path, report)
        contents = self.read(path, report, **inputs)
        if not contents.raters:
            raise InputError(f"{path}: there is no annotation that can be used in this {self.name}.")
        return contents

    def _annotations(self, path: Path, contents: Contents, inputs: Mapping[str, Any]) -> Annotations:
        try:
            return contents.annotations(inputs.get("duplicates", "error"))
        except InputError as error:
            raise InputError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from None


def report_irregular(path: Path, report: Report) -> None:
    """Report what lies in a folder and can be no file of it: pipes, devices, links that lead nowhere.

    Sources pass over them, so that somebody's labels would be missing, and nobody would know.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / "ann.json").symlink_to("nowhere")
    ...     report_irregular(Path(folder), lambda problem: print(problem.message))
    this is a link that leads nowhere.
    """
    for folder, names, files in os.walk(path):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in sorted(files):
            file = Path(folder) / name
            if name.startswith(".") or file.is_file():
                continue
            with reporting(report, file):
                refuse_irregular(file)
                raise InputError("this is a link that leads nowhere. Replace it.")
