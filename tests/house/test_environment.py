"""The lock, the package's bounds and the environments say the same thing."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LOCK = [
    Requirement(line)
    for lock in ("requirements.lock", "requirements-dev.lock")
    for line in (ROOT / lock).read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]
BOUNDS = [
    *PROJECT["dependencies"],
    *PROJECT["optional-dependencies"]["book"],
    *PROJECT["optional-dependencies"]["dev"],
]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def locked(name: str, python: str, platform: str) -> list[Requirement]:
    """The pins of a package that hold on a Python and a platform."""
    machine = {"python_version": python, "python_full_version": f"{python}.9", "sys_platform": platform}
    return [pin for pin in LOCK if pin.name == name and (pin.marker is None or pin.marker.evaluate(machine))]


@pytest.mark.parametrize("platform", ["linux", "darwin"])
@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("bound", BOUNDS)
def test_the_lock_has_exactly_one_version_within_each_bound(bound, python, platform):
    bound = Requirement(bound)
    pins = locked(bound.name, python, platform)
    assert len(pins) == 1, f"{bound.name} is pinned {len(pins)} times for Python {python}"
    assert bound.specifier.contains(str(pins[0].specifier).removeprefix("=="))


def test_every_pin_is_exact_and_names_no_build():
    for pin in LOCK:
        assert re.fullmatch(r"==[0-9][0-9a-z.]*", str(pin.specifier)), f"{pin} is not one exact public version"


def test_torch_is_locked_for_everyone_without_the_cuda_libraries():
    assert [pin.marker for pin in LOCK if pin.name == "torch"] == [None]
    assert not [pin.name for pin in LOCK if pin.name.startswith(("nvidia-", "cuda-", "triton"))]


def test_jupyter_book_stays_below_two():
    for python in PYTHONS:
        assert str(locked("jupyter-book", python, "linux")[0].specifier).startswith("==1.")


def test_conda_users_get_the_lock_and_nothing_else():
    dependencies = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))["dependencies"]
    pip = next(entry["pip"] for entry in dependencies if isinstance(entry, dict))
    assert pip == ["-r requirements.lock", "-e ."]
    assert [re.split("[=<>]", name)[0] for name in dependencies if isinstance(name, str)] == ["python", "pip"]


def test_who_cites_the_book_cites_its_version():
    init = (ROOT / "src/derived/__init__.py").read_text("utf-8")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["version"]
    assert f'__version__ = "{cited}"' in init
    assert PROJECT["dynamic"] == ["version"]
