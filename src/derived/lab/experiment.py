"""Experiments: plain data and one function.

tier       "ci" live in every build · "cpu" recorded · "gpu" recorded: the published size
condition  one plain dict; the unit of work, of resuming and of time limits
rows       a tidy table: one line per replicate and measured point, nothing averaged, clipped or dropped
"""

import dataclasses
import json
import traceback
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import torch

from derived.lab.names import DEVICES


@dataclasses.dataclass(frozen=True, kw_only=True)
class Experiment:
    """One table or figure of a paper; a subclass's fields are its sizes, at the largest tier that it is offered at.

    A subclass gives ``conditions`` and ``run`` and says, per tier, which fields change. The seed is no part of it.
    """

    #: The tiers it is offered at, each with the fields that differ from the defaults: live in every build, if not said.
    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}
    #: The fields that a test changes of tier "ci", so that a run takes a moment; never offered, recorded or judged.
    tiny: ClassVar[Mapping[str, Any]] = {}
    #: The real weights and data without which it cannot run, by their names in ``lab.real.pinned``.
    needs: ClassVar[tuple[str, ...]] = ()
    #: Float columns that every machine must reproduce, each with its bound on the relative rounding error. Other float
    #: columns (trained, chaotic, timed) are compared only through the statistic of the claims that rest on them.
    deterministic: ClassVar[Mapping[str, float]] = {}
    #: Float columns that a clock fills, which are never compared.
    clocks: ClassVar[tuple[str, ...]] = ("seconds",)
    dtype: ClassVar[torch.dtype] = torch.float64

    @classmethod
    def at(cls, tier: str) -> Self:
        """The experiment at the size of a tier, or of a test ("tiny")."""
        if tier == "tiny":
            return dataclasses.replace(cls.at("ci"), **cls.tiny)
        if tier not in cls.tiers:
            raise ValueError(f"{cls.__name__} is not offered at tier {tier!r}; it has {', '.join(cls.tiers)}")
        return cls(**cls.tiers[tier])

    @classmethod
    def paper(cls) -> str:
        """The slug of the paper, from the module that defines the class: ``derived.papers.<slug>.…``."""
        return cls.__module__.split(".")[2]

    def configuration(self) -> dict[str, Any]:
        """The fields as JSON has them (tuples, nested ones too, become lists)."""
        return json.loads(json.dumps(dataclasses.asdict(self)))

    def conditions(self) -> list[dict[str, Any]]:
        """The plain dicts to run, in order."""
        return [{}]

    def run(self, condition: Mapping[str, Any], *, seed: int, device: torch.device, dtype: torch.dtype) -> pd.DataFrame:
        """All replicates of one condition in one batch, as tidy rows."""
        raise TypeError(f"{type(self).__name__} does not say how to run a condition: define run()")


def resolve_device(name: str) -> torch.device:
    """``auto`` is CUDA where there is one; a device that this machine lacks is an error, never a silent fallback."""
    if name not in DEVICES:
        raise ValueError(f"device {name!r} is unknown: use auto, cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise ValueError("device 'cuda' was asked for, but torch finds no CUDA device here: use auto or cpu")
    return torch.device("cuda" if torch.cuda.is_available() and name != "cpu" else "cpu")


def run_condition(experiment: Experiment, condition: Mapping[str, Any], seed: int, device: str) -> pd.DataFrame:
    """The rows of one condition; if it raises, one row with the ``failure`` and its ``traceback``."""
    try:
        rows = experiment.run(condition, seed=seed, device=resolve_device(device), dtype=experiment.dtype)
    except Exception as error:
        failure = {"failure": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
        rows = pd.DataFrame([failure])
    keys = {name: value for name, value in condition.items() if name not in rows.columns}
    return pd.concat([pd.DataFrame(keys, index=rows.index), rows], axis="columns")


def run_experiment(experiment: Experiment, *, seed: int, device: str) -> pd.DataFrame:
    """The rows of every condition, one after the other, in the order of ``conditions()``."""
    tables = [run_condition(experiment, condition, seed, device) for condition in experiment.conditions()]
    return pd.concat(tables, ignore_index=True)


def rows(index: Mapping[str | tuple[str, ...], Any], columns: Mapping[str, Any]) -> pd.DataFrame:
    """A tidy table: one row per cell of a grid, the last axis fastest; first the index, then the columns.

    ``index`` names the axes of the grid in order, each with its labels (length,). A tuple of names shares one axis:
    ("i", "j"): (i, j), both of its length. A single number or word is the same in every row and makes no axis.
    ``columns`` are tensors or arrays that broadcast to the shape of the grid, as NumPy does from the last axis back: in
    a grid (replicate, layer) a curve (layers,) is repeated for every replicate, a number per replicate is (R, 1).
    ValueError for a column that does not fit, unequal lengths on one axis, or a name given twice.

    >>> rows({"replicate": range(2), ("layer", "tau"): ([0, 5], [0.0, 0.5])}, {"m": torch.eye(2), "bound": 1e-9})
       replicate  layer  tau    m         bound
    0          0      0  0.0  1.0  1.000000e-09
    1          0      5  0.5  0.0  1.000000e-09
    2          1      0  0.0  0.0  1.000000e-09
    3          1      5  0.5  1.0  1.000000e-09
    """
    shape, cells = (), {}
    for names, values in index.items():
        pairs = zip(names, values, strict=True) if isinstance(names, tuple) else [(names, values)]
        labels = {name: _array(each) for name, each in pairs}
        lengths = {each.shape for each in labels.values()}
        if len(lengths) != 1 or len(length := lengths.pop()) > 1:
            given = ", ".join(f"{name} {each.shape}" for name, each in labels.items())
            raise ValueError(f"labels of shape {given}; give (length,), the same for all names that share an axis")
        cells = {name: each[..., None] if length else each for name, each in cells.items()} | labels
        shape += length
    if twice := set(cells) & set(columns):
        raise ValueError(f"index and columns both have {', '.join(sorted(twice))}; give each name once")
    cells |= {name: _array(values) for name, values in columns.items()}
    return pd.DataFrame({name: _column(name, each, shape) for name, each in cells.items()})


def _array(values: Any) -> np.ndarray:
    return values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)


def _column(name: str, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    try:
        return np.broadcast_to(values, shape).ravel()
    except ValueError:
        raise ValueError(f"column {name} has shape {values.shape}; give one that broadcasts to {shape}") from None
