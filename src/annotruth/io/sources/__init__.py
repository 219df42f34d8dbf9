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
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, get_args

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.io.archives import open_archive
from annotruth.io.problems import Problem, Progress, Report, reporting
from annotruth.parallel import MapFunction

Input = Literal["truth", "images", "features", "duplicates"]


class Source(ABC):
    """A kind of data set: how to know one, load it, and find everything that is wrong with it.

    Attributes
    ----------
    name : what messages call it, without an article: "label table"
    key : what it is chosen by, ``--from label-table``; by default made of the name
    description : what it is, in a line
    kind : "masks" or "labels", that of the annotations it gives
    inputs : what ``load`` and ``check`` take beside the path, of truth, images, features and duplicates
    suffixes : of its files, for messages; none for a folder
    options : what ``load`` and ``check`` take beside these, by name, with a line on each
    general : whether it takes whatever has its outer form, so that sources that look inside are asked first
    """

    name: ClassVar[str]
    key: ClassVar[str]
    description: ClassVar[str]
    kind: ClassVar[Literal["masks", "labels"]]
    inputs: ClassVar[tuple[Input, ...]] = ()
    suffixes: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[Mapping[str, str]] = {}
    general: ClassVar[bool] = False

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "name" in vars(cls) and "key" not in vars(cls):
            cls.key = cls.name.lower().replace(" ", "-")

    @abstractmethod
    def matches(self, path: Path) -> bool:
        """Tell whether there is a data set of this kind, sound or not, at a path; nothing is raised."""

    def is_plain(self, path: Path) -> bool:
        """Tell, at a glance, that a path is of this kind and that no other source need be asked; mostly it is not."""
        return False

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


if TYPE_CHECKING:
    SOURCES: dict[str, Source]
    """Every registered source by its name; whoever asks for it loads all of them."""

_registered: dict[str, Source] = {}

SourceClass = TypeVar("SourceClass", bound=type[Source])


def register(source: SourceClass) -> SourceClass:
    """Make a source known to ``load``, ``check`` and the command line; for use as a decorator."""
    if not source.__module__.startswith(__name__):  # one of the package's own may have the same name
        _load_all()
    if source.name in _registered:
        raise InputError(f"There is already a source called {source.name!r}; a source needs a name of its own.")
    _registered[source.name] = source()
    return source


def find_source(path: str | Path, key: str | None = None) -> Source:
    """Give the source that a path is one of; sources that look inside a file or folder are asked first.

    Parameters
    ----------
    key : the source's own, where it is not to be found by looking at the path

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     find_source(folder).name
    'case folder'
    """
    path = Path(path)
    try:
        return _by_key(path, key) if key is not None else _find(path)
    except OSError as error:  # a name too long for any file, a folder that may not be entered
        raise InputError(f"{path}: cannot be opened: {error.strerror or error}.") from error


def _find(path: Path) -> Source:
    import_module(f"{__name__}.case_folder")  # the package's own form is told at a glance, without all the others
    for source in list(_registered.values()):  # to which another thread may be adding
        if source.is_plain(path):
            return source
    for general in (False, True):
        found = [source for source in _sorted_sources() if source.general == general and source.matches(path)]
        if len(found) > 1:
            names = " or ".join(f"{source.description} ({source.key})" for source in found)
            raise InputError(f"{path}: this may be {names}. Say which: --from {found[0].key}, source={found[0].key!r}.")
        if found:
            return found[0]
    raise InputError(nothing_to_load(path))


def _by_key(path: Path, key: str) -> Source:
    found = {source.key: source for source in _sorted_sources()}
    if key not in found:
        raise InputError(f"There is no source called {key!r}; there are {', '.join(sorted(found))}.")
    if not path.exists():
        raise InputError(nothing_to_load(path))
    return found[key]


def nothing_to_load(path: Path) -> str:
    """Say why a path is no data set."""
    if not path.exists():
        return f"{path}: there is no such file or folder."
    from annotruth.io.drawn import read_json  # which takes its time to import

    if path.suffix.lower() == ".zip":
        return f"{path}: an archive. Unpack it, or make cases of it with `annotruth import`."
    if path.is_file() and path.suffix.lower() == ".json":
        try:
            read_json(path)
        except InputError as error:  # cut off, say
            return str(error)
    keys = ", ".join(source.key for source in _sorted_sources())
    return f"{path}: not a data set of a known kind. Known are {keys}; name one with --from, if it is."


def describe_takers(name: str) -> str:
    """Say which sources take an input, for messages.

    Examples
    --------
    >>> describe_takers("features")
    'a label table'
    """
    takers = [source for source in _sorted_sources() if name in source.inputs]
    own = [source for source in takers if source.general]  # others are so many that they are not named one by one
    return " or ".join([f"a {source.name}" for source in own] + ["another kind of data set"] * (len(takers) > len(own)))


def _sorted_sources() -> list[Source]:
    """The sources by key, the same whoever registered first."""
    _load_all()
    return sorted(_registered.values(), key=lambda source: source.key)


def load(
    path: str | Path,
    truth: str | Path | None = None,
    *,
    images: str | Path | None = None,
    features: str | Path | None = None,
    duplicates: str = "error",
    source: str | None = None,
    **options: Any,
) -> Annotations:
    """Load a case folder, a label table, a labelling tool's export, or whatever other source is registered.

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
    source : key of the kind of data set that it is, where that is not to be found by looking at it
    options : further ones of that kind of data set

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "answers.csv"
    ...     _ = table.write_text("item,rater,label\\na,ann,cat\\na,bob,dog\\nb,ann,cat\\n")
    ...     load(table)
    Annotations(labels: 2 items, 2 raters, 2 classes, 3 answers)
    """
    path = open_archive(path)
    found = find_source(path, source)
    inputs = {"truth": truth, "images": images, "features": features, "duplicates": duplicates, **options}
    return found.load(path, **accept_inputs(found, path, inputs))


def check(
    path: str | Path,
    progress: Progress | None = None,
    *,
    truth: str | Path | None = None,
    images: str | Path | None = None,
    features: str | Path | None = None,
    duplicates: str = "error",
    source: str | None = None,
    **options: Any,
) -> list[Problem]:
    """List every problem of a case folder, a label table or another source; it never stops at the first.

    Parameters
    ----------
    path : a case folder, or a label table (.csv, .parquet)
    progress : called with the number of files read and the number of all
    truth, images, features, duplicates, source, options : as :func:`annotruth.load` takes them

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
        path = open_archive(path)
        found = find_source(path, source)
        inputs = {"truth": truth, "images": images, "features": features, "duplicates": duplicates, **options}
        found.check(path, problems.append, progress, **accept_inputs(found, path, inputs))
    return sorted(problems, key=lambda problem: problem.severity != "fatal")


def accept_inputs(source: Source, path: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given of the inputs and options that a source takes; any that it does not take is refused."""
    files = {name: given.get(name) for name in ("truth", "images", "features")}
    source.refuse_inputs(path, files)
    accepted: dict[str, Any] = {name: Path(file) for name, file in files.items() if file is not None}
    if "duplicates" in source.inputs:
        accepted["duplicates"] = given.get("duplicates", "error")
    options = {name: value for name, value in given.items() if name not in get_args(Input) and value is not None}
    strangers = sorted(options.keys() - source.options.keys())
    if strangers:
        known = f"it takes {', '.join(source.options)}" if source.options else "it takes none"
        raise InputError(f"{path}: {strangers[0]} is not an option of a {source.name}; {known}.")
    return accepted | options


def _load_all() -> None:
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")


def __getattr__(name: str) -> Any:
    if name != "SOURCES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _load_all()
    return _registered
