"""DNA, pooled: what composition alone does to reverse complements (GT-12), and what windows do to steps (GT-10).

symbol   name      meaning                                                           axes
c(s)     counts    k-mer counts of a sequence                                        (n, 4^k)
P        -         permutation of words with c(RC s) = P c(s)                        (4^k,)
B        readout   a linear map of the counts to six numbers                         (4^k, 6)
L        L         positions that are pooled                                         scalar
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from scipy.special import betainc
from torch import Tensor

from derived.lab import measure, stats, training
from derived.lab.claims import RECORDED, at_least, on_page, statistic, unseen
from derived.lab.experiment import Experiment, rows
from derived.lab.nets import Draws
from derived.lab.plot import BLUE, DASHED, GREEN, INK, RED, THEORY, beside, largest, mean_and_reach, panel_label, points
from derived.lab.rng import stream
from derived.lab.stats import Estimate

from .data import dna
from .measures import SAME, ordering, ratio
from .model.encoders import CausalConvolution, CausalTransformer, Size, StateSpace
from .model.metrics import procrustes_distortion, rdm_similarity

#: Positions that each of the four models of the mutation walk pools: letters, tokens of about five, six-letter words.
PUBLISHED = {"DNABERT-2": 400, "NT-v2": 1000, "Evo 2": 8192, "Caduceus": 16384}
ARMS = ("varied", "shuffled", "matched", "uniform")


def arm(name: str, n: int, L: int, seed: int, replicate: int) -> Tensor:
    """The control's four kinds of DNA: GC that varies between sequences, each of those shuffled with its pairs
    kept, one chain fitted to the pairs of all of them, and letters all alike."""
    varied = dna.gc_heterogeneous_dna(n, L, stream(seed, "varied", replicate))
    if name == "shuffled":
        return dna.dinucleotide_shuffle(varied, stream(seed, "shuffle", replicate))
    if name == "matched":
        return dna.matched_chain(varied, stream(seed, "chain", replicate))
    if name == "uniform":
        return dna.dna_with_gc(torch.full((n,), 0.5), L, stream(seed, "uniform", replicate))
    return varied


@dataclass(frozen=True, kw_only=True)
class Strands(Experiment):
    """GT-12: sequences and their reverse complements, read by k-mers. readout "counts" (all 4^k), "random" (six
    random sums of them), "symmetric" (random, and equal for a word and its complement: invariant). Rows: arm, k,
    readout, replicate, similarity (of RDMs), D."""

    n: int = 200
    L: int = 1000
    k: int = 3
    replicates: int = 16

    tiers: ClassVar = {"ci": {"n": 80, "replicates": 10}, "cpu": {}}
    tiny: ClassVar = {"n": 64, "L": 400, "replicates": 2}

    def conditions(self) -> list[dict]:
        return [{"arm": arm} for arm in ARMS]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        found, P = [], dna.strand_permutation(self.k).to(device)
        for replicate in range(self.replicates):
            s = arm(condition["arm"], self.n, self.L, seed, replicate)
            here, there = (dna.kmer_counts(each, self.k).to(device) for each in (s, dna.reverse_complement(s)))
            mean = here.mean(dim=0)
            B = torch.randn(4**self.k, 6, generator=stream(seed, "readout", replicate), dtype=dtype).to(device)
            maps = {"random": B, "symmetric": B + B[P]}
            clouds = {"counts": (here - mean, there - mean[P])}
            clouds |= {name: ((here - mean) @ each, (there - mean) @ each) for name, each in maps.items()}
            for readout, (X, Y) in clouds.items():
                row = {"k": self.k, "readout": readout, "replicate": replicate}
                D = procrustes_distortion(X, Y).item() if len(X) >= X.shape[1] else math.nan
                found.append(row | {"similarity": rdm_similarity(X, Y).item(), "D": D})
        return pd.DataFrame(found)


@dataclass(frozen=True, kw_only=True)
class Trained(Experiment):
    """GT-12: small causal transformers that learn the next letter of DNA of varying composition, under the reverse
    complement, before training and after; each network has its own training and judged sequences.

    Rows: stage ("untrained", "trained"), arm, replicate; similarity (of RDMs) and D of the pooled states before and
    after the reverse complement; composition (R^2 of the pooled states by a linear map of the counts of pairs, fitted
    on one half of the sequences, judged on the other); learned (by how much the loss on the arm "varied" is under ln 4,
    over the same of the best reader, ``best_reader``).
    """

    networks: int = 12
    steps: int = 4000
    batch: int = 16
    length: int = 512
    width: int = 64
    depth: int = 4
    heads: int = 4
    judged: int = 1000
    rate: float = 0.003

    tiers: ClassVar = {
        "ci": {"networks": 3, "steps": 4, "batch": 2, "length": 24, "width": 8, "depth": 1, "heads": 1, "judged": 60},
        "cpu": {
            "networks": 8,
            "steps": 400,
            "batch": 8,
            "length": 128,
            "width": 32,
            "depth": 2,
            "heads": 2,
            "judged": 200,
        },
        "gpu": {},
    }
    tiny: ClassVar = {"networks": 2, "judged": 40}
    dtype: ClassVar = torch.float32

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        return self.trained(lambda n, L, network, draw: dna.gc_heterogeneous_dna(n, L, draw), seed, device, dtype)

    def trained(
        self, reads: Callable[[int, int, int, torch.Generator], Tensor], seed: int, device, dtype
    ) -> pd.DataFrame:
        """The rows of networks that read ``reads(n, L, network, draw)``, (n, L), at every step."""
        size = Size(codes=4, outputs=4, length=self.length, width=self.width, depth=self.depth, heads=self.heads)
        draws = Draws(num_networks=self.networks, seed=seed, layer="dna", dtype=dtype, device=device)
        model = CausalTransformer(size, draws)
        before = self.judge(model, seed, device).assign(stage="untrained")
        self.train(model, reads, seed, device)
        return pd.concat([before, self.judge(model, seed, device).assign(stage="trained")], ignore_index=True)

    def train(self, model: CausalTransformer, reads, seed: int, device) -> None:
        """AdamW with a cosine to zero; every network reads fresh sequences of its own at every step."""
        generators = [stream(seed, "read", r) for r in range(self.networks)]

        def loss(step: int) -> Tensor:
            read = torch.stack([reads(self.batch, self.length + 1, r, draw) for r, draw in enumerate(generators)])
            read = read.long().to(device)
            return training.mean_cross_entropy(model.head(model(read[..., :-1])), read[..., 1:])

        def rate(step: int) -> float:
            warm, cosine = min(1.0, 10 * (step + 1) / self.steps), (1 + math.cos(math.pi * step / self.steps)) / 2
            return self.rate * warm * cosine

        optimiser = training.adamw(model, betas=(0.9, 0.98), weight_decay=0.01)
        training.train(loss, optimiser, steps=self.steps, rate=rate)

    @torch.no_grad()
    def judge(self, model: CausalTransformer, seed: int, device) -> pd.DataFrame:
        """All arms of the control, read by every network in both directions."""
        tables = []
        for name in ARMS:
            s = torch.stack([arm(name, self.judged, self.length, seed, r) for r in range(self.networks)])
            other = dna.reverse_complement(s.flatten(0, 1)).view_as(s)
            (X, loss), (Y, _) = (self.read(model, each.long().to(device)) for each in (s, other))
            centred = zip(X - X.mean(dim=1, keepdim=True), Y - Y.mean(dim=1, keepdim=True), strict=True)
            counts = torch.stack([dna.kmer_counts(each, 2) for each in s])
            best = best_reader(s[..., :-1], s[..., 1:]) if name == "varied" else math.nan
            columns = {
                "similarity": torch.stack([rdm_similarity(x, y) for x, y in centred]),
                "D": procrustes_distortion(X, Y),
                "composition": explained(X, counts),
                "learned": (math.log(4) - loss) / (math.log(4) - best),
            }
            tables.append(rows({"replicate": range(self.networks)}, columns).assign(arm=name))
        return pd.concat(tables, ignore_index=True)

    def read(self, model: CausalTransformer, s: Tensor) -> tuple[Tensor, Tensor]:
        """Of sequences (R, n, L): the pooled states (R, n, p) and the loss of the next letter (R,)."""
        parts = []
        for part in s.split(50, dim=1):
            h = model(part)
            loss = training.mean_cross_entropy(model.head(h[:, :, :-1]), part[..., 1:])
            parts.append((h.mean(dim=2).double().cpu(), loss.double().cpu() * part.shape[1]))
        pooled, losses = zip(*parts, strict=True)
        return torch.cat(pooled, dim=1), torch.stack(losses).sum(dim=0) / s.shape[1]


@dataclass(frozen=True, kw_only=True)
class Diets(Trained):
    """GT-12.g: the transformers of ``Trained``, with other draws, that read DNA of varying composition, and the same
    ones, from the same first weights, that read DNA of one composition: each its own random chain.

    Rows: reads ("varied", "one"), and those of ``Trained``.
    """

    def conditions(self) -> list[dict]:
        return [{"reads": "varied"}, {"reads": "one"}]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        if condition["reads"] == "varied":
            return super().run({}, seed=seed + 1, device=device, dtype=dtype)
        chains = [dna.random_chain(stream(seed, "chain", r)) for r in range(self.networks)]
        even = torch.full((4,), 0.25, dtype=torch.float64)
        return self.trained(
            lambda n, L, network, draw: dna.chain(even, chains[network], n, L, draw), seed + 1, device, dtype
        )


def best_reader(past: Tensor, following: Tensor) -> Tensor:
    """The loss (R,) of the reader who knows the law of ``gc_heterogeneous_dna`` and counts C and G: with g of them in t
    letters P(C or G next) is the mean of GC under its law given g; past and following (R, n, L - 1)."""
    edges = torch.linspace(0.25, 0.75, 401, dtype=torch.float64)
    below = torch.from_numpy(betainc(12.0, 14.0, edges.numpy()))  # the least and the greatest GC hold what was cut off
    weights = torch.cat([below[:1], below.diff(), 1 - below[-1:]])
    GC = torch.cat([edges[:1], (edges[1:] + edges[:-1]) / 2, edges[-1:]])
    g, t = torch.meshgrid(*2 * [torch.arange(past.shape[-1] + 1, dtype=torch.float64)], indexing="ij")
    logs = weights.log() + g[..., None] * GC.log() + (t - g)[..., None] * (-GC).log1p()
    strong_next = (logs.softmax(dim=-1) * GC).sum(dim=-1)  # at [g, t]; used for g <= t alone
    strong = lambda s: (s == 1) | (s == 2)  # noqa: E731
    p = strong_next[strong(past).cumsum(dim=-1), torch.arange(past.shape[-1]) + 1]
    return -torch.where(strong(following), p / 2, (1 - p) / 2).log().mean(dim=(1, 2))


def explained(states: Tensor, counts: Tensor) -> Tensor:
    """R^2 (R,) of states (R, n, p) by an affine map of counts (R, n, words), fitted on the first half of the sequences,
    judged on the second, over all features together; the counts of words sum to the length, so the map is affine."""
    half = states.shape[1] // 2
    weights = torch.linalg.lstsq(counts[:, :half], states[:, :half], driver="gelsd").solution
    missed = (counts[:, half:] @ weights - states[:, half:]).square().sum(dim=(1, 2))
    return 1 - missed / (states[:, half:] - states[:, :half].mean(dim=1, keepdim=True)).square().sum(dim=(1, 2))


@dataclass(frozen=True, kw_only=True)
class Dilution(Experiment):
    """GT-10: states of L positions are drawn once; one of them is drawn anew; how far the mean moves. Rows: L,
    replicate, cosine, euclidean, law (of the cosine: |delta_perp|^2 / (2 L^2 |mu|^2), mean over the draw)."""

    lengths: tuple[int, ...] = (64, 256, 400, 1000, 4096, 8192, 16384)
    p: int = 16
    replicates: int = 64

    tiny: ClassVar = {"lengths": (64, 256, 1000), "replicates": 8}

    def conditions(self) -> list[dict]:
        return [{"L": L} for L in self.lengths]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        L = condition["L"]
        g = stream(seed, "states", L)
        level = torch.randn(self.p, generator=stream(seed, "level"), dtype=dtype).to(
            device
        )  # hidden states lean one way
        states = level + torch.randn(self.replicates, L, self.p, generator=g, dtype=dtype).to(device)
        anew = level + torch.randn(self.replicates, self.p, generator=g, dtype=dtype).to(device)
        mu, delta = states.mean(dim=1), anew - states[:, 0]
        step = delta / L
        square = mu.square().sum(dim=-1, keepdim=True)
        across = delta - (delta * mu).sum(dim=-1, keepdim=True) / square * mu
        law = across.square().sum(dim=-1) / (2 * L**2 * square.squeeze(dim=-1))
        unit, moved = (each / torch.linalg.vector_norm(each, dim=-1, keepdim=True) for each in (mu, mu + step))
        cosine = (unit - moved).square().sum(dim=-1) / 2
        columns = {"cosine": cosine, "euclidean": torch.linalg.vector_norm(step, dim=-1), "law": law}
        return rows({"replicate": range(self.replicates)}, columns)


@dataclass(frozen=True, kw_only=True)
class Walks(Experiment):
    """GT-10: untrained encoders, one substitution after the other, cosine step of the pooled state. setting "same" (one
    window for all) or "published" (windows in the proportion 400 : 1,000 : 8,192 : 16,384 of the four models,
    divided by ``shrink``). Rows: setting, encoder, L, replicate, cosine (median over the walk)."""

    shrink: int = 16
    same: int = 128
    steps: int = 12
    width: int = 32
    replicates: int = 64

    tiers: ClassVar = {
        "ci": {"shrink": 64, "same": 64, "steps": 6, "width": 16, "replicates": 8},
        "cpu": {"shrink": 64, "same": 64, "steps": 6, "width": 16},
    }
    tiny: ClassVar = {"shrink": 128, "same": 32, "steps": 3, "width": 8, "replicates": 2}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"setting": setting} for setting in ("same", "published")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        kinds = dict(zip(PUBLISHED, (CausalTransformer, CausalConvolution, CausalConvolution, StateSpace), strict=True))
        found = []
        for place, (name, kind) in enumerate(kinds.items()):
            L = self.same if condition["setting"] == "same" else PUBLISHED[name] // self.shrink
            size = Size(codes=4, outputs=4, length=L, width=self.width, depth=2, heads=2)
            draws = Draws(num_networks=self.replicates, seed=seed, layer=f"walk {place}", dtype=dtype, device=device)
            steps = self.walk(kind(size, draws), L, seed)
            found.append(rows({"encoder": name, "L": L, "replicate": range(self.replicates)}, {"cosine": steps}))
        return pd.concat(found, ignore_index=True)

    @torch.no_grad()
    def walk(self, encoder: torch.nn.Module, L: int, seed: int) -> np.ndarray:
        """The median cosine step of each network along its own walk."""
        s = dna.dna_with_gc(torch.full((self.replicates,), 0.5), L, stream(seed, "start", L)).long()
        where = torch.randint(L, (self.steps, self.replicates), generator=stream(seed, "sites", L))
        shift = torch.randint(1, 4, (self.steps, self.replicates), generator=stream(seed, "letters", L))
        path = [s]
        for site, by in zip(where, shift, strict=True):
            s = s.clone()
            s[torch.arange(len(s)), site] = (s[torch.arange(len(s)), site] + by) % 4
            path.append(s)
        device = next(encoder.parameters()).device
        tokens = torch.stack(path, dim=1).to(device)  # (R, steps + 1, L)
        pooled = torch.cat([encoder(part).mean(dim=2) for part in tokens.split(4, dim=1)], dim=1).double()
        unit = pooled / torch.linalg.vector_norm(pooled, dim=-1, keepdim=True)
        return ((unit[:, 1:] - unit[:, :-1]).square().sum(dim=-1) / 2).median(dim=1).values.cpu().numpy()


# Claims: GT-10, GT-12: DNA, pooled. Criteria and expected verdicts were written before the run.


def windows_alone(rows: pd.DataFrame) -> Estimate:
    """Largest over smallest step of four encoders, with the published windows over the same with one window."""
    steps = measure.by_draw(rows["cosine"], rows, ["setting", "replicate"])
    wide = np.log(steps.max() / steps.min()).unstack("setting")
    return ratio(stats.mean(wide["published"] - wide["same"]))


def other_walks(rows: pd.DataFrame) -> Estimate:
    """The same of one window for all, on every other walk over the walks between."""
    alike = rows[rows["setting"] == "same"]
    number = alike["replicate"].rank(method="dense").astype(int) - 1
    paired = alike.assign(setting=number % 2, replicate=number // 2)[number <= number.max() - (1 - number.max() % 2)]
    return windows_alone(paired.replace({"setting": {0: "published", 1: "same"}}))


VARIED = ("varied", "shuffled")


def order_of_each(rows: pd.DataFrame, stage: str) -> np.ndarray:
    """How far each network of a stage keeps the order of the arms (network,): what ``ordering`` is the mean of."""
    arms = measure.chosen(rows, f"stage == '{stage}'").pivot(index="replicate", columns="arm", values="similarity")
    return np.minimum(*arms[[*VARIED]].to_numpy().T) - np.maximum(arms["matched"], arms["uniform"]).to_numpy()


def widened(rows: pd.DataFrame) -> Estimate:
    """How much wider the order of the arms is in networks after training than before."""
    return stats.mean(order_of_each(rows, "trained") - order_of_each(rows, "untrained"))


def untrained_alone(rows: pd.DataFrame) -> Estimate:
    """The same without training in between: one half of the untrained networks less the other."""
    order = order_of_each(rows, "untrained")
    half = len(order) // 2
    return stats.mean(order[:half] - order[half : 2 * half])


def by_composition(rows: pd.DataFrame) -> Estimate:
    """How much wider the order of the arms is in networks that read DNA of varying composition than in the same ones
    that read DNA of one composition."""
    varied, one = (order_of_each(measure.chosen(rows, f"reads == '{diet}'"), "trained") for diet in ("varied", "one"))
    return stats.mean(varied - one)


def by_one_composition(rows: pd.DataFrame) -> Estimate:
    """How much DNA of one composition widens it."""
    return widened(measure.chosen(rows, "reads == 'one'"))


TRAINED = {"judged_at": RECORDED}
OURS = "small transformers trained on the chapter's generated DNA; a pilot at another seed had been seen"

CLAIMS = (
    unseen(
        "GT-10.a",
        "Under discrete tokenisation three architectures differ by a factor of 3,000 in the roughness of a mutation walk.",
        "no package ships the four models of the paper; GT-10.b and GT-10.c say what their windows alone make, GT-10.d what trained models of antibodies do",
        source="digest",
        where="abstract; that it is the mutation walks is said by a digest",
        paper_value="3,000",
        plain="Under discrete tokenisation architectures differ by a factor of 3,000.",
        unit="times",
    ),
    on_page("GT-10.b"),
    statistic(
        "GT-10.c",
        "Windows in the proportions of the four published ones make untrained encoders differ at least thirty times as much as one window for all.",
        Walks,
        windows_alone,
        "largest over smallest cosine step, published over equal windows",
        at_least(30),
        unit="times",
        control=other_walks,
    ),
    unseen(
        "GT-12.a",
        "The robustness of Evo 2 under reverse complement comes from the composition of sequences, not from a learned symmetry.",
        "no package ships the weights of Evo 2; GT-12.b and GT-12.c say what composition alone does to the same score, GT-12.d what small trained models do",
        source="paper",
        where="abstract",
        paper_value="direction",
        plain="A genome model that seems to know the two strands is reading composition.",
        unit="similarity",
    ),
    statistic(
        "GT-12.b",
        "A random readout of 3-mers, which knows of no strand, scores high on DNA of varying composition and on its shuffle, and low on one chain fitted to all of it and on uniform letters.",
        Strands,
        lambda rows: ordering(measure.chosen(rows, "readout == 'random'"), VARIED),
        "similarity of RDMs, lower of the first two less higher of the last two",
        at_least(0.3),
        unit="correlation",
        control=lambda rows: ordering(measure.chosen(rows, "readout == 'random'"), *SAME),
    ),
    on_page("GT-12.c"),
    statistic(
        "GT-12.d",
        "Training on DNA of varying composition widens the order of the arms of GT-12.b in small transformers.",
        Trained,
        widened,
        "lower of the first two similarities less higher of the last two, trained less untrained",
        at_least(0),
        unit="correlation",
        where=OURS + "; GT-12.g has what training on DNA of one composition does",
        scale={"gpu": "ours"},
        **TRAINED,
        comparison=("two halves of the untrained networks", untrained_alone),
        control="networks without training gain nothing, the end of the range, which no number of networks decides",
    ),
    statistic(
        "GT-12.g",
        "Training on DNA of varying composition leaves a wider order of the arms of GT-12.b in small transformers than training on DNA of one composition.",
        Diets,
        by_composition,
        "lower of the first two similarities less higher of the last two, trained on the one less trained on the other, network by network",
        at_least(0),
        unit="correlation",
        where="the networks of GT-12.d with other draws; one composition is a random chain of letters for each network; one learning rate for both, and no plateau is asked",
        **TRAINED,
        comparison=("DNA of one composition, trained less untrained", by_one_composition),
        control="training on one composition is subtracted; GT-12.d has the untrained networks",
    ),
)


# Figures: Pooled DNA: rows in, a figure with its alt text as label out.
#
# mark                   meaning
# filled, open marker    recorded, live; bars are 99.9 % intervals over replicates
# thin line              the law of a diluted step
# dashed line            windows of the four models

ARM_NAMES = {
    "varied": "varied\nGC",
    "shuffled": "each\nshuffled",
    "matched": "one chain\nfor all",
    "uniform": "uniform",
}
READOUTS = {"counts": ("all counts", INK), "symmetric": ("symmetric", GREEN), "random": ("random", RED)}
WALKERS = {"DNABERT-2": 400, "NT-v2": 1000, "Evo 2": 8192, "Caduceus": 16384}


def readouts(rows: pd.DataFrame) -> Figure:
    """Similarity of distance matrices under the reverse complement, by arm and read-out; rows of ``Strands``."""
    table, said = largest(rows), []
    recorded = bool(table["recorded"].iloc[0])
    figure, ax = plt.subplots(figsize=(5.6, 3.4))
    for shift, (readout, (name, color)) in zip((-0.2, 0.0, 0.2), READOUTS.items(), strict=True):
        means = []
        for x, arm in enumerate(ARM_NAMES):
            part = table[(table["arm"] == arm) & (table["readout"] == readout)]["similarity"]
            mean, reach = mean_and_reach(part)
            face = color if recorded else "none"
            ax.errorbar(x + shift, mean, reach, fmt="o", color=color, markerfacecolor=face, capsize=3)
            means.append(mean)
        where = {"shift": (0, 10), "ha": "center"} if readout == "counts" else {"shift": (10, 0)}
        beside(ax, x + shift, means[-1], name, color, **where)
        said.append(f"{name} {', '.join(f'{each:.2f}' for each in means)}")
    ax.set_xticks(range(len(ARM_NAMES)), ARM_NAMES.values())
    ax.set(xlabel="DNA", ylabel="similarity after\nreverse complement", xlim=(-0.5, 4.2), ylim=(None, 1.15))
    panel_label(ax, "Random sums: strands alike only where GC varies")
    figure.set_label(
        f"Similarity of distance matrices before and after the reverse complement, for DNA of varied GC, each sequence "
        f"shuffled, one chain for all, and uniform letters, by read-out: {'; '.join(said)}."
    )
    return figure


def dilution(rows: pd.DataFrame, walks: pd.DataFrame) -> Figure:
    """One changed letter against the window (left; rows of ``Dilution``), and four untrained encoders with one window
    and with windows in the published proportion (right; rows of ``Walks``)."""
    figure, axes = plt.subplots(1, 2, figsize=(7.8, 3.5))
    for column, name, color in (("euclidean", "Euclidean", BLUE), ("cosine", "cosine", RED)):
        drawn = points(axes[0], rows, "L", column, color)
        beside(axes[0], drawn["L"].iloc[1], drawn["value"].iloc[1], name, color, shift=(8, 10))
    law = largest(rows).groupby("L")["law"].mean()
    axes[0].plot(law.index, law, **THEORY)
    for L in WALKERS.values():
        axes[0].axvline(L, **DASHED)
    axes[0].set(xscale="log", yscale="log", xlabel="window $L$", ylabel="step of the mean")
    panel_label(axes[0], "one letter in a window")
    table, factors = largest(walks), {}
    recorded = bool(table["recorded"].iloc[0])
    for shift, setting, color in ((-0.12, "same", BLUE), (0.12, "published", RED)):
        for x, name in enumerate(WALKERS):
            part = table[(table["setting"] == setting) & (table["encoder"] == name)]["cosine"]
            mean, reach = mean_and_reach(part)
            low = min(reach, 0.9 * mean)  # a logarithmic axis has no zero
            face = color if recorded else "none"
            axes[1].errorbar(x + shift, mean, [[low], [reach]], fmt="o", color=color, markerfacecolor=face, capsize=3)
        each = table[table["setting"] == setting].groupby("replicate")["cosine"]
        factors[setting] = np.exp(np.log(each.max() / each.min()).mean())  # draw by draw, as GT-10.c has it
    axes[1].set_xticks(range(4), ["A", "B", "C", "D"])
    axes[1].set(yscale="log", xlabel="untrained encoder", ylabel="cosine step", xlim=(-0.5, 3.6))
    at = table.groupby(["setting", "encoder"])["cosine"].mean()
    beside(axes[1], 2.88, at["same", "Caduceus"], "one window", BLUE, shift=(0, 26), ha="center", fontsize=9)
    beside(axes[1], 0.12, at["published", "DNABERT-2"], "windows as published", RED, shift=(8, 4), fontsize=9)
    times = (f"{factors[each]:.{0 if factors[each] > 10 else 1}f} times" for each in ("published", "same"))
    panel_label(axes[1], "unequal windows spread the steps\n{}, one window {}".format(*times))
    slope = {name: rows.groupby("L")[name].mean() for name in ("euclidean", "cosine")}
    fall = {name: each.iloc[0] / each.iloc[-1] for name, each in slope.items()}
    figure.set_label(
        f"From the shortest to the longest window the Euclidean step of the mean falls {fall['euclidean']:,.0f} times, "
        f"the cosine step {fall['cosine']:,.0f} times. Draw by draw four untrained encoders differ by a factor of "
        f"{factors['same']:.3g} with one window, and of {factors['published']:,.0f} with windows in the published "
        f"proportion."
    )
    return figure
