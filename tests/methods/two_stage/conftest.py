"""How tests read what fused labels teach."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from annotruth.data.answers import Answers


@pytest.fixture
def table() -> Callable[[Answers, int], list[int]]:
    """Reads answers as labels by item, -1 = none."""

    def read(answers: Answers, items: int) -> list[int]:
        labels = np.full(items, -1)
        labels[answers.item] = answers.label
        return labels.tolist()

    return read
