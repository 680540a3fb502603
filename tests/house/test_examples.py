"""The examples in docstrings of the package run and give what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "src"
WITH_EXAMPLES = [path for path in sorted(ROOT.rglob("*.py")) if ">>> " in path.read_text("utf-8")]


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=name_of)
def test_examples_of_docstrings_run(path):
    result = doctest.testmod(importlib.import_module(name_of(path)), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted
    assert not result.failed
