"""Kinds of attention trained on equal data, each at its own rate: nested lists, and strings grouped like the levels."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ..data import trees
from ..data.listops import CODES, VOCABULARY, ListOps, parse
from ..data.sequences import Data, Sequences
from ..data.shallow import ShallowPredictor, operator_law
from .training import Compared


@dataclass(frozen=True, kw_only=True)
class TunedListOps(Compared):
    """HKT-E1, E5: training beyond the depth-1 rule.

    Lists of MIN, MAX and MED with two or three arguments, half of whose arguments are lists, 9 to 24 symbols: so short
    and so nested that two small blocks pass the rule that evaluates the outermost list alone. SM is left out, since in
    a pilot no network learned to sum modulo ten. Every network learns from strings that it sees about once.

    Rows of stage "test" have besides: rule (accuracy of the depth-1 rule on the same test data) and known (share of
    test strings that occur in the training set).
    """

    rates: tuple[float, ...] = (1e-3, 1.6e-3, 2.5e-3, 4e-3, 6.3e-3, 1e-2)
    replicates: int = 8
    steps: int = 2000
    checks: int = 10
    num_train: int = 64_000
    num_test: int = 2_000
    min_length: int = 8
    max_length: int = 25
    max_args: int = 3
    branch: float = 0.5

    tiers: ClassVar = {
        "ci": {
            **{"rates": (4e-3, 6.3e-3), "tuning": 1, "replicates": 2, "width": 16, "steps": 20, "batch_size": 8},
            **{"num_train": 160, "num_test": 200},
        },
        "cpu": {"replicates": 12, "steps": 3000, "num_train": 96_000},
    }
    tiny: ClassVar = {"width": 8, "steps": 10, "batch_size": 2, "num_train": 40, "num_test": 70}
    label: ClassVar = "nested lists"

    def task(self, generator: torch.Generator, num: int) -> Data:
        """``num`` labelled expressions without SM, no axis of replicates."""
        sizes = {"min_length": self.min_length, "max_length": self.max_length, "max_args": self.max_args}
        law, found = ListOps(**sizes, branch=self.branch), []
        while sum(len(each.labels) for each in found) < num:
            drawn = law.sample(4 * num, generator)  # about a third has no SM
            kept = (drawn.tokens != CODES["[SM"]).all(dim=-1)
            found.append(compact(Sequences(*(each[kept] for each in drawn))))
        return Data(*(torch.cat(each)[:num] for each in zip(*found, strict=True)))

    def shape(self) -> dict:
        return {"vocabulary": VOCABULARY, "classes": 10, "max_length": self.max_length - 1}

    def rules(self, train: Data, test: Data) -> dict[str, Tensor]:
        return {"rule": self.depth_1(train, test), "known": known(train, test)}

    def depth_1(self, train: Data, test: Data) -> Tensor:
        """Accuracy (R,) of the rule that evaluates the outermost list and knows the operators of those inside."""
        shares = []
        for seen, tokens, labels in zip(train.tokens.cpu(), test.tokens.cpu(), test.labels.cpu(), strict=True):
            parsed = [parse(codes.long()) for codes in seen[:1500]]
            law = operator_law([*parsed, ("SM", (0,))])  # SM never occurs, and every operator needs a list
            shares.append((torch.as_tensor(ShallowPredictor(1, law)(tokens.long().numpy())) == labels).double().mean())
        return torch.stack(shares)


@dataclass(frozen=True, kw_only=True)
class Trees(Compared):
    """HKT-E6, the positive control: strings whose groups of four are the blocks of level 2 (``data.trees``).

    One block, so that nothing but its scores can put a record together. Every arm but plain has as many numbers as HKT,
    and every network learns from strings that it sees once. Rows of stage "test" have besides: last, the accuracy of
    the rule that reads the last letter alone on the same test data.
    """

    rates: tuple[float, ...] = (1e-3, 1.6e-3, 2.5e-3, 4e-3, 6.3e-3, 1e-2, 1.6e-2, 2.5e-2)
    replicates: int = 8
    depth: int = 1
    steps: int = 1000
    checks: int = 10
    num_train: int = 32_000
    num_test: int = 1_000

    tiers: ClassVar = {
        "ci": {
            **{"rates": (4e-3, 6.3e-3), "tuning": 1, "replicates": 2, "width": 16, "steps": 20, "batch_size": 8},
            **{"num_train": 160, "num_test": 100},
        },
        "cpu": {},
    }
    tiny: ClassVar = {"width": 8, "steps": 10, "batch_size": 2, "num_train": 20, "num_test": 70}
    label: ClassVar = "trees"

    def task(self, generator: torch.Generator, num: int) -> Data:
        return trees.sample_trees(num, generator)

    def shape(self) -> dict:
        return {"vocabulary": trees.VOCABULARY, "classes": trees.VALUES, "max_length": trees.LENGTH, "read_out": "last"}

    def rules(self, train: Data, test: Data) -> dict[str, Tensor]:
        return {"last": (trees.by_last_letter(test.tokens) == test.labels).double().mean(dim=-1)}


def compact(sequences: Sequences) -> Data:
    """Tokens, lengths and labels in few bytes, since a data set stays in memory."""
    return Data(
        *(each.to(dtype) for each, dtype in zip(sequences, (torch.uint8, torch.int16, torch.int16), strict=True))
    )


def known(train: Data, test: Data) -> Tensor:
    """The share of a replicate's test strings that occur in its training set, (R,)."""
    sets = zip(train.tokens.cpu().numpy(), test.tokens.cpu().numpy(), strict=True)
    shares = [len(drawn & seen) / len(drawn) for seen, drawn in (({*map(bytes, a)}, {*map(bytes, b)}) for a, b in sets)]
    return torch.tensor(shares, dtype=torch.float64)
