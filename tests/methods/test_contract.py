"""What every method must do, for each task it serves: see ``annotruth.training.checks``."""

from __future__ import annotations

import pytest

from annotruth.methods import METHODS
from annotruth.training.checks import CHECKS, ITEMS

NEEDS = {"diag": {"diagnosis": {f"item_{number}": str(number % 2) for number in range(ITEMS)}}}
"""Options without which a method cannot be trained."""


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("name", "task"), [pytest.param(*pair, id="-".join(pair)) for pair in sorted(METHODS)])
def test_every_method_passes_the_common_checks(name, task, check):
    check(name, task, **NEEDS.get(name, {}))
