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

import numpy as np
import pandas as pd
import torch
from scipy.special import betainc
from torch import Tensor

from derived.lab import training
from derived.lab.experiment import Experiment, rows
from derived.lab.nets import Draws
from derived.lab.rng import stream

from ..data import dna
from ..model.encoders import CausalConvolution, CausalTransformer, Size, StateSpace
from ..model.metrics import procrustes_distortion, rdm_similarity

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
