"""Docstrings become Markdown for the API reference."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

PATH = Path(__file__).parents[2] / "docs" / ".site" / "docstrings.py"


@pytest.fixture(scope="module")
def site() -> Any:
    pytest.importorskip("griffe")
    spec = spec_from_file_location("site_docstrings", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_parameters_become_a_list(site: Any) -> None:
    text = "Do it.\n\nParameters\n----------\npath : where;  name : of what\n"
    assert site.to_markdown(text) == "Do it.\n\n**Parameters**\n\n- **path**: where\n- **name**: of what"


def test_a_table_between_rules_becomes_a_table(site: Any) -> None:
    text = "Kinds.\n\n=====  ====\n``a/``  one of it\nb      more\n=====  ====\n\nThe end."
    assert site.to_markdown(text) == "Kinds.\n\n| | |\n| --- | --- |\n| ``a/`` | one of it |\n| b | more |\n\nThe end."


def test_examples_are_fenced_in_one_piece(site: Any) -> None:
    text = "Say.\n\nExamples\n--------\n>>> 1\n1\n\n>>> 2\n2\n"
    assert site.to_markdown(text) == "Say.\n\n**Examples**\n\n```pycon\n>>> 1\n1\n\n>>> 2\n2\n```"
