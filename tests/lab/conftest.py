"""A toy experiment whose rows are known, and a results folder of its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

from derived.lab import record
from derived.lab.experiment import Experiment, run_experiment
from derived.lab.record import Record


@dataclass(frozen=True, kw_only=True)
class Toy(Experiment):
    """Means of uniform numbers; the condition ``broken`` raises."""

    draws: int = 1000
    shifts: tuple[float, ...] = (0.0, 1.0)

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {"draws": 10}, "cpu": {"draws": 100}, "gpu": {}}
    deterministic: ClassVar[Mapping[str, float]] = {"square": 1e-12}

    def conditions(self):
        return [{"shift": shift} for shift in self.shifts]

    def run(self, condition, *, seed, device, dtype):
        if condition["shift"] < 0:
            raise ArithmeticError("negative shift")
        draws = np.random.default_rng(seed).uniform(size=self.draws) + condition["shift"]
        return pd.DataFrame({"value": draws, "square": condition["shift"] ** 2, "count": self.draws, "name": "toy"})


Toy.__module__ = "derived.papers.toy.draws"


@pytest.fixture
def toy(tmp_path, monkeypatch) -> type[Toy]:
    monkeypatch.setattr(record, "results_root", lambda: tmp_path / "results")
    return Toy


@pytest.fixture
def recorded() -> Callable[..., Record]:
    """A record of the toy experiment as the present code makes it, but for the given changes."""
    return _recorded


def _recorded(toy, tier: str = "cpu", **changes) -> Record:
    sized = toy.at(tier)
    facts = {
        "paper": "toy",
        "experiment": "Toy",
        "tier": tier,
        "seed": 0,
        "configuration": sized.configuration(),
        "versions": record.versions(),
        "device": "cpu",
        "device_name": "one core",
        "seconds": 1.5,
        "peak_memory_mb": 10.0,
        "date": "2026-01-01T00:00:00+00:00",
        "rows": run_experiment(sized, seed=0, device="cpu"),
        "ci_rows": run_experiment(toy.at("ci"), seed=0, device="cpu"),
    }
    return Record(**facts | changes)
