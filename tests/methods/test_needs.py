"""Every method, given data that lack something: it does without, or says so before the training and names another."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from annotruth import Annotations
from annotruth.errors import InputError
from annotruth.methods import METHODS, Task, make_method, methods_for

PAIRS = sorted(METHODS)


def data(task: Task, raters: int = 3, labels_each: int | None = None, truth: bool = True) -> Annotations:
    """Twelve pictures or items of two classes, each labelled by all raters or by some."""
    rng = np.random.default_rng(0)
    given = rng.random((12, raters)).argsort(axis=1) < (labels_each or raters)
    if task == "labels":
        classes = np.arange(12) % 2
        answers = np.where(given, classes[:, None], -1)
        images = rng.normal(size=(12, 4)).astype(np.float32)
        return Annotations.from_answers(answers, images=images, classes=2, truth=classes if truth else None)
    masks = np.zeros((12, raters, 8, 8), dtype=np.uint8)
    masks[:, :, 2:6, 2:6] = 1
    masks[~given] = 255
    images = rng.normal(size=(12, 1, 8, 8)).astype(np.float32)
    return Annotations.from_masks(masks, images=images, classes=2, truth=masks.max(axis=1) % 255 if truth else None)


LACKING: dict[str, tuple[Callable[[Task], Annotations], set[str]]] = {
    "several raters": (lambda task: data(task, raters=1), {"d-persona", "mrnet", "mrprism", "pionono"}),
    "several labels of an item": (lambda task: data(task, labels_each=1), set()),
    "the truth": (lambda task: data(task, truth=False), {"clean", "oracle-cm"}),
}
NEEDS_MORE = {"diag"}
"""Needs a diagnosis, which no data have by themselves."""


@pytest.mark.parametrize("lacking", LACKING)
@pytest.mark.parametrize(("name", "task"), PAIRS)
def test_what_data_lack_is_said_and_another_method_named(name: str, task: Task, lacking: str) -> None:
    make, refused_by = LACKING[lacking]
    method, annotations = make_method(name, task), make(task)
    if name not in refused_by | NEEDS_MORE:
        method.check(annotations)
        return
    with pytest.raises(InputError) as refused:
        method.check(annotations)
    assert set(re.findall(r"[a-z][a-z0-9-]+", str(refused.value))) & (set(methods_for(task)) - {name})


@pytest.mark.parametrize("name", ["beal", "posal"])
def test_a_second_domain_that_is_not_there_is_missed(name: str) -> None:
    with pytest.raises(InputError, match="or majority"):
        make_method(name, "masks", {"domains": "two"}).check(data("masks"))
