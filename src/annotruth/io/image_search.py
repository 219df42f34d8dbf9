"""Find the images that annotations speak of: by their path, or the end of it, in the source, beside it, or below."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath

from annotruth.errors import InputError, shorten
from annotruth.io.contents import Item
from annotruth.io.files import case_of, image_header, suffix_of
from annotruth.io.problems import Problem, Report, place, reporting

IMAGES = "images"


def folders_of_images(source: Path, images: Path | None) -> list[Path]:
    """Where to look for images: where they are said to be, or in the source, or beside it."""
    if images is not None and not images.is_dir():
        raise InputError(f"{images}: there is no such folder of images.")
    if images is not None:
        return [images]
    return [source, source / IMAGES] if source.is_dir() else [source.parent, source.parent / IMAGES]


def put_images(
    items: list[Item], paths: Sequence[Sequence[str]], source: Path, look_in: list[Path], report: Report,
    notes: list[str],
) -> list[Item]:  # fmt: skip
    """Put images to items, by the paths that the source gives; where some are found, items without one are left out.

    Parameters
    ----------
    paths : each item's image, as the source names it, and other names
    look_in : folders
    """
    found = [find_image(each, look_in) for each in paths]
    if not all(found):
        below = images_below(source, look_in)
        found = [file or find_below(each, below) for file, each in zip(found, paths)]
    if not any(found):
        notes.append("No image was found, so the cases have none; --images names their folder.")
        return items
    _warn_of_unused([file for file in found if file is not None], report)
    _warn_of_shared([path for path, *_ in paths], found, report)
    kept = []
    for item, (path, *_), file in zip(items, paths, found):
        if file is None:
            message = f"there is no image {path} in {shorten(list(map(str, look_in)))}, as there is for others."
            report(Problem("fatal", source, item.name, None, message, "Add the image, or remove its annotations."))
            continue
        with reporting(report, file, item.name):
            size = image_header(file, 2, place(file, item.name)).shape[1:]
            if item.shape and size != item.shape:
                here, there = ("×".join(map(str, each)) for each in (size, item.shape))
                turned = (
                    ", or take the EXIF orientation out of its file, if that turns it"
                    if size == item.shape[::-1]
                    else ""
                )
                raise InputError(
                    f"the image has {here} pixels, its annotations say {there}. Give the image drawn on{turned}."
                )
            item.image = file
            kept.append(item)
    return kept


def _warn_of_unused(found: list[Path], report: Report) -> None:
    """Warn of images that lie beside those found, and that nothing speaks of."""
    used = set(found)
    for folder in dict.fromkeys(file.parent for file in found):
        files = (file for file in sorted(folder.iterdir()) if suffix_of(file) is not None and file.is_file())
        unused = [file.name for file in files if file not in used]
        if unused:
            message = f"there are no annotations of {len(unused)} of the images: {shorten(unused)}."
            report(Problem("warning", folder, None, None, message, "They are left out.", incomplete=True))


def _warn_of_shared(paths: Sequence[str], found: Sequence[Path | None], report: Report) -> None:
    """Warn of images that the source names differently, and that are found as one file."""
    by_file: dict[Path, list[str]] = defaultdict(list)
    for path, file in zip(paths, found):
        if file is not None:
            by_file[file].append(path)
    for file, names in by_file.items():
        if len(names) > 1:
            message = f"{len(names)} items have this file as their image: {shorten(names)}."
            advice = "If they are one image, name it alike in all files; otherwise add the images of the others."
            report(Problem("warning", file, None, None, message, advice, incomplete=True))


def find_image(paths: Sequence[str], folders: Sequence[Path]) -> Path | None:
    """Find an image in the folders, never outside, in a format we know: by its path, or the end of it.

    Small letters and capitals are the same, and a name without a suffix (CVAT's frames) may have any.
    """
    for path in dict.fromkeys(paths):
        parts = _parts(path)
        for folder in folders:
            for start in range(len(parts)):
                file = folder.joinpath(*parts[start:])
                if suffix_of(file) is not None and file.is_file():
                    return file
                if file.parent.is_dir():
                    found = _images_in(file.parent, file.parent.stat().st_mtime_ns).get(file.name.lower())
                    if found is not None:
                        return found
    return None


def _parts(path: str) -> list[str]:
    return [part for part in PurePosixPath(path.replace("\\", "/")).parts if part not in ("/", "..", ".")]


@lru_cache(maxsize=8)
def _images_in(folder: Path, changed: int) -> dict[str, Path]:
    """Images of a folder by name in small letters, with and, where that is one alone, without the suffix."""
    files = [file for file in sorted(folder.iterdir()) if suffix_of(file) is not None and file.is_file()]
    stems = Counter(case_of(file).lower() for file in files)
    alone = {case_of(file).lower(): file for file in files if stems[case_of(file).lower()] == 1}
    return alone | {file.name.lower(): file for file in files}


def images_below(source: Path, look_in: Sequence[Path]) -> dict[str, list[Path]]:
    """All images anywhere below the folders to look in, by their name in small letters.

    Not what lies beside a source that is a file: that is somebody's folder of downloads.
    """
    found: dict[str, list[Path]] = defaultdict(list)
    for folder in look_in:
        if not folder.is_dir() or (folder == source.parent and source.is_file()):
            continue
        for file in sorted(folder.rglob("*")):
            hidden = any(part.startswith((".", "__MACOSX")) for part in file.relative_to(folder).parts)
            if suffix_of(file) is not None and not hidden and file.is_file():
                found[file.name.lower()].append(file)
    return found


def find_below(paths: Sequence[str], below: Mapping[str, Sequence[Path]]) -> Path | None:
    """Find an image by the longest end of its path that a file below has.

    Several files must be copies of each other: jobs of several people come with the same images. None where they are
    not of one size in bytes, as nobody can tell which is meant.

    Parameters
    ----------
    below : what :func:`images_below` gives
    """
    for path in dict.fromkeys(paths):
        parts = [part.lower() for part in _parts(path)]
        for start in range(len(parts)):
            wanted = parts[start:]
            same = [
                file
                for file in below.get(parts[-1], ())
                if [part.lower() for part in file.parts[-len(wanted) :]] == wanted
            ]
            if same:
                return same[0] if len({file.stat().st_size for file in same}) == 1 else None
    return None
