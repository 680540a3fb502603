"""The arms on real data: clothes read pixel by pixel, and speeches read letter by letter."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from derived.lab.rng import stream

from ..data import real
from ..data.sequences import Data
from .training import Compared

SHORT = {"rates": (4e-3, 6.3e-3), "tuning": 1, "replicates": 2, "width": 16, "steps": 10, "batch_size": 8}
SHORT |= {"num_train": 80, "num_test": 100}
TINY = {"width": 8, "steps": 10, "batch_size": 2, "num_train": 40, "num_test": 20}
LARGE = {"width": 64, "depth": 2, "steps": 4000}


@dataclass(frozen=True, kw_only=True)
class Real(Compared):
    """One block, and every arm but plain with as many numbers as HKT, as in ``Trees``."""

    rates: tuple[float, ...] = (2.5e-3, 4e-3, 6.3e-3, 1e-2)
    replicates: int = 8
    depth: int = 1
    steps: int = 800
    checks: int = 10
    num_train: int = 6_000
    num_test: int = 1_000

    def features(self) -> dict[str, Callable[[Tensor], Tensor]]:
        """What a linear rule is given, by its name: (num, T) to (num, features)."""
        raise NotImplementedError

    def rules(self, train: Data, test: Data) -> dict[str, Tensor]:
        sets, found = [*zip(train.tokens.cpu(), train.labels.cpu(), test.tokens.cpu(), strict=True)], {}
        for name, of in self.features().items():
            guesses = torch.stack([real.by_linear_rule(of(x), y, of(z)) for x, y, z in sets])
            found[name] = (guesses == test.labels.cpu()).double().mean(dim=-1)
        return found


def whole(tokens: Tensor, labels: Tensor) -> Data:
    """Rows (R, items, T) of full length, in few bytes."""
    lengths = torch.full(labels.shape, tokens.shape[-1], dtype=torch.int16)
    return Data(tokens, lengths, labels.to(torch.int16))


@dataclass(frozen=True, kw_only=True)
class Clothes(Real):
    """HKT-E2: the kind of clothes in a picture of Fashion-MNIST, ``size`` x ``size`` grey levels in raster order.

    No picture is given to two networks, neither for training nor for judging. Rows of stage "test" have besides the
    accuracies of two rules on the same pictures: pixels, linear in the grey of each place; greys, linear in how often
    each grey level occurs.
    """

    size: int = 14

    tiers: ClassVar = {"ci": SHORT, "cpu": {}, "gpu": LARGE | {"size": 28}}
    tiny: ClassVar = TINY | {"size": 7}
    needs: ClassVar = ("fashion-mnist",)
    label: ClassVar = "clothes"

    def sets(self, stage: str, networks: int, seed: int, device) -> list[Data]:
        first, all_networks = (0 if stage == "validation" else self.tuning), self.tuning + self.replicates
        found = []
        for part, num in (("train", self.num_train), ("t10k", self.num_test)):
            pictures, labels = real.clothes(part)
            order = torch.randperm(len(labels), generator=stream(seed, self.label, part))
            mine = order[: all_networks * num].view(all_networks, num)[first : first + networks]
            tokens = real.as_tokens(pictures[mine.flatten()], self.size).view(networks, num, -1)
            found.append(whole(tokens, labels[mine]).to(device))
        return found

    def shape(self) -> dict:
        return {"vocabulary": real.GREYS, "classes": 10, "max_length": self.size**2}

    def features(self) -> dict[str, Callable[[Tensor], Tensor]]:
        return {"pixels": Tensor.float, "greys": lambda tokens: real.counts(tokens, real.GREYS)}


@dataclass(frozen=True, kw_only=True)
class Speeches(Real):
    """HKT-E3: the half-century of a State of the Union speech, from ``length`` letters in a row.

    Each network learns from one half of the speeches, drawn for it alone, and is judged on the other half. Rows of
    stage "test" have besides the accuracies of two rules on the same windows: letters, linear in how often each letter
    occurs; fives, linear in how often each run of five letters occurs (in 2,048 bins).
    """

    length: int = 128

    tiers: ClassVar = {"ci": SHORT, "cpu": {"replicates": 12}, "gpu": LARGE | {"length": 1024}}
    tiny: ClassVar = TINY | {"length": 32}
    needs: ClassVar = ("stdlib",)
    label: ClassVar = "speeches"

    def sets(self, stage: str, networks: int, seed: int, device) -> list[Data]:
        texts, found = real.by_era(), {"train": [], "judge": []}
        for r in range(networks):
            halves: dict[str, list[list[Tensor]]] = {"train": [], "judge": []}
            split = stream(seed, self.label, stage, "split", r)
            for era in texts:
                order = torch.randperm(len(era), generator=split).tolist()
                halves["train"].append([era[i] for i in order[: len(era) // 2]])
                halves["judge"].append([era[i] for i in order[len(era) // 2 :]])
            for name, num in (("train", self.num_train), ("judge", self.num_test)):
                draws = stream(seed, self.label, stage, name, r)
                found[name].append(real.windows(halves[name], num, self.length, draws))
        return [whole(*map(torch.stack, zip(*each, strict=True))).to(device) for each in found.values()]

    def shape(self) -> dict:
        return {"vocabulary": real.LETTERS, "classes": real.ERAS, "max_length": self.length}

    def features(self) -> dict[str, Callable[[Tensor], Tensor]]:
        return {
            "letters": lambda tokens: real.counts(tokens, real.LETTERS),
            "fives": lambda tokens: real.counts(tokens, real.LETTERS, run=5),
        }
