"""What a stranger imports from a paper: few names, loaded on first use, each with an example."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SLUGS = sorted(path.parent.name for path in (ROOT / "src/derived/papers").glob("*/__init__.py"))


def face(slug: str):
    return importlib.import_module(f"derived.papers.{slug}")


NAMES = [(slug, name) for slug in SLUGS for name in getattr(face(slug), "__all__", ())]


@pytest.mark.parametrize("slug", SLUGS)
def test_a_paper_offers_2_to_20_names_and_an_example(slug):
    assert 2 <= len(face(slug).__all__) <= 20
    assert ">>> " in face(slug).__doc__


@pytest.mark.parametrize(("slug", "name"), NAMES)
def test_a_public_name_has_words_and_an_example(slug, name):
    words, *examples = (getattr(face(slug), name).__doc__ or "").split(">>> ")
    assert len(words.split()) >= 8, "too few words"
    assert examples


def test_a_face_loads_nothing_until_it_is_asked():
    imports = (f"import derived.papers.{slug}" for slug in SLUGS)
    code = "; ".join(["import sys", *imports, "print('torch' in sys.modules)"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
