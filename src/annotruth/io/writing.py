"""Outputs: there whole or not at all, in the format, geometry and pixel values of the files they came from."""

from __future__ import annotations

import json
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.data.drawings import NEGATIVE_FOLDER
from annotruth.errors import AnnotruthError, InputError, shorten
from annotruth.io.case_files import IMAGES, RATERS, TRUTH
from annotruth.io.files import DATASET_FILE, format_of, pixel_values, suffix_of
from annotruth.io.formats import EXACT_SUFFIXES
from annotruth.io.names import file_name
from annotruth.validation import MISSING_PIXEL, mask_labels, one_of, same_grid

IN_MEMORY_SUFFIX, BESIDE_JPEG_SUFFIX = ".npy", ".png"


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; what is written there takes ``path``'s place when all went well.

    The temporary name is hidden and keeps the suffix (``.nii.gz`` too), because writers choose the format by it.
    If the body fails, ``path`` stays as it was and nothing is left behind. Missing folders are made. Who may read the
    file is what the user's umask says, whichever writer made it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic(Path(folder) / "notes.txt") as temporary:
    ...         _ = temporary.write_text("done")
    ...     [file.name for file in Path(folder).iterdir()]
    ['notes.txt']
    """
    path = Path(path)
    suffix = "".join(path.suffixes[-2:]) if path.suffix.lower() == ".gz" else path.suffix
    temporary = path.with_name(f".annotruth-{uuid.uuid4().hex}{suffix}")
    try:
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
        mode = _make_empty(temporary)
        yield temporary
        if stat.S_IMODE(temporary.stat().st_mode) != mode:  # some writers make files that only their owner may read
            temporary.chmod(mode)
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):  # the first error is the one to show
            temporary.unlink()
        if isinstance(error, OSError):
            raise AnnotruthError(f"{path}: could not be written: {error.strerror or error}.") from error
        raise


def _make_empty(path: Path) -> int:
    """Make an empty file; give its permissions, which the umask decided."""
    file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        return stat.S_IMODE(os.fstat(file).st_mode)
    finally:
        os.close(file)


def sync(path: Path) -> None:
    """Let a file reach the disk before anything else is done: what must outlast a crash of the machine."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def fresh_folder(path: str | Path, overwrite: bool = False) -> Path:
    """Make an output folder, refusing one that already holds files unless ``overwrite``.

    Overwriting replaces files of the same name; it deletes nothing. Hidden files (``.DS_Store``) do not count.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fresh_folder(Path(folder) / "out").name
    'out'
    """
    path = Path(path)
    refuse_used_folder(path, overwrite)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: the folder cannot be made: {error.strerror or error}.") from error
    return path


def refuse_used_folder(path: Path, overwrite: bool = False) -> None:
    """Refuse what :func:`fresh_folder` would, without making anything yet.

    Examples
    --------
    >>> refuse_used_folder(Path("no such folder"))
    """
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file, not a folder; choose another output folder.")
    if path.is_dir() and not overwrite:
        held = sorted(entry.name for entry in path.iterdir() if not entry.name.startswith("."))
        if held:
            raise InputError(
                f"{path} already holds files ({shorten(held, 3)}); choose another folder or pass --overwrite."
            )


def write_mask(folder: str | Path, annotations: Annotations, index: int, labels: np.ndarray) -> Path:
    """Write the labels of one item as ``folder/<item>.<ext>``, as the item's own files are written.

    Format and geometry follow ``annotations.sources``, pixel values ``annotations.pixel_values``. Items that came
    from no file are written as NPY, those of a JPEG as PNG.

    Parameters
    ----------
    labels : (*spatial) class numbers, 255 = no label

    Returns
    -------
    The path of the file.

    Examples
    --------
    >>> import tempfile
    >>> annotations = Annotations.from_masks(np.zeros((1, 2, 4, 4), dtype=np.uint8))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_mask(folder, annotations, 0, np.ones((4, 4), dtype=np.uint8)).name
    'item_0.npy'
    """
    item, source = annotations.items[index], _source(annotations, index)
    path = Path(folder) / f"{file_name(item, 'item')}{_suffix(source)}"
    checked = mask_labels(np.asarray(labels), len(annotations.classes) or None, f"Item {item}")
    same_grid(checked.shape, annotations.shape(index), f"Item {item}", "the item")
    return write_mask_file(path, pixel_values(checked, annotations.pixel_values, str(path)), source)


def write_probabilities(folder: str | Path, annotations: Annotations, index: int, probabilities: np.ndarray) -> Path:
    """Write the class probabilities of one item as ``folder/<item>.<ext>``, in float32.

    NIfTI has the classes in a fourth axis, TIFF in its pages, NPY first. PNG and JPEG cannot hold such numbers:
    beside such images the file is a TIFF.

    Parameters
    ----------
    probabilities : (classes, *spatial)

    Examples
    --------
    >>> import tempfile
    >>> annotations = Annotations.from_masks(np.zeros((1, 2, 4, 4), dtype=np.uint8))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.load(write_probabilities(folder, annotations, 0, np.full((2, 4, 4), 0.5))).shape
    (2, 4, 4)
    """
    item, source = annotations.items[index], _source(annotations, index)
    suffix = _suffix(source)
    path = Path(folder) / f"{file_name(item, 'item')}{'.tiff' if suffix.lower() == '.png' else suffix}"
    array = np.asarray(probabilities, dtype=np.float32)
    same_grid(array.shape[1:], annotations.shape(index), f"Item {item}", "the item")
    return write_image_file(path, array, source)


def write_case_folder(
    folder: str | Path, annotations: Annotations, suffix: str | None = None, overwrite: bool = False
) -> Path:
    """Write masks, with images and truth where there are any, as a case folder that ``load`` reads back.

    Parameters
    ----------
    folder : a new or empty folder, unless ``overwrite``
    suffix : the format of all files; by default that of each item's source, PNG for a JPEG, or NPY

    Examples
    --------
    >>> import tempfile
    >>> annotations = Annotations.from_masks(np.zeros((1, 2, 4, 4), dtype=np.uint8))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = write_case_folder(folder, annotations)
    ...     sorted(path.name for path in made.iterdir())
    ['dataset.json', 'raters']
    """
    if annotations.kind != "masks":
        raise InputError("A case folder holds masks; these annotations are a label table, to be written as such.")
    if suffix is not None:
        one_of(suffix, EXACT_SUFFIXES, "suffix")
    cases = [file_name(item, "item") for item in annotations.items]
    raters = [file_name(rater, "rater") for rater in annotations.raters]
    folder = fresh_folder(folder, overwrite)
    for rater in raters:
        (folder / RATERS / rater).mkdir(parents=True, exist_ok=True)
    for index, case in enumerate(cases):
        source = _source(annotations, index)
        name = f"{case}{suffix or _suffix(source)}"
        masks = annotations.item_masks(index)
        labelled = (masks != MISSING_PIXEL).reshape(len(raters), -1).any(axis=1)
        if not annotations.has_images and len(raters) and not labelled.any():
            labelled[0] = True  # an item that only an empty mask tells of
        for rater, mask in zip(np.array(raters)[labelled], masks[labelled]):
            write_mask_file(folder / RATERS / rater / name, mask, source)
        if annotations.has_negatives:
            for rater, mask in zip(raters, annotations.item_negatives(index)):
                if (mask != MISSING_PIXEL).any():
                    write_mask_file(folder / RATERS / f"{rater}{NEGATIVE_FOLDER}" / name, mask, source)
        if annotations.has_images:
            write_image_file(folder / IMAGES / name, annotations.item_image(index), source)
        if annotations.has_truth:
            write_mask_file(folder / TRUTH / name, annotations.item_truth(index), source)
    # Where nobody labelled anything, an empty mask tells that there are raters.
    if cases and raters and not any((folder / RATERS).glob("*/*")):
        name = f"{cases[0]}{suffix or _suffix(_source(annotations, 0))}"
        empty = np.full(annotations.shape(0), MISSING_PIXEL, dtype=np.uint8)
        write_mask_file(folder / RATERS / raters[0] / name, empty, _source(annotations, 0))
    _write_dataset(folder, annotations)
    return folder


def write_mask_file(path: Path, pixels: np.ndarray, like: Path | None) -> Path:
    """Write pixel values (*spatial) with the geometry of ``like``, if that is a file of the same format."""
    with _writing(path), atomic(path) as temporary:
        format_of(path).write_mask(temporary, pixels, _same_format(path, like))
    return path


def write_image_file(path: Path, image: np.ndarray, like: Path | None) -> Path:
    """Write an image (channels, *spatial) with the geometry of ``like``, if that is a file of the same format."""
    with _writing(path), atomic(path) as temporary:
        format_of(path).write_image(temporary, image, _same_format(path, like))
    return path


def _same_format(path: Path, like: Path | None) -> Path | None:
    return like if like is not None and format_of(like) is format_of(path) else None


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _write_dataset(folder: Path, annotations: Annotations) -> None:
    content: dict[str, object] = {"classes": list(annotations.classes), "missing": MISSING_PIXEL}
    if annotations.rater_info:
        content["raters"] = annotations.rater_info
    if annotations.groups is not None:
        content["groups"] = dict(zip(annotations.items, annotations.groups))
    with atomic(folder / DATASET_FILE) as temporary:
        temporary.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _source(annotations: Annotations, index: int) -> Path | None:
    return None if annotations.sources is None else annotations.sources[index]


def _suffix(source: Path | None) -> str:
    suffix = (None if source is None else suffix_of(source)) or IN_MEMORY_SUFFIX
    return suffix if suffix.lower() in EXACT_SUFFIXES else BESIDE_JPEG_SUFFIX
