"""``dataset.json``: what a case folder's files cannot say themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from annotruth.errors import InputError, shorten
from annotruth.io.files import DATASET_FILE
from annotruth.io.names import refuse_unwritable
from annotruth.io.reading import read_json
from annotruth.validation import MAX_MASK_CLASSES, MISSING_PIXEL

PixelValue = Annotated[int, Field(strict=True, ge=-(2**15), le=2**16 - 1)]

_EXPECTED_FORMS = {
    "classes": 'a list of names, ["background", "lesion"], or an object from name to pixel value, '
    '{"background": 0, "lesion": 255}',
    "channels": 'a list of names, ["T1", "T2"]',
    "raters": 'an object from rater to what is known of them, {"ann": {"years": 12}}',
    "groups": 'an object from case to patient, {"case_1": "patient_1"}',
    "missing": "a whole number from -32768 to 65535, or null",
    "imported": "an object, as `annotruth import` writes it",
    "negative": 'an object from class name to the pixel value that means "not this class", {"lesion": 101}',
}


class Dataset(BaseModel):
    """The content of ``dataset.json``; every key may be left out.

    Attributes
    ----------
    classes : names in the order of their pixel values 0, 1, 2 …, or an object from name to pixel value
    channels : names of the images' channels
    raters : what is known of a rater, by name
    groups : the patient (or another unit that a split must keep together) by case; for all cases or none
    missing : the pixel value meaning "not labelled", or null; 255 unless it is a class's value
    negative : the pixel value meaning "not this class" by class name, where one file holds both kinds of drawings
    imported : what `annotruth import` understood, and what it left out and why; nothing else reads it

    Examples
    --------
    >>> Dataset(classes={"background": 0, "lesion": 255}).missing is None
    True
    """

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    classes: list[str] | dict[str, PixelValue] | None = None
    channels: list[str] | None = None
    raters: dict[str, dict[str, Any]] = {}
    groups: dict[str, str] = {}
    missing: PixelValue | None = MISSING_PIXEL
    negative: dict[str, PixelValue] = {}
    imported: dict[str, Any] | None = None

    @field_validator("classes")
    @classmethod
    def _sound_classes(cls, classes: list[str] | dict[str, int] | None) -> list[str] | dict[str, int] | None:
        if classes is not None and not 2 <= len(classes) <= MAX_MASK_CLASSES:
            raise ValueError(f"name 2 to {MAX_MASK_CLASSES} classes, the background too; {len(classes)} found")
        if classes is not None and len(set(classes)) < len(classes):
            raise ValueError("each class needs a name of its own")
        if isinstance(classes, dict) and len(set(classes.values())) < len(classes):
            raise ValueError("each class needs a pixel value of its own")
        return classes

    @model_validator(mode="after")
    def _missing_is_no_class(self) -> Dataset:
        values = self.class_values or ()
        if self.missing in values:
            if "missing" in self.model_fields_set:
                raise ValueError(f"the pixel value {self.missing} cannot mean both a class and 'not labelled'")
            object.__setattr__(self, "missing", None)
        return self

    @model_validator(mode="after")
    def _negative_is_of_its_own(self) -> Dataset:
        if not self.negative:
            return self
        names, values = self.class_names or (), list(self.negative.values())
        strangers = [name for name in self.negative if name not in names]
        if strangers:
            raise ValueError(f"negative speaks of {shorten(strangers)}, which classes does not name")
        taken = {*(self.class_values or ()), self.missing}
        if len(set(values)) < len(values) or taken & set(values):
            raise ValueError("each pixel value under negative must be of its own, and no class's nor 'missing'")
        return self

    @property
    def class_names(self) -> tuple[str, ...] | None:
        return None if self.classes is None else tuple(self.classes)

    @property
    def class_values(self) -> tuple[int, ...] | None:
        """The pixel value of each class."""
        if isinstance(self.classes, dict):
            return tuple(self.classes.values())
        return None if self.classes is None else tuple(range(len(self.classes)))

    @property
    def explains_pixels(self) -> bool:
        """Whether the author has said what pixel values mean, beyond naming the classes."""
        return isinstance(self.classes, dict) or "missing" in self.model_fields_set


def read_dataset(folder: Path) -> Dataset:
    """Read a case folder's ``dataset.json``; one that does not exist says nothing."""
    path = folder / DATASET_FILE
    if not path.exists() and not path.is_symlink():
        return Dataset()
    content = read_json(path)
    try:
        for name in _texts(content):
            refuse_unwritable(name, "name")
        return Dataset.model_validate(content)
    except ValidationError as error:
        raise InputError(f"{path}: {'; '.join(dict.fromkeys(map(_explain, error.errors())))}.") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _texts(value: Any) -> Iterator[str]:
    """Every piece of text in plain values, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _explain(detail: Any) -> str:
    """Say one of pydantic's findings in our words."""
    if detail["type"] == "value_error":
        return ": ".join([*map(str, detail["loc"]), str(detail["ctx"]["error"])])
    if not detail["loc"]:
        return "the file must hold one JSON object, { … }"
    key = str(detail["loc"][0])
    if detail["type"] == "extra_forbidden":
        return f"unknown key {key!r}; the known ones are {', '.join(_EXPECTED_FORMS)}"
    return f"{key} must be {_EXPECTED_FORMS[key]}"
