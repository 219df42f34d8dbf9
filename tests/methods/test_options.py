"""Options that are too small or negative are refused by name."""

from __future__ import annotations

import pytest

from annotruth.errors import InputError
from annotruth.methods.options import check_at_least, check_not_negative


def test_the_option_and_its_value_are_named() -> None:
    with pytest.raises(InputError, match="samples must be at least 2, not 1"):
        check_at_least(2, latent=2, samples=1)
    with pytest.raises(InputError, match=r"bound must not be negative, as -0\.5 is"):
        check_not_negative(beta=0.0, bound=-0.5)
