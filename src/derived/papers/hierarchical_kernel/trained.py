"""Kinds of attention trained side by side, each at its own rate: nested lists, strings grouped like the levels, speeches."""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor

from derived.lab.claims import RECORDED, at_least, statistic
from derived.lab.rng import stream

from .data import groups, speeches
from .data.listops import CODES, VOCABULARY, ListOps, parse
from .data.sequences import Data
from .data.shallow import ShallowPredictor, operator_chances
from .measures import RIVALS, at_best_rates, gain, reached, settled, steps_saved
from .training import Compared

SMALL = {"rates": (4e-3, 6.3e-3), "tuning": 1, "replicates": 2, "width": 16, "steps": 20, "batch_size": 8}
SHORT = SMALL | {"steps": 10, "num_train": 80, "num_test": 100}
TINY = {"width": 8, "steps": 10, "batch_size": 2, "num_train": 40, "num_test": 20}
LARGE = {"width": 64, "depth": 2, "steps": 4000}


@dataclass(frozen=True, kw_only=True)
class TunedListOps(Compared):
    """Training beyond the depth-1 rule.

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
        "ci": SMALL | {"num_train": 160, "num_test": 200},
        "cpu": {"replicates": 12, "steps": 3000, "num_train": 96_000},
    }
    tiny: ClassVar = {"width": 8, "steps": 10, "batch_size": 2, "num_train": 40, "num_test": 70}
    label: ClassVar = "nested lists"

    def task(self, generator: torch.Generator, num: int) -> Data:
        """``num`` labelled expressions without SM, no axis of replicates."""
        sizes = {"min_length": self.min_length, "max_length": self.max_length, "max_args": self.max_args}
        lists, found = ListOps(**sizes, branch=self.branch), []
        while sum(len(each.labels) for each in found) < num:
            drawn = lists.sample(4 * num, generator)  # about a third has no SM
            kept = (drawn.tokens != CODES["[SM"]).all(dim=-1)
            found.append(compact(Data(*(each[kept] for each in drawn))))
        return Data(*(torch.cat(each)[:num] for each in zip(*found, strict=True)))

    def shape(self) -> dict:
        return {"vocabulary": VOCABULARY, "classes": 10, "max_length": self.max_length - 1}

    def rules(self, train: Data, test: Data) -> dict[str, Tensor]:
        return {"rule": self.by_depth(1, train, test), "known": known(train, test)}

    def by_depth(self, depth: int, train: Data, test: Data) -> Tensor:
        """Accuracy (R,) of the rule that evaluates the outermost ``depth`` lists and knows the operators of those inside."""
        shares = []
        for seen, tokens, labels in zip(train.tokens.cpu(), test.tokens.cpu(), test.labels.cpu(), strict=True):
            parsed = [parse(codes.long()) for codes in seen[:1500]]
            chances = operator_chances([*parsed, ("SM", (0,))])  # SM never occurs, and every operator needs a list
            guesses = torch.as_tensor(ShallowPredictor(depth, chances)(tokens.long().numpy()))
            shares.append((guesses == labels).double().mean())
        return torch.stack(shares)


@dataclass(frozen=True, kw_only=True)
class EqualWork(TunedListOps):
    """The same lists, where plain attention trains ``longer`` times the steps, and so spends the operations of HKT.

    Networks, lists and initial weights are others than those of ``TunedListOps``, whose two best rates of plain
    attention and of HKT these are. Rows of stage "test" have besides: deep, the accuracy of the depth-2 rule.
    """

    kinds: tuple[str, ...] = ("plain", "hkt")
    rates: tuple[float, ...] = (2.5e-3, 4e-3)
    longer: float = 1.34

    tiers: ClassVar = TunedListOps.tiers | {"ci": TunedListOps.tiers["ci"] | {"rates": (4e-3,), "steps": 30}}
    label: ClassVar = "equal work"
    weights: ClassVar = 7

    def steps_of(self, kind: str) -> int:
        return round(self.longer * self.steps) if kind == "plain" else self.steps

    def rules(self, train: Data, test: Data) -> dict[str, Tensor]:
        return super().rules(train, test) | {"deep": self.by_depth(2, train, test)}


@dataclass(frozen=True, kw_only=True)
class LongLists(TunedListOps):
    """Lists of 101 to 512 symbols by the published rules, SM among them, each kind trained for as many operations.

    A condition is a kind at one rate, with its own validation networks, so that a run that stops loses minutes alone;
    every rate has rows of stage "test", and validation data choose among them afterwards. ``longer`` are the steps of
    each kind in those of HKT: with these all spend the same on matrix products. HKT counts as its score tables, 1.31
    times those of plain attention, and not as one fused attention, which spends more.
    """

    kinds: tuple[str, ...] = ("plain", "conv-qk", "hkt")
    rates: tuple[float, ...] = (2.5e-4, 5e-4, 1e-3, 2e-3)
    longer: tuple[float, ...] = (81 / 64, 27 / 32, 1.0)
    steps: int = 4000

    tiers: ClassVar = {
        "ci": TunedListOps.tiers["ci"] | {"rates": (4e-3,), "checks": 5},
        "gpu": {"width": 128, "num_test": 1000, "min_length": 100, "max_length": 513, "max_args": 10, "branch": 0.25},
    }
    label: ClassVar = "long lists"

    def conditions(self) -> list[dict]:
        return [{"kind": kind, "rate": rate} for kind in self.kinds for rate in self.rates]

    def steps_of(self, kind: str) -> int:
        return round(self.longer[self.kinds.index(kind)] * self.steps)

    def task(self, generator: torch.Generator, num: int) -> Data:
        sizes = {"min_length": self.min_length, "max_length": self.max_length, "max_args": self.max_args}
        return compact(ListOps(**sizes, branch=self.branch).sample(num, generator))

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        alone = super(LongLists, replace(self, rates=(condition["rate"],)))
        return alone.run(condition, seed=seed, device=device, dtype=dtype).assign(rate=condition["rate"])


@dataclass(frozen=True, kw_only=True)
class Trees(Compared):
    """The positive control: strings whose groups of four are the blocks of level 2 (``data.groups``).

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

    tiers: ClassVar = {"ci": SMALL | {"num_train": 160, "num_test": 100}, "cpu": {}}
    tiny: ClassVar = {"width": 8, "steps": 10, "batch_size": 2, "num_train": 20, "num_test": 70}
    label: ClassVar = "trees"

    def task(self, generator: torch.Generator, num: int) -> Data:
        return groups.sample_groups(num, generator)

    def shape(self) -> dict:
        sizes = {"vocabulary": groups.VOCABULARY, "classes": groups.VALUES, "max_length": groups.LENGTH}
        return sizes | {"read_out": "last"}

    def rules(self, train: Data, test: Data) -> dict[str, Tensor]:
        return {"last": (groups.by_last_letter(test.tokens) == test.labels).double().mean(dim=-1)}


@dataclass(frozen=True, kw_only=True)
class Sooner(Trees):
    """The same strings: how many steps until a network is right in nine of ten, judged every 25 steps.

    Each kind at the rate at which other networks get there first on validation data, where rows have besides:
    reached, that step. Networks, strings and initial weights are others than those of ``Trees``.
    """

    kinds: tuple[str, ...] = ("conv-qk", "hkt", "hkt-every", "hkt-fixed")
    rates: tuple[float, ...] = (1.6e-3, 2.5e-3, 4e-3, 6.3e-3, 1e-2)
    replicates: int = 12
    steps: int = 500
    checks: int = 20
    num_train: int = 16_000
    num_test: int = 500

    tiers: ClassVar = {"ci": Trees.tiers["ci"] | {"rates": (4e-3,), "checks": 5}, "cpu": {}}
    label: ClassVar = "sooner"
    weights: ClassVar = 7

    def _validate(self, model, kind: str, sets: list[Data], rate: float, generator) -> dict[str, Tensor]:
        found = self._course(model, kind, sets, rate, generator)
        accuracy = torch.stack([right for _, right in found.values()], dim=-1)
        courses = (pd.DataFrame({"step": list(found), "accuracy": each}) for each in accuracy.tolist())
        loss, right = [*found.values()][-1]
        return {"accuracy": right, "loss": loss, "reached": torch.tensor([float(reached(each)) for each in courses])}

    def _best(self, tried: pd.DataFrame) -> float:
        return tried.groupby("rate")["reached"].mean().idxmin()


def whole(tokens: Tensor, labels: Tensor) -> Data:
    """Rows (R, items, T) of full length, in few bytes."""
    lengths = torch.full(labels.shape, tokens.shape[-1], dtype=torch.int16)
    return Data(tokens, lengths, labels.to(torch.int16))


@dataclass(frozen=True, kw_only=True)
class Speeches(Compared):
    """The half-century of a State of the Union speech, from ``length`` letters in a row.

    Each network learns from one half of the speeches, drawn for it alone, and is judged on the other half. Rows of
    stage "test" have besides the accuracies of two rules on the same windows: letters, linear in how often each letter
    occurs; fives, linear in how often each run of five letters occurs (in 2,048 bins).
    """

    rates: tuple[float, ...] = (1e-3, 1.6e-3, 2.5e-3, 4e-3, 6.3e-3)
    replicates: int = 8
    depth: int = 1
    steps: int = 800
    checks: int = 10
    num_train: int = 6_000
    num_test: int = 1_000
    length: int = 128

    tiers: ClassVar = {"ci": SHORT, "cpu": {"replicates": 24}, "gpu": LARGE | {"length": 1024}}
    tiny: ClassVar = TINY | {"length": 32}
    needs: ClassVar = ("stdlib",)
    label: ClassVar = "speeches"

    def sets(self, stage: str, networks: int, seed: int, device) -> list[Data]:
        texts, found = speeches.by_era(), {"train": [], "judge": []}
        for r in range(networks):
            halves: dict[str, list[list[Tensor]]] = {"train": [], "judge": []}
            split = stream(seed, self.label, stage, "split", r)
            for era in texts:
                order = torch.randperm(len(era), generator=split).tolist()
                halves["train"].append([era[i] for i in order[: len(era) // 2]])
                halves["judge"].append([era[i] for i in order[len(era) // 2 :]])
            for name, num in (("train", self.num_train), ("judge", self.num_test)):
                draws = stream(seed, self.label, stage, name, r)
                found[name].append(speeches.windows(halves[name], num, self.length, draws))
        return [whole(*map(torch.stack, zip(*each, strict=True))).to(device) for each in found.values()]

    def shape(self) -> dict:
        return {"vocabulary": speeches.LETTERS, "classes": speeches.ERAS, "max_length": self.length}

    def rules(self, train: Data, test: Data) -> dict[str, Tensor]:
        counts = {"letters": partial(speeches.counts, symbols=speeches.LETTERS)}
        counts["fives"] = partial(speeches.counts, symbols=speeches.LETTERS, run=5)
        sets, found = [*zip(train.tokens.cpu(), train.labels.cpu(), test.tokens.cpu(), strict=True)], {}
        for name, of in counts.items():
            guesses = torch.stack([speeches.by_linear_rule(of(x), y, of(z)) for x, y, z in sets])
            found[name] = (guesses == test.labels.cpu()).double().mean(dim=-1)
        return found


def compact(sequences: Data) -> Data:
    """Tokens, lengths and labels in few bytes, since a data set stays in memory."""
    small = (torch.uint8, torch.int16, torch.int16)
    return Data(*(each.to(dtype) for each, dtype in zip(sequences, small, strict=True)))


def known(train: Data, test: Data) -> Tensor:
    """The share of a replicate's test strings that occur in its training set, (R,)."""
    sets = zip(train.tokens.cpu().numpy(), test.tokens.cpu().numpy(), strict=True)
    shares = [len(drawn & seen) / len(drawn) for seen, drawn in (({*map(bytes, a)}, {*map(bytes, b)}) for a, b in sets)]
    return torch.tensor(shares, dtype=torch.float64)


# Claims: HKT beside its rivals, each kind of attention at its own learning rate.

NESTED = "nested lists of MIN, MAX and MED of 9 to 24 symbols"
GROUPS = "strings whose groups of four are the blocks of level 2"
RATES = "each kind of attention at its own learning rate, the network as the unit"
JUDGED = {"unit": "share", "judged_at": ("cpu",)}
SPOKEN = {"unit": "share", "judged_at": RECORDED, "made_of": "real data", "scale": {"cpu": "ours"}, "matters": 0.02}

CLAIMS = (
    statistic(
        "HKT-E1.t",
        f"HKT is at least as accurate as standard attention that trains $1.34$ times as long, on {NESTED}.",
        EqualWork,
        settled(gain("plain")),
        "paired difference of test accuracy at the end of training",
        at_least(0),
        where=f"equal operations; {RATES}",
        matters=0.02,
        control=settled(gain("plain", trained=False)),
        **JUDGED,
    ),
    statistic(
        "HKT-E1.u",
        "HKT is more accurate than standard attention, and than attention whose queries and keys read a plain convolution,"
        " after as many operations of training, on nested lists of 101 to 512 symbols.",
        LongLists,
        at_best_rates(gain("plain", "conv-qk")),
        "paired differences of test accuracy at the end of training, jointly",
        at_least(0),
        where=f"{RATES}. The paper's length; lists by the published rules, since the paper's are not known",
        unit="share",
        judged_at=("gpu",),
        matters=0.02,
        scale={"gpu": "ours"},
        control=at_best_rates(gain("plain", "conv-qk", trained=False)),
    ),
    statistic(
        "HKT-E3.g",
        "HKT is more accurate than attention of three times the width of its queries and keys, than attention whose"
        " queries and keys read a plain convolution, and than HKT with frozen averaging, on State of the Union speeches,"
        " 128 letters in a row, asked for their half-century.",
        Speeches,
        settled(gain(*RIVALS)),
        "paired differences of test accuracy at the end of training, jointly",
        at_least(0),
        where=f"one block, equal steps, as many numbers in each; {RATES}. Half of the speeches, drawn for each network, are"
        " kept to judge it, so that the interval is over networks and halves of these speeches, not over others. Not the"
        " paper's IMDB",
        control=settled(gain(*RIVALS, trained=False)),
        **SPOKEN,
    ),
    statistic(
        "HKT-E6.a",
        f"On {GROUPS}, HKT is more accurate by at least $0.1$ than standard attention, than attention of three times its"
        " width, and than HKT with frozen averaging.",
        Trees,
        settled(gain("plain", "wide", "hkt-average")),
        "paired differences of test accuracy at the end of training, jointly",
        at_least(0.1),
        where=f"one block; {RATES}",
        control=settled(gain("plain", "wide", "hkt-average", trained=False)),
        **JUDGED,
    ),
    *(
        statistic(
            id,
            f"On {GROUPS}, HKT is right in nine of ten after fewer steps than {rival}.",
            Sooner,
            steps_saved(kind, "hkt"),
            "paired difference of the steps until nine of ten are right",
            at_least(0),
            unit="steps",
            where="one block, as many numbers in each; each kind at the rate at which it gets there first, the network as the"
            " unit; judged every 25 steps",
            judged_at=("cpu",),
            matters=25,
            control=steps_saved(kind),
        )
        for id, kind, rival in (
            ("HKT-E6.d", "conv-qk", "plain attention whose queries and keys pass through a convolution of length four"),
            ("HKT-E6.e", "hkt-every", "the same layer with a summary at each token, without stride"),
        )
    ),
)
