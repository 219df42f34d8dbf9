"""The annotation sources, one module each: what ``load`` reads and ``check`` looks at.

A source is a class with the names of :class:`Source`, under the decorator :func:`register`. To add one, put a module
with such a class into this folder. ``load``, ``check`` and the command line ask this registry, and nobody else tells a
folder from a file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, ClassVar, Literal, TypeVar

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.io.problems import Problem, Progress, Report, reporting
from annotruth.parallel import MapFunction

Input = Literal["truth", "images", "features", "duplicates"]


class Source(ABC):
    """A kind of data set: how to know one, load it, and find everything that is wrong with it.

    Attributes
    ----------
    name : what messages call it, without an article: "label table"
    description : what it is, in a line
    kind : "masks" or "labels", that of the annotations it gives
    inputs : what ``load`` and ``check`` take beside the path, of truth, images, features and duplicates
    suffixes : of its files, for messages; none for a folder
    general : whether it takes whatever has its outer form, so that sources that look inside are asked first
    """

    name: ClassVar[str]
    description: ClassVar[str]
    kind: ClassVar[Literal["masks", "labels"]]
    inputs: ClassVar[tuple[Input, ...]] = ()
    suffixes: ClassVar[tuple[str, ...]] = ()
    general: ClassVar[bool] = False

    @abstractmethod
    def matches(self, path: Path) -> bool:
        """Tell whether there is a data set of this kind, sound or not, at a path; nothing is raised."""

    @abstractmethod
    def load(self, path: Path, **inputs: Any) -> Annotations:
        """Load a data set, raising InputError for whatever :meth:`check` calls fatal; ``inputs`` as declared."""

    @abstractmethod
    def check(self, path: Path, report: Report, progress: Progress | None = None, **inputs: Any) -> None:
        """Report every problem; an InputError that gets out is reported as one of ``path``."""

    def load_sound(
        self, path: Path, truth: Path | None = None, progress: Progress | None = None, across: MapFunction = map
    ) -> tuple[Annotations, list[Problem]]:
        """Load the cases in which nothing is wrong, and give the problems of those set aside.

        This one sets nothing aside; a source that is read case by case does.

        Parameters
        ----------
        truth : known truth, as :meth:`find_truth` gives it; what lies in the data set itself counts only if named here
        progress, across : told of files read, and how to spread this reading, over workers say
        """
        return self.load(path, **({} if truth is None else {"truth": truth})), []

    def find_truth(self, truth: Path) -> Path:
        """Find known truth that was given beside a data set, in the form that goes with it; refuse any other."""
        if not truth.exists():
            raise InputError(f"{truth}: there is no such file or folder of known truth.")
        return truth

    def refuse_inputs(self, path: Path, given: Mapping[str, Any]) -> None:
        """Refuse inputs, by name, that are not None and that this source does not take."""
        for name, value in given.items():
            if value is not None and name not in self.inputs:
                raise InputError(
                    f"{path}: {name}= goes with {describe_takers(name)}; a {self.name} holds all of its own files."
                )

    def __repr__(self) -> str:
        return f"<{self.name}: {self.description}>"


SOURCES: dict[str, Source] = {}
"""Every registered source by its name."""

SourceClass = TypeVar("SourceClass", bound=type[Source])


def register(source: SourceClass) -> SourceClass:
    """Make a source known to ``load``, ``check`` and the command line; for use as a decorator."""
    if source.name in SOURCES:
        raise InputError(f"There is already a source called {source.name!r}; a source needs a name of its own.")
    SOURCES[source.name] = source()
    return source


def find_source(path: str | Path) -> Source:
    """Give the source that a path is one of; sources that look inside a file or folder are asked first.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     find_source(folder).name
    'case folder'
    """
    path = Path(path)
    try:
        for source in sorted(SOURCES.values(), key=lambda source: source.general):
            if source.matches(path):
                return source
        raise InputError(nothing_to_load(path))
    except OSError as error:  # a name too long for any file, a folder that may not be entered
        raise InputError(f"{path}: cannot be opened: {error.strerror or error}.") from error


def nothing_to_load(path: Path) -> str:
    """Say why a path is no data set."""
    if not path.exists():
        return f"{path}: there is no such file or folder."
    forms = [
        f"a {source.name}" + f" ({', '.join(source.suffixes)})" * bool(source.suffixes) for source in _sorted_sources()
    ]
    return f"{path}: neither {' nor '.join(forms)}."


def describe_takers(name: str) -> str:
    """Say which sources take an input, for messages.

    Examples
    --------
    >>> describe_takers("features")
    'a label table'
    """
    return " or ".join(f"a {source.name}" for source in _sorted_sources() if name in source.inputs)


def _sorted_sources() -> list[Source]:
    """The sources by name, the same whoever registered first."""
    return sorted(SOURCES.values(), key=lambda source: source.name)


def load(
    path: str | Path,
    truth: str | Path | None = None,
    *,
    images: str | Path | None = None,
    features: str | Path | None = None,
    duplicates: str = "error",
) -> Annotations:
    """Load a case folder, a label table, or whatever other source is registered.

    Of a case folder only the heads of files are read now, masks and images when they are needed; without ``classes``
    in dataset.json all masks are read once to find them.

    Parameters
    ----------
    path : a case folder, or a label table (.csv, .parquet) with the columns item, rater, label
    truth : for a label table, a second table with the columns item and truth
    images : for a label table, a folder of pictures, one file ``<item>.<ext>`` each
    features : for a label table, a file with one row of numbers per item, see :func:`load_features`
    duplicates : for a label table, what to do when a rater labelled an item twice and differently: "error" lists these
        answers, "keep-last" takes the one that stands last in the table

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "answers.csv"
    ...     _ = table.write_text("item,rater,label\\na,ann,cat\\na,bob,dog\\nb,ann,cat\\n")
    ...     load(table)
    Annotations(labels: 2 items, 2 raters, 2 classes, 3 answers)
    """
    path, source = Path(path), find_source(path)
    return source.load(path, **_accept_inputs(source, path, truth, images, features, duplicates))


def check(
    path: str | Path,
    progress: Progress | None = None,
    *,
    truth: str | Path | None = None,
    images: str | Path | None = None,
    features: str | Path | None = None,
    duplicates: str = "error",
) -> list[Problem]:
    """List every problem of a case folder, a label table or another source; it never stops at the first.

    Parameters
    ----------
    path : a case folder, or a label table (.csv, .parquet)
    progress : called with the number of files read and the number of all
    truth, images, features, duplicates : for a label table, as :func:`annotruth.load` takes them

    Returns
    -------
    Problems, fatal ones first. ``load`` refuses data with a fatal problem, and takes all others.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [problem.message for problem in check(folder)]
    ['there is no raters/ folder: there is not a single mask.']
    """
    path = Path(path)
    problems: list[Problem] = []
    with reporting(problems.append, path):
        source = find_source(path)
        inputs = _accept_inputs(source, path, truth, images, features, duplicates)
        source.check(path, problems.append, progress, **inputs)
    return sorted(problems, key=lambda problem: problem.severity != "fatal")


def _accept_inputs(
    source: Source,
    path: Path,
    truth: str | Path | None,
    images: str | Path | None,
    features: str | Path | None,
    duplicates: str,
) -> dict[str, Any]:
    """What was given of the inputs that a source takes; files that it does not take are refused."""
    files = {"truth": truth, "images": images, "features": features}
    source.refuse_inputs(path, files)
    given: dict[str, Any] = {name: Path(file) for name, file in files.items() if file is not None}
    return given | ({"duplicates": duplicates} if "duplicates" in source.inputs else {})


for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
