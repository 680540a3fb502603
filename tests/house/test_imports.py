"""What a downloaded notebook imports is what the wheel asks for, and forbidden habits stay out."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "derived"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# Import names that differ from the name of the distribution; IPython comes with ipykernel.
DISTRIBUTION = {
    "bs4": "beautifulsoup4",
    "yaml": "pyyaml",
    "IPython": "ipykernel",
    "markdown_it": "markdown-it-py",
    "myst_nb": "myst-nb",
    "myst_parser": "myst-parser",
    "sphinx_proof": "sphinx-proof",
    "lazy_loader": "lazy-loader",
}


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module)
    return {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {"derived", "bookbuilder"}


def declared(*extras: str) -> set[str]:
    lists = [PROJECT["dependencies"], *(PROJECT["optional-dependencies"][extra] for extra in extras)]
    return {re.split(r"[<>=~!;\[ ]", line)[0].lower() for lines in lists for line in lines}


# Used where it happens to be installed; it needs torchvision and is never a dependency. Its one module asks first.
OPTIONAL = {"timm"}
# Read a package of real weights; where they are not installed that package counts as not here (lab.real.pinned).
READERS = {"gguf"}


@pytest.mark.parametrize("floor", ["lab", "papers"])
def test_the_laboratory_and_the_papers_need_only_what_the_wheel_asks_for(floor):
    for path in (SOURCE / floor).rglob("*.py"):
        names = imported(path)
        missing = {DISTRIBUTION.get(name, name).lower() for name in names} - declared() - OPTIONAL - READERS
        assert not missing, f"{path.relative_to(ROOT)} imports {missing}"
        for name in names & OPTIONAL:
            assert f'find_spec("{name}") is None' in path.read_text("utf-8"), (
                f"{path.name} does not ask for {name} first"
            )


# What comes with jupyter-book and papermill and is named in no extra.
ALONG = {"docutils", "jinja2", "jupyter_client", "markupsafe", "nbclient", "pybtex", "pydata_sphinx_theme", "rich"}
ALONG |= {"sphinx", "traitlets"}


def test_the_builder_needs_only_what_its_extras_name():
    for path in (ROOT / "src/bookbuilder").rglob("*.py"):
        names = {DISTRIBUTION.get(name, name).lower() for name in imported(path) - ALONG}
        assert names <= declared("book", "cluster", "pdf"), path


FORBIDDEN = {
    r"(?<!\w)torch\.manual_seed|np\.random\.seed|set_default_dtype|set_num_threads\(": "global state",
    r"\.squeeze\(\)": "a bare squeeze eats a batch of one",
    r"\bpickle\b|torch\.load\((?!file, weights_only=True)": "nothing here unpickles",
    r"filterwarnings|simplefilter": "a warning filtered away",
    r"shell=True": "a shell",
}


@pytest.mark.parametrize("floor", ["lab", "papers"])
@pytest.mark.parametrize("pattern", FORBIDDEN)
def test_forbidden_habits_stay_out_of_the_library(floor, pattern):
    for path in (SOURCE / floor).rglob("*.py"):
        assert not re.search(pattern, path.read_text("utf-8")), f"{path.relative_to(ROOT)}: {FORBIDDEN[pattern]}"


def test_the_library_prints_nothing():
    """But for what tells a reader or a student something: that is its task."""
    telling = {SOURCE / f"lab/{name}.py" for name in ("page", "exercises")} | {*SOURCE.glob("papers/*/reference.py")}
    for floor in ("lab", "papers"):
        for path in {*(SOURCE / floor).rglob("*.py")} - telling:
            calls = [node.func for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
            assert not [call for call in calls if isinstance(call, ast.Name) and call.id == "print"], path
