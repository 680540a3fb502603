"""The arms on real data: clothes read pixel by pixel, and speeches read letter by letter. And the two parts of the
scores in trained encoders.

S    scores          of different tokens, without what softmax or every query does not see       (H, T, T)
x    what_is_read    what the queries and keys of a layer are made of                            (T, d)
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor

from derived.lab.claims import RECORDED, Claim, at_least, statistic
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import Measure, lowest, mean
from derived.lab.rng import stream

from .data import real
from .data.sequences import Data
from .measures import RIVALS, least_gain, settled, tuned_gain, untrained_gain
from .model.theory import symmetric_antisymmetric
from .training import Compared

SHORT = {"rates": (4e-3, 6.3e-3), "tuning": 1, "replicates": 2, "width": 16, "steps": 10, "batch_size": 8}
SHORT |= {"num_train": 80, "num_test": 100}
TINY = {"width": 8, "steps": 10, "batch_size": 2, "num_train": 40, "num_test": 20}
LARGE = {"width": 64, "depth": 2, "steps": 4000}


@dataclass(frozen=True, kw_only=True)
class Real(Compared):
    """One block, and every arm but plain with as many numbers as HKT, as in ``Trees``."""

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

    rates: tuple[float, ...] = (1.6e-3, 2.5e-3, 4e-3, 6.3e-3, 1e-2, 1.6e-2, 2.5e-2)
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

    rates: tuple[float, ...] = (1e-3, 1.6e-3, 2.5e-3, 4e-3, 6.3e-3)
    length: int = 128

    tiers: ClassVar = {"ci": SHORT, "cpu": {"replicates": 24}, "gpu": LARGE | {"length": 1024}}
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


@dataclass(frozen=True, kw_only=True)
class ScoreParts(Experiment):
    """HKT-5: how much of the scores between different tokens is symmetric in trained encoders, whose attention has no
    mask, on sequences of their kind; and in heads that are drawn anew and read the same tokens.

    Rows: model, replicate (a sequence), layer (a pass, where one layer is shared), heads (trained, drawn), symmetric
    (share of the squared norm, mean over heads).
    """

    models: tuple[str, ...] = ("sapiens-heavy", "sapiens-light", "rxnmapper")
    folder: str = ""  # texts of one's own, for encoders of one's own
    sequences: int = 200  # at most, of each model

    needs: ClassVar = ("sapiens", "anarci", "rxnmapper")
    tiers: ClassVar = {"ci": {"sequences": 24}, "cpu": {}}
    tiny: ClassVar = {"sequences": 2}

    def conditions(self) -> list[dict]:
        return [{"model": model} for model in self.models]

    @torch.no_grad()
    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        from derived.lab.real import models

        name = condition["model"]
        encoder, texts = models.load(name), real.sequences(name, self.folder)
        order = torch.randperm(len(texts), generator=stream(seed, "sequences", name))[: self.sequences].tolist()
        heads, found = encoder.model.config.num_attention_heads, []
        for place in order:
            read, *trained = what_is_read(encoder.model, encoder.tokens(texts[place]))
            draw = stream(seed, "drawn heads", name, place)
            drawn = [[x @ torch.randn(x.shape[-1], x.shape[-1], generator=draw) for x in read] for _ in range(2)]
            parts = [[symmetric_share(*each, heads) for each in zip(*both, strict=True)] for both in (trained, drawn)]
            found.append(torch.tensor(parts).mT)
        shares = torch.stack(found)
        index = {"replicate": order, "layer": range(1, shares.shape[1] + 1), "heads": ["trained", "drawn"]}
        return rows(index, {"symmetric": shares})


def what_is_read(model: torch.nn.Module, tokens: Tensor) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """The tokens (T, d) that the attention of each layer reads, its queries and its keys, all heads side by side,
    without the marks of beginning and end."""
    read, queries, keys = [], [], []

    def note(_, given, made, *, side):
        if side == "query":
            read.append(given[0][0, 1:-1])
        (queries if side == "query" else keys).append(made[0, 1:-1])

    found = [(module, name.rpartition(".")[2]) for name, module in model.named_modules()]
    hooks = [
        module.register_forward_hook(functools.partial(note, side=side))
        for module, side in found
        if side in ("query", "key")
    ]
    model(tokens)
    for hook in hooks:
        hook.remove()
    return read, queries, keys


def symmetric_share(queries: Tensor, keys: Tensor, heads: int) -> float:
    """The symmetric share of the squared norm of the scores between different tokens, mean over heads (T, heads d_k).

    Queries and keys are centred: what a query gives all keys alike softmax does not see, and what a key is given by all
    queries alike says nothing of a pair.
    """
    sides = [each.double() - each.double().mean(dim=0) for each in (queries, keys)]
    q, k = (each.unflatten(1, (heads, -1)).transpose(0, 1) for each in sides)
    S = q @ k.mT
    S.diagonal(dim1=1, dim2=2).zero_()
    symmetric, antisymmetric = (part.square().sum(dim=(1, 2)) for part in symmetric_antisymmetric(S))
    return float((symmetric / (symmetric + antisymmetric)).mean())


# Claims: The ledger of real data and weights: pictures of clothes read pixel by pixel, speeches read letter by letter,
# and the parts of the scores of trained encoders.

REAL = {"unit": "share", "judged_at": RECORDED, "made_of": "real data", "scale": {"cpu": "ours"}, "matters": 0.02}
ARMS = "one block, all arms but plain with as many numbers as HKT, each at its own learning rate"
PICTURES = "real pictures of clothes, 14 by 14 grey levels read pixel by pixel"
OF_PICTURES = f"{ARMS}; no picture is given to two networks. Not the paper's CIFAR-10, which could not be had"
LETTERS = "State of the Union speeches, 128 letters in a row, asked for their half-century"
OF_LETTERS = (
    f"{ARMS}; half of the speeches, drawn for each network, are kept to judge it, so that the interval is over networks and"
    " halves of these speeches, not over others. Not the paper's IMDB"
)


def over_plain(id: str, experiment: type[Real], task: str, where: str, paper_value: str) -> Claim:
    """That HKT gains over standard attention."""
    return statistic(
        id,
        f"HKT is more accurate than standard attention on {task}.",
        experiment,
        settled(tuned_gain("plain")),
        "paired difference of test accuracy at the end of training",
        at_least(0),
        where=where,
        paper_value=paper_value,
        control=settled(untrained_gain("plain")),
        **REAL,
    )


def over_rivals(id: str, experiment: type[Real], task: str, where: str) -> Claim:
    """That HKT gains over more weights, over a plain convolution, and over summaries that are not learned."""
    return statistic(
        id,
        "HKT is more accurate than attention of three times the width of its queries and keys, than attention whose"
        f" queries and keys read a plain convolution, and than HKT with frozen averaging, on {task}.",
        experiment,
        settled(least_gain(RIVALS)),
        "paired differences of test accuracy at the end of training, jointly",
        at_least(0),
        where=where,
        control=settled(untrained_gain(*RIVALS)),
        comparison=("attention of three times the width", settled(least_gain(RIVALS[1:], "wide"))),
        **REAL,
    )


def mutual(heads: str) -> Measure:
    """The symmetric share of the scores, sequence by sequence, in the model where it is least."""
    return mean("symmetric", f"heads == '{heads}'", unit=["replicate"], by=["model"], decides=lowest)


ON_REAL = (
    over_plain("HKT-E2.f", Clothes, PICTURES, OF_PICTURES, "1.44 points on CIFAR-10"),
    over_rivals("HKT-E2.g", Clothes, PICTURES, OF_PICTURES),
    over_plain("HKT-E3.f", Speeches, LETTERS, OF_LETTERS, "7.47 points on IMDB"),
    over_rivals("HKT-E3.g", Speeches, LETTERS, OF_LETTERS),
)

ENCODERS = (
    statistic(
        "HKT-5.h",
        "In three trained encoders without a mask, two of antibodies and one of reactions, the symmetric part holds at least"
        " three fifths of the squared norm of the scores between different tokens, in the mean over heads; chance gives one"
        " half.",
        ScoreParts,
        mutual("trained"),
        "symmetric share of the squared norm, mean over heads, layers and sequences, of the model where it is least",
        at_least(0.6),
        unit="share",
        where="scores centred over queries and keys, since softmax drops what all keys share; human genes of antibodies, and"
        " the reactions of the model's own package; a pilot on genes of mice had been seen. That encoders become symmetric"
        " was found before, in weights (Saponati et al. 2025)",
        made_of="real weights",
        scale={"ci": "ours"},
        control=mutual("drawn"),  # heads drawn anew read the same tokens
    ),
)
