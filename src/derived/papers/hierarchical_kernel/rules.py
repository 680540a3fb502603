"""ListOps without a network: what shallow rules achieve."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from .data.forest import OPEN
from .data.listops import ListOps, parse
from .data.shallow import ShallowPredictor, operator_chances

#: Ranges of length by name: (min_length, max_length), both excluded.
RANGES = {"LRA": (500, 2000), "T = 512": (100, 513), "short": (8, 25)}


@dataclass(frozen=True, kw_only=True)
class Rules(Experiment):
    """Accuracy of shallow predictors. Rows: range, rule, trees, right.

    "majority": the likeliest label; "root": the likeliest value of the root's operator; "depth m": m levels of lists
    are evaluated, lists below count as independent draws. How often an operator gives a value is counted on other trees.
    """

    chunks: int = 12
    trees: int = 5_000  # in a chunk; the symbols of one chunk are in memory
    few: int = 1_500  # for the predictors that walk the tree
    depths: tuple[int, ...] = (1, 2, 3)

    tiers: ClassVar = {"ci": {"chunks": 1, "few": 120, "depths": (1, 2)}, "cpu": {}}

    def conditions(self) -> list[dict]:
        return [{"range": name} for name in RANGES]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        name, (low, high) = condition["range"], RANGES[condition["range"]]
        lists = ListOps(min_length=low, max_length=high)
        train = lists.sample(self.trees, stream(seed, "rules", name, "law"))
        counts = np.zeros((4, 10), dtype=int)  # root operator by label
        np.add.at(counts, ((train.tokens[:, 0] - OPEN).numpy(), train.labels.numpy()), 1)
        by_root, anyway = counts.argmax(axis=1), counts.sum(axis=0).argmax(axis=0)
        right = {"majority": 0, "root": 0}
        for chunk in range(self.chunks):
            test = lists.sample(self.trees, stream(seed, "rules", name, "test", chunk))
            labels = test.labels.numpy()
            right["majority"] += int((labels == anyway).sum(axis=0))
            right["root"] += int((labels == by_root[(test.tokens[:, 0] - OPEN).numpy()]).sum(axis=0))
        counted = [{"rule": rule, "trees": self.chunks * self.trees, "right": count} for rule, count in right.items()]
        pooled = operator_chances([parse(codes) for codes in train.tokens[: self.few]])
        for depth in self.depths:
            guess = ShallowPredictor(depth, pooled)(test.tokens[: self.few])
            hits = (guess == labels[: self.few]).sum(axis=0)
            counted.append({"rule": f"depth {depth}", "trees": self.few, "right": int(hits)})
        return pd.DataFrame(counted)
