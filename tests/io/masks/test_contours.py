"""Lines drawn on photographs: open ones are closed, others refused."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.errors import InputError
from annotruth.io.masks.contours import fill_nested_contours

ROWS, COLUMNS = np.mgrid[:90, :90]
PLAIN = np.random.default_rng(0).integers(50, 80, (3, 90, 90))


def draw(*circles: tuple[float, float, float]) -> np.ndarray:
    drawn = PLAIN.copy()
    for row, column, radius in circles:
        drawn[:, np.abs(np.hypot(ROWS - row, COLUMNS - column) - radius) < 1] = 255
    return drawn


def overlap(one: np.ndarray, other: np.ndarray) -> float:
    return 2 * (one & other).sum() / (one.sum() + other.sum())


@pytest.mark.parametrize("inner", [(45, 45, 8), (45, 45, 30), (30, 45, 14)], ids=["small", "large", "off centre"])
def test_a_circle_inside_a_circle(inner: tuple[float, float, float]) -> None:
    disc, cup = fill_nested_contours(draw((45, 45, 36), inner), PLAIN)
    assert overlap(disc, np.hypot(ROWS - 45, COLUMNS - 45) <= 36) > 0.98
    assert overlap(cup, np.hypot(ROWS - inner[0], COLUMNS - inner[1]) <= inner[2]) > 0.93


def test_small_gaps_are_closed() -> None:
    drawn = draw((45, 45, 36), (45, 45, 15))
    drawn[:, 43:46, 75:] = PLAIN[:, 43:46, 75:]
    disc, cup = fill_nested_contours(drawn, PLAIN)
    assert overlap(disc, np.hypot(ROWS - 45, COLUMNS - 45) <= 36) > 0.95
    assert overlap(cup, np.hypot(ROWS - 45, COLUMNS - 45) <= 15) > 0.9


def test_one_line_or_none_or_another_size_is_refused() -> None:
    with pytest.raises(InputError, match="no two closed lines"):
        fill_nested_contours(draw((45, 45, 36)), PLAIN)
    with pytest.raises(InputError, match="no line is drawn"):
        fill_nested_contours(PLAIN, PLAIN)
    with pytest.raises(InputError, match="differ in size, 80×90 and 90×90"):
        fill_nested_contours(PLAIN[:, :80], PLAIN)
