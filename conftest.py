"""Examples in documents and docstrings train on small digits for an epoch or two, and are rightly warned of."""

import pytest

EXPECTED = ("IdentifiabilityWarning", "SmallImageWarning")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            for name in EXPECTED:
                item.add_marker(pytest.mark.filterwarnings(f"ignore::annotruth.errors.{name}"))
