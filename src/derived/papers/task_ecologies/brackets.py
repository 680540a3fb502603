"""Two ecologies: code with brackets and the same code without, mixed in a share alpha; who tells balanced from
unbalanced code, the network or a table of letters?"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from derived.lab import stats
from derived.lab.claims import RECORDED, at_least, statistic
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import Measure, chosen, lowest
from derived.lab.plot import BLUE, MUTED, beside, largest, mean_and_reach, panel_label
from derived.lab.rng import stream
from derived.lab.stats import LEVEL, Estimate

from .data import brackets as data
from .data.ngrams import fit_ngram
from .fits import build, falling, fit_texts
from .model.gpt import GPTSize, MicroGPT, text_losses
from .model.selection import wright_fisher

TABLES = {"unigram": 1, "bigram": 2, "trigram": 3}
TIE = 1e-9  # nats per token; a table that cannot tell two chunks apart has the same letters in another order
Twin = Callable[[str, torch.Generator], str | None]
TWINS: Mapping[str, Twin] = {"shuffled": data.shuffled_twin, "matched": data.matched_twin}


@dataclass(frozen=True, kw_only=True)
class Brackets(Experiment):
    """What both experiments share: code with brackets, the same without, and unbalanced twins to judge by."""

    replicates: int = 10
    corpus: int = 4_000_000  # characters
    judged: int = 300  # chunks of each kind

    dtype: ClassVar = torch.float32

    def chunks(self, draw: torch.Generator) -> tuple[list[str], list[str]]:
        """Balanced chunks to train on and to judge by, from two halves of a text with one lexicon."""
        text = data.expression_text(self.corpus, draw)
        cut = len(text) // 2
        return data.balanced_chunks(text[:cut]), data.balanced_chunks(text[cut:])

    def judged_pairs(
        self, held_out: list[str], draw: torch.Generator, twins: Mapping[str, Twin] = TWINS
    ) -> dict[str, tuple[Tensor, Tensor]]:
        """Balanced chunks and their twins of each kind, as tokens."""
        found = {}
        for name, twin in twins.items():
            pairs = [(chunk, twin(chunk, draw)) for chunk in held_out]
            pairs = [(chunk, other) for chunk, other in pairs if other is not None][: self.judged]
            if len(pairs) < self.judged:
                given = f"{len(pairs)} chunks have a {name} twin"
                raise ValueError(f"{given}, {self.judged} are to be judged; enlarge the corpus")
            found[name] = tuple(data.expression_ids(list(part)) for part in zip(*pairs, strict=True))
        return found


def both_ways(chunks: list[str]) -> tuple[Tensor, Tensor]:
    """Chunks as tokens, with their brackets and with spaces in their places."""
    return data.expression_ids(chunks), data.expression_ids([data.blanked(chunk) for chunk in chunks])


def mixture(code: tuple[Tensor, Tensor], alpha: float, steps: int, draw: torch.Generator) -> Tensor:
    """A chunk for every step, bracketed with probability alpha, else blanked, (steps, T); code as of ``both_ways``."""
    bracketed, bare = code
    picked = torch.randint(len(bracketed), (steps,), generator=draw)
    kept = torch.rand(steps, 1, generator=draw, dtype=torch.float64) < alpha
    return torch.where(kept, bracketed[picked], bare[picked])


@torch.no_grad()
def own_losses(model: MicroGPT, texts: Tensor, device) -> Tensor:
    """Nats per token of each model on its own texts (K, B, T): (K, B), float64 on the CPU."""
    texts = texts.to(device)
    return text_losses(model(texts[..., :-1]), texts[..., 1:]).mean(dim=2).double().cpu()


def told_apart(balanced: Tensor, unbalanced: Tensor) -> dict[str, Tensor]:
    """Of pairs of chunks (..., B), nats per token: by how much the unbalanced one is harder on average (gap), and the
    share of the pairs in which it is harder (right); a tie is half."""
    more = unbalanced - balanced
    signs = torch.where(more.abs() > TIE, more.sign(), 0.0)
    return {"gap": more.mean(dim=-1), "right": (1 + signs.mean(dim=-1)) / 2}


@dataclass(frozen=True, kw_only=True)
class Rescue(Brackets):
    """TE-E4, after exp 7: training text is bracketed code with probability alpha and else the same code with brackets
    blanked; judged by the losses on unbalanced chunks and on the balanced chunks of which they were made.

    Networks are trained at several rates; the loss on held-out text of the same mixture (``valid``) chooses. Twins:
    "shuffled" (brackets in another order, as published), "matched" (one closing bracket moved so that all pairs of
    neighbouring symbols are ordinary). Readers: the network, and tables of one, two and three letters counted on the
    same texts. Rows: rate, alpha, replicate (a corpus and a model), reader, twin, gap and right (as in ``told_apart``),
    valid, and for networks the mean training loss of the last tenth (late) and of the tenth before it (before).
    """

    alphas: tuple[float, ...] = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
    steps: int = 36_000
    rates: tuple[float, ...] = (0.00063, 0.001, 0.0016, 0.0025, 0.004)

    tiers: ClassVar = {
        "ci": {"replicates": 2, "alphas": (0.0, 1.0), "steps": 20, "corpus": 40_000, "judged": 12, "rates": (0.01,)},
        "cpu": {"replicates": 24, "alphas": (0.0, 0.25, 1.0)},
        "gpu": {},
    }
    tiny: ClassVar = {"steps": 10}

    def conditions(self) -> list[dict]:
        return [{"rate": rate} for rate in self.rates]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        found, read, judged, valid = [], [], [], []
        for replicate in range(self.replicates):
            chunks, held_out = self.chunks(stream(seed, "expressions", replicate))
            judged.append(self.judged_pairs(held_out, stream(seed, "twins", replicate)))
            code, unread = both_ways(chunks), both_ways(held_out)
            for place, alpha in enumerate(self.alphas):
                texts = mixture(code, alpha, self.steps, stream(seed, "mixture", replicate, place))
                read.append(texts)
                held = mixture(unread, alpha, self.steps, stream(seed, "valid", replicate, place))
                valid.append(held[: self.judged].clone())  # else all of it stays in memory
                for reader, order in TABLES.items():
                    table = fit_ngram(texts, order, data.VOCABULARY, opening=data.OPENING)
                    loss = float(table.losses(valid[-1]).mean())
                    for twin, pair in judged[-1].items():
                        told = told_apart(*(table.losses(each).mean(dim=1) for each in pair))
                        row = {"alpha": alpha, "replicate": replicate, "reader": reader, "twin": twin, "valid": loss}
                        found.append(row | {name: float(each) for name, each in told.items()})
        size = GPTSize(vocabulary=data.VOCABULARY, init_std=0.02)
        model = build(size, len(read), seed, device, dtype, "rescue")
        losses = fit_texts(model, torch.stack(read, dim=1).to(device), rate=falling(condition["rate"], self.steps))
        tenth, shape = self.steps // 10, (self.replicates, len(self.alphas))
        columns = {
            "valid": own_losses(model, torch.stack(valid), device).mean(dim=1).view(shape),
            "late": losses[:, -tenth:].mean(dim=-1).view(shape),
            "before": losses[:, -2 * tenth : -tenth].mean(dim=-1).view(shape),
        }
        for twin in ("shuffled", "matched"):  # each model on its replicate's chunks
            own = (torch.stack([pairs[twin][side] for pairs in judged]) for side in (0, 1))
            own = (each.repeat_interleave(len(self.alphas), dim=0) for each in own)
            told = told_apart(*(own_losses(model, each, device).view(*shape, -1) for each in own))
            table = rows({"replicate": range(self.replicates), "alpha": self.alphas}, columns | told)
            found += table.assign(reader="network", twin=twin).to_dict("records")
        return pd.DataFrame(found)


@dataclass(frozen=True, kw_only=True)
class Ruler(Brackets):
    """A ruler for TE-E4.c: how hard the twins of ``Rescue`` are for tables that remember a little, counted
    on as many of the same bracketed texts as its networks read. Triples; triples smoothed by a hundredth of a count;
    four letters; triples beside one bit, whether a bracket was opened before; triples beside the depth. Rows:
    replicate, reader, twin, gap and right (as in ``told_apart``), balanced (nats per token on the balanced chunks).
    """

    steps: int = Rescue.steps

    tiers: ClassVar = {
        "ci": {"replicates": 2, "steps": 20, "corpus": 40_000, "judged": 12},
        "cpu": {"replicates": 24},
    }
    tiny: ClassVar = {"steps": 10}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        found, place = [], len(Rescue.at("cpu").alphas) - 1  # the share of one, whose texts are drawn last
        readers = {
            "trigram": {"order": 3},
            "less smoothed": {"order": 3, "strength": 0.01},
            "four letters": {"order": 4},
            "one bit": {"order": 3, "state": data.opened},
            "depth": {"order": 3, "state": data.depth},
        }
        for replicate in range(self.replicates):
            chunks, held_out = self.chunks(stream(seed, "expressions", replicate))
            judged = self.judged_pairs(held_out, stream(seed, "twins", replicate))
            texts = mixture(both_ways(chunks), 1.0, self.steps, stream(seed, "mixture", replicate, place))
            for reader, facts in readers.items():
                table = fit_ngram(texts, vocabulary=data.VOCABULARY, opening=data.OPENING, **facts)
                for twin, pair in judged.items():
                    balanced, unbalanced = (table.losses(each).mean(dim=1) for each in pair)
                    told = told_apart(balanced, unbalanced) | {"balanced": balanced.mean()}
                    row = {"replicate": replicate, "reader": reader, "twin": twin}
                    found.append(row | {name: float(each) for name, each in told.items()})
        return pd.DataFrame(found)


@dataclass(frozen=True, kw_only=True)
class RecipePopulation(Brackets):
    """TE-E4, after the second stage of exp 7: a member of a population inherits a recipe and nothing else, the share
    alpha of bracketed text. In every generation each member is trained from new first weights, on its own mixture, and
    judged by its gap on twins with shuffled brackets; fitness e^gap. Parents are drawn, and a normal step of ``sigma``
    is added to each share and cut to [0, 1].

    "shuffled": the same fitness values, assigned to the members at random. Readers: the network, and a table of
    letter triples counted on the same texts. All conditions have the same founders, texts, first weights and steps of
    mutation; each replicate has its own corpus. The rate is the one that held-out loss chose after 2,500 steps. Rows:
    reader, arm, replicate, generation, alpha (mean share of the members), drawn (mean share of their parents' draw),
    gap (mean over members).
    """

    members: int = 14
    generations: int = 25
    steps: int = 6000
    sigma: float = 0.12
    rate: float = 0.01

    tiers: ClassVar = {
        "ci": {"replicates": 2, "members": 3, "generations": 2, "steps": 10, "corpus": 40_000, "judged": 12},
        "cpu": {"replicates": 32, "members": 8, "generations": 8, "steps": 300, "corpus": 200_000, "judged": 60},
        "gpu": {},
    }
    tiny: ClassVar = {"steps": 6}

    def conditions(self) -> list[dict]:
        return [{"reader": reader, "arm": arm} for reader in ("network", "trigram") for arm in ("selected", "shuffled")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        code, pairs = [], []
        for replicate in range(self.replicates):
            chunks, held_out = self.chunks(stream(seed, "populations corpus", replicate))
            code.append(both_ways(chunks))
            only = {"shuffled": data.shuffled_twin}
            pairs.append(self.judged_pairs(held_out, stream(seed, "populations twins", replicate), only)["shuffled"])
        shape = (self.replicates, self.members)
        alpha = torch.rand(shape, generator=stream(seed, "founding populations"), dtype=torch.float64).numpy()
        draw, deal = stream(seed, "populations parents", *condition.values()), stream(seed, "populations dealt")
        tables = []
        for generation in range(self.generations):
            texts = [
                mixture(code[r], alpha[r, i], self.steps, stream(seed, "populations texts", generation, r, i))
                for r, i in np.ndindex(shape)
            ]
            read = self.networks if condition["reader"] == "network" else self.tables
            gap = read(texts, pairs, seed, generation, device, dtype).reshape(shape)
            fitness = np.exp(gap)
            if condition["arm"] == "shuffled":
                order = torch.rand(shape, generator=deal).argsort(dim=1).numpy()
                fitness = np.take_along_axis(fitness, order, axis=1)
            parents = np.take_along_axis(alpha, wright_fisher(fitness, self.members, draw), axis=1)
            columns = {"alpha": alpha.mean(axis=1), "drawn": parents.mean(axis=1), "gap": gap.mean(axis=1)}
            tables.append(rows({"replicate": range(self.replicates)}, columns).assign(generation=generation))
            mutates = stream(seed, "populations steps", generation)
            step = torch.randn(shape, generator=mutates, dtype=torch.float64).numpy()
            alpha = np.clip(parents + self.sigma * step, 0, 1)
        return pd.concat(tables, ignore_index=True)

    def networks(self, texts: list[Tensor], pairs: list, seed: int, generation: int, device, dtype) -> np.ndarray:
        """The gap of a network for each member, from fresh weights."""
        size = GPTSize(vocabulary=data.VOCABULARY, init_std=0.02)
        model = build(size, len(texts), seed, device, dtype, f"populations {generation}")
        fit_texts(model, torch.stack(texts, dim=1).to(device), rate=falling(self.rate, self.steps))
        each = (torch.stack([pair[side] for pair in pairs]) for side in (0, 1))
        each = (one.repeat_interleave(self.members, dim=0) for one in each)
        balanced, unbalanced = (own_losses(model, one, device).mean(dim=1) for one in each)
        return (unbalanced - balanced).numpy()

    def tables(self, texts: list[Tensor], pairs: list, *_) -> np.ndarray:
        """The gap of a table of letter triples for each member."""
        found = []
        for place, read in enumerate(texts):
            table = fit_ngram(read, TABLES["trigram"], data.VOCABULARY, opening=data.OPENING)
            balanced, unbalanced = (table.losses(one).mean() for one in pairs[place // self.members])
            found.append(float(unbalanced - balanced))
        return np.array(found)


# Claims: TE-E4: balanced and unbalanced code. Criteria and expected verdicts were written before the run, unless a
# claim says otherwise.
#
# Networks are judged at the rate that their held-out loss chooses, once they are flat in training. A replicate is one
# corpus with its network and tables.

PLATEAU = 0.01  # nats per token
FLAT = ", networks flat in training (the last tenth of the steps lowers their loss by at most 0.01)"


def at_best(rows: pd.DataFrame, reader: str, twin: str, alpha: float) -> pd.DataFrame:
    """The rows of a reader, twin and mixing share at the rate of the least mean ``valid``, by replicate."""
    some = chosen(rows, f"reader == '{reader}' and twin == '{twin}' and alpha == {alpha}")
    best = some.groupby("rate")["valid"].agg(lambda each: each.mean(skipna=False)).idxmin()
    return some[some["rate"] == best].set_index("replicate")


def judged(rows: pd.DataFrame, reader: str, twin: str, alpha: float, value: str = "gap") -> pd.Series:
    """A value of each replicate; networks at the rate of the least mean ``valid``, tables at any. ValueError for
    networks that are not flat: the last tenth of the steps may take PLATEAU at most off their mean training loss."""
    found = at_best(rows, reader, twin, alpha)
    if reader == "network" and not (fall := (found["before"] - found["late"]).mean(skipna=False)) <= PLATEAU:
        raise ValueError(f"networks are not at a plateau: the last tenth of the steps took {fall:.3f} off their loss")
    return found[value]


def more_often_than_the_table(reader: str) -> Measure:
    """The share of matched twins that a reader finds harder, without blanked text, less a half, and less the share of
    the trigram table: the lower."""

    def measure(rows: pd.DataFrame) -> Estimate:
        own, table = (judged(rows, each, "matched", 1.0, "right") for each in (reader, "trigram"))
        return lowest([stats.mean(each, 1 - (1 - LEVEL) / 2) for each in (own - 0.5, own - table)])

    return measure


def last_shares(rows: pd.DataFrame) -> pd.DataFrame:
    """The mean share of the last generation: a row for each replicate, a column for each reader and arm."""
    last = chosen(rows, "generation == generation.max()")
    return last.pivot(index="replicate", columns=["reader", "arm"], values="alpha")


def more_brackets(reader: str, looks: int = 1) -> Measure:
    """The last share of a reader under selection less that of its control, replicate by replicate, at the level that is
    left for each of so many looks."""

    def measure(rows: pd.DataFrame) -> Estimate:
        wide = last_shares(rows)[reader]
        return stats.mean(wide["selected"] - wide["shuffled"], 1 - (1 - LEVEL) / looks)

    return measure


def unselected(rows: pd.DataFrame) -> Estimate:
    """The same of two populations without selection, of the same founders and steps of mutation."""
    wide = last_shares(rows).xs("shuffled", axis=1, level="arm")
    return stats.mean(wide["network"] - wide["trigram"])


JUDGED = {"judged_at": RECORDED}
LAST_SHARE = "mean share in the last generation, selected less control, replicate by replicate"
SHARE = {
    "unit": "share of the text",
    "control": "the population without selection is subtracted, so that an idle one scores zero, the end of the range",
    "comparison": ("two populations without selection", unselected),
    **JUDGED,
}

CLAIMS = (
    statistic(
        "TE-E4.c",
        "Where the unbalanced code has only ordinary pairs of neighbours, the network still finds the balanced one easier in more than half of the pairs, and in more of them than the table of triples.",
        Rescue,
        more_often_than_the_table("network"),
        "the network's share less a half, and less the table's, replicate by replicate, the lower" + FLAT,
        at_least(0),
        control=more_often_than_the_table("bigram"),
        unit="of the pairs",
        where="after experiment 7; one bit more is enough for that: triples beside whether a bracket was opened before find these pairs, too",
        **JUDGED,
    ),
    statistic(
        "TE-E4.e",
        "Where members of a population inherit a share of bracketed text and nothing else, and each is trained again from the start in every generation, selection by discrimination ends at a larger mean share than the same fitness assigned at random.",
        RecipePopulation,
        more_brackets("network", looks=2),
        LAST_SHARE + ", at the level of two looks",
        at_least(0),
        source="paper",
        where="Figure 4, second stage of experiment 7: one run, no control; generated expressions, small populations and few steps here",
        paper_value=".466 to .890",
        matters=0.2,
        **SHARE,
    ),
    statistic(
        "TE-E4.f",
        "Where the members of such a population are tables of letter triples, counted anew in every generation, the same selection ends at a larger mean share as well.",
        RecipePopulation,
        more_brackets("trigram"),
        LAST_SHARE,
        at_least(0),
        where="beside TE-E4.e: a table of triples knows nothing of nesting; it became a claim when its rows had been seen",
        **SHARE,
    ),
)


# Tables and figures: balanced against unbalanced code; blue under selection, grey under fitness assigned at random.

READERS = {
    "bigram": "pairs of letters",
    "trigram": "triples",
    "four letters": "four letters",
    "one bit": "triples and one bit",
    "network": "network",
}


def pairs_found(rescue: pd.DataFrame, ruler: pd.DataFrame, twin: str) -> pd.DataFrame:
    """The share of pairs in which each reader finds the balanced chunk easier, replicate by replicate, with all text
    bracketed: a column for each reader; rows of ``Rescue`` and ``Ruler``."""
    ruler = largest(ruler).query(f"twin == '{twin}'").pivot(index="replicate", columns="reader", values="right")
    own = {each: at_best(largest(rescue), each, twin, 1.0)["right"] for each in ("bigram", "trigram", "network")}
    return ruler.assign(**own)[[*READERS]].rename(columns=READERS)


def populations(rows: pd.DataFrame) -> Figure:
    """The mean share of bracketed text by generation, under selection and with fitness assigned at random, of
    populations of networks and of tables; rows of ``RecipePopulation``."""
    rows, words = largest(rows), []
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.2), sharex=True, sharey=True)
    readers = {"network": "networks", "trigram": "tables of triples"}
    titles = ("networks: a rise, not decided", "tables of triples: a rise, decided")
    for ax, (reader, name), title in zip(axes, readers.items(), titles, strict=True):
        for arm, color, said in (("selected", BLUE, "selected"), ("shuffled", MUTED, "fitness at random")):
            part = rows[(rows["reader"] == reader) & (rows["arm"] == arm)]
            wide = part.pivot(index="replicate", columns="generation", values="alpha")
            mean, reach = wide.mean(), wide.apply(lambda each: mean_and_reach(each)[1])
            ax.fill_between(wide.columns + 1, mean - reach, mean + reach, color=color, alpha=0.15, linewidth=0)
            ax.plot(wide.columns + 1, mean, "o-", color=color, linewidth=2, markersize=4)
            beside(ax, wide.columns[-1] + 1, mean.iloc[-1], said, color, (6, 0), fontsize=8)
            words.append(f"{name}, {said}, from {mean.iloc[0]:.2f} to {mean.iloc[-1]:.2f}")
        ax.set(xlabel="generation", ylim=(0.3, 1), xlim=(0.7, 1.5 * wide.columns[-1] + 1))
        panel_label(ax, title)
    axes[0].set_ylabel("mean share of bracketed text")
    figure.set_label(f"Mean share of bracketed text over {len(wide.columns)} generations: {'; '.join(words)}.")
    return figure
