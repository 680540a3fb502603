"""What is sent is all that a record needs, and nothing of this machine."""

import io
import tarfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from derived.book.away import parcel
from derived.book.house import House
from derived.book.judge import recording
from derived.lab.sources import source_hash

ROOT = Path(__file__).resolve().parents[3]
ORDER = {"experiments": ["A"], "tier": "gpu", "seed": 0, "device": "cuda", "jobs": 0}


@pytest.mark.parametrize("paper", House(ROOT).chapters())
def test_a_parcel_has_the_code_of_every_experiment_and_what_it_imports(paper, tmp_path):
    packed = parcel.pack(House(ROOT), ORDER | {"paper": paper})
    with tarfile.open(fileobj=io.BytesIO(packed.content)) as archive:
        archive.extractall(tmp_path, filter="data")
    for module in {experiment.__module__ for experiment in recording.claims_of(paper).EXPERIMENTS}:
        assert source_hash(module, tmp_path / "src/derived") == source_hash(module)
    names = {path.name for path in (tmp_path / "src/derived/papers").iterdir()}
    assert names == {"__init__.py", paper} or names == {paper}
    assert len(packed.content) < 200_000
    needed = {Requirement(line).name: line for line in packed.requirements}
    assert {"torch", "numpy", "pandas", "pyarrow", "scipy", "matplotlib", "pyyaml", "psutil"} <= needed.keys()
    assert "derived" not in needed
    assert needed["torch"].startswith("torch>=")
    assert all("==" in line for name, line in needed.items() if name != "torch")


def test_one_order_is_one_parcel_and_another_order_another():
    house, order = House(ROOT), ORDER | {"paper": "cactus"}
    assert parcel.pack(house, order).content == parcel.pack(house, dict(reversed(order.items()))).content
    assert parcel.pack(house, order).name != parcel.pack(house, order | {"seed": 1}).name
