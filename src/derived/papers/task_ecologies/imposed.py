"""What a network's own code separates, trained or not, and what a code imposed on it lets it reach."""

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from derived.lab.claims import at_least, at_most, computed
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import largest, smallest
from derived.lab.plot import BLUE, DASHED, GREEN, MUTED, RED, THEORY, beside, panel_label
from derived.lab.plot import largest as largest_tier
from derived.lab.rng import stream
from derived.lab.stats import Estimate

from .data.ecologies import random_ecology
from .fits import build, falling, fit
from .model.ecology import FiniteEcology
from .model.gpt import GPTSize, MicroGPT, output_distances, text_losses
from .model.partitions import set_partitions

EQUAL = 1e-12  # what rounding may part two outputs by that one function makes of one input, at two places of a batch


@dataclass(frozen=True, kw_only=True)
class Frozen(Experiment):
    """TE-13.b, G4: fixed networks at random weights, asked what they tell apart. Each world shows itself as a random
    text of ``shown`` letters ("distinct"), or all show the same one ("same"); contexts are random texts before it.

    "dense" and "experts" are one function of the input; "adapted" adds to the weights one gradient step per world on a
    text of its own, and then reads the same text. Rows: network, observed, replicate, pair, l1 (the largest L1 distance
    of two worlds' outputs over the contexts), own_excess (KL of the network from random laws, mean over worlds and
    contexts: its own loss less the floor), code_excess (of its code: 0 where every pair is separated).
    """

    replicates: int = 10
    worlds: int = 8
    contexts: int = 20
    before: int = 8
    shown: int = 4
    step: float = 0.1

    tiny: ClassVar = {"replicates": 2, "worlds": 4, "contexts": 5}
    dtype: ClassVar = torch.float64

    def conditions(self) -> list[dict]:
        cases = [("dense", "distinct"), ("dense", "same"), ("experts", "distinct"), ("experts", "same")]
        return [{"network": network, "observed": observed} for network, observed in [*cases, ("adapted", "same")]]

    @torch.no_grad()
    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        size = GPTSize(experts=4 if condition["network"] == "experts" else 0)
        model = build(size, self.replicates, seed, device, dtype)
        inputs = self.inputs(condition["observed"], seed, device)
        ecology = random_ecology(self.worlds, self.contexts, size.vocabulary, stream(seed, "frozen laws"))
        if condition["network"] == "adapted":
            laws = torch.stack([self.adapted(model, w, inputs[w], seed, device) for w in range(self.worlds)], dim=1)
        else:
            laws = self.laws(model, inputs.flatten(0, 1)).unflatten(1, inputs.shape[:2])
        first, second = map(list, zip(*combinations(range(self.worlds), 2), strict=True))
        l1 = output_distances(laws[:, first], laws[:, second])  # (replicates, pairs)
        columns = {"l1": l1, "own_excess": self.own_excess(ecology, laws), "code_excess": self.of_code(ecology, laws)}
        pairs = [f"{i}-{j}" for i, j in zip(first, second, strict=True)]
        return rows({"replicate": range(self.replicates), "pair": pairs}, columns)

    def inputs(self, observed: str, seed: int, device) -> Tensor:
        """Opening token, context, what the world shows: (worlds, contexts, T)."""
        draw = stream(seed, "frozen texts")
        letters = lambda *shape: torch.randint(26, shape, generator=draw)  # noqa: E731
        contexts, shown = letters(self.contexts, self.before), letters(self.worlds, self.shown)
        shown = shown if observed == "distinct" else shown[:1].expand(self.worlds, -1)
        grid = (self.worlds, self.contexts)
        parts = [torch.full((*grid, 1), 26), contexts.expand(*grid, -1), shown.unsqueeze(1).expand(*grid, -1)]
        return torch.cat(parts, dim=-1).to(device)

    def laws(self, model: MicroGPT, ids: Tensor) -> Tensor:
        """What each model says after each text, (replicates, texts, V)."""
        return model(ids)[:, :, -1].softmax(dim=-1)

    @torch.enable_grad()
    def adapted(self, model: MicroGPT, world: int, ids: Tensor, seed: int, device) -> Tensor:
        """The same after one gradient step on a text of that world."""
        text = torch.randint(26, (1, 16), generator=stream(seed, "adapted", world)).to(device)
        losses = text_losses(model(text[:, :-1]), text[:, 1:]).mean(dim=(1, 2))
        weights = dict(model.named_parameters())
        steps = torch.autograd.grad(losses.sum(), list(weights.values()))
        moved = {name: weight - self.step * g for (name, weight), g in zip(weights.items(), steps, strict=True)}
        return torch.func.functional_call(model, moved, (ids,))[:, :, -1].softmax(dim=-1).detach()

    def own_excess(self, ecology: FiniteEcology, laws: Tensor) -> np.ndarray:
        """The loss of each network as a reader of its own inputs, less the floor."""
        each = tuple(range(self.worlds))
        found = [ecology.loss(each, one.double().cpu().numpy()) - ecology.entropy_floor() for one in laws]
        return np.array(found)[:, None]

    def of_code(self, ecology: FiniteEcology, laws: Tensor) -> np.ndarray:
        """The excess of each network's code: worlds are in one cell where its outputs are equal in every context."""
        close = output_distances(laws.unsqueeze(1), laws.unsqueeze(2)).cpu().numpy() < EQUAL
        codes = [[int(np.flatnonzero(row)[0]) for row in one] for one in close]
        return np.array([ecology.js_excess(code) for code in codes])[:, None]


def without_context(ecology: FiniteEcology) -> FiniteEcology:
    """The same worlds for a reader to whom all contexts look alike."""
    return FiniteEcology(ecology.prior, [1.0], np.einsum("c,ncv->nv", ecology.contexts, ecology.laws)[:, None])


@dataclass(frozen=True, kw_only=True)
class Imposed(Experiment):
    """TE-13.c: trained transformers that see a context token and then the cell of the world, against L*(p).

    All codes of four worlds and all replicates train side by side on the exact expected loss, so that nothing is
    sampled. In the arm "scrambled" the second token is drawn with the cells' masses but independently of the world, in
    the arm "blind" the network has no block and sees the second token alone. Rows: arm, replicate, code (place among
    the partitions), k (its cells), loss, before (the loss at 0.9 of the steps), target (L*(p)), reach (the least loss
    of what the arm can see: L*(p), L* of the constant code, H(Y | X)), one_cell (L* of the constant code), floor.
    """

    replicates: int = 8
    worlds: int = 4
    contexts: int = 3
    tokens: int = 5
    steps: int = 1500
    rate: float = 0.02

    tiers: ClassVar = {
        "ci": {"replicates": 1},
        "cpu": {"replicates": 4},
        "gpu": {},
    }
    tiny: ClassVar = {"worlds": 3, "steps": 250}
    dtype: ClassVar = torch.float64
    deterministic: ClassVar = {"target": 1e-12, "reach": 1e-12, "one_cell": 1e-12, "floor": 1e-12}

    def conditions(self) -> list[dict]:
        return [{"arm": arm} for arm in ("imposed", "scrambled", "blind")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        ecologies = [
            random_ecology(self.worlds, self.contexts, self.tokens, stream(seed, "imposed", replicate))
            for replicate in range(self.replicates)
        ]
        codes = [tuple(int(each) for each in code) for code in set_partitions(self.worlds)]
        pairs = [(ecology, code) for ecology in ecologies for code in codes]
        arm, constant = condition["arm"], (0,) * self.worlds
        tables = [self.table(ecology, code, arm) for ecology, code in pairs]
        weights = torch.as_tensor(np.stack(tables), dtype=dtype, device=device)  # (K, contexts, cells, tokens)
        depth = 0 if arm == "blind" else 2
        size = GPTSize(vocabulary=self.contexts + self.worlds, width=16, depth=depth, heads=2, block=2)
        model = build(size, len(pairs), seed, device, dtype)
        ids = torch.cartesian_prod(torch.arange(self.contexts), self.contexts + torch.arange(self.worlds)).to(device)

        def loss(step: int) -> Tensor:
            logits = model(ids)[:, :, -1, : self.tokens].log_softmax(dim=-1)
            return -(weights.flatten(1, 2) * logits).sum(dim=(1, 2))

        losses = fit(model, loss, steps=self.steps, rate=falling(self.rate, self.steps))
        shape = (self.replicates, len(codes))
        of = {"imposed": lambda e, code: e.bayes_loss(code), "scrambled": lambda e, _: e.bayes_loss(constant)}
        reach = of.get(arm, lambda e, code: without_context(e).bayes_loss(code))
        columns = {
            "k": [max(code) + 1 for code in codes],
            "loss": loss(self.steps).detach().double().cpu().view(shape),
            "before": losses[:, int(0.9 * self.steps)].view(shape),
            "target": np.reshape([ecology.bayes_loss(code) for ecology, code in pairs], shape),
            "reach": np.reshape([reach(ecology, code) for ecology, code in pairs], shape),
            "one_cell": np.array([ecology.bayes_loss(constant) for ecology in ecologies])[:, None],
            "floor": np.array([ecology.entropy_floor() for ecology in ecologies])[:, None],
        }
        return rows({"replicate": range(self.replicates), "code": range(len(codes))}, columns)

    def table(self, ecology: FiniteEcology, code: tuple[int, ...], arm: str) -> np.ndarray:
        """Pr(context, cell, token), (contexts, worlds, tokens); cells that the code lacks have weight zero."""
        joint = ecology.prior[:, None, None] * ecology.contexts[:, None] * ecology.laws  # (worlds, contexts, tokens)
        table = np.zeros((self.contexts, self.worlds, self.tokens))
        np.add.at(table, (slice(None), list(code)), joint.transpose(1, 0, 2))
        if arm == "scrambled":
            masses = np.bincount(code, weights=ecology.prior, minlength=self.worlds)
            table = table.sum(axis=1, keepdims=True) * masses[:, None]
        return table


# Claims: TE-13: what networks separate by themselves, and what they reach where a code is imposed. Criteria and
# expected verdicts were written before the run, unless a claim says otherwise.


def adapted_beyond_fixed(rows: pd.DataFrame) -> Estimate:
    """The least separated pair of adapted networks; less than nothing where a fixed one parts equal texts by more than
    rounding."""
    fixed = largest("l1", "network != 'adapted' and observed == 'same'")(rows)
    return smallest("l1", "network == 'adapted'")(rows) if fixed.value < 1e-12 else Estimate(-fixed.value, fixed.n)


FIXED_ON_EQUAL_TEXTS = smallest("l1", "network != 'adapted' and observed == 'same'")

CLAIMS = (
    computed(
        "TE-13.b",
        "Untrained networks of random weights, dense or with experts, tell apart any two of eight observations in some of twenty contexts: their own code has no excess, whatever the task.",
        Frozen,
        smallest("l1", "observed == 'distinct'"),
        "least separated pair, by the $L_1$ distance of outputs in its best context",
        at_least(1e-6),
        unit="L1 distance",
        control=FIXED_ON_EQUAL_TEXTS,
        where="after Theorem 30, which asks for exact equality of outputs",
    ),
    computed(
        "TE-13.c",
        "Two worlds that show a fixed network the same text are one to it in every context, dense or with experts; one gradient step per world tells them apart.",
        Frozen,
        adapted_beyond_fixed,
        "least separated pair of adapted networks, if fixed ones separate none",
        at_least(1e-6),
        unit="L1 distance",
        source="paper",
        where="Propositions 17 to 28",
        control=FIXED_ON_EQUAL_TEXTS,
        scale={},
    ),
    computed(
        "TE-13.d",
        "A transformer that sees a context and the cell of the world, trained on the exact expected loss, reaches $L^*(p)$ for each of the fifteen codes of four worlds.",
        Imposed,
        largest("abs(loss - target)", "arm == 'imposed'"),
        "largest difference of trained loss and $L^*(p)$",
        at_most(2e-3),
        unit="nats",
        control=largest("abs(loss - target)", "arm == 'scrambled'"),
        scale={"gpu": "ours"},
    ),
    computed(
        "TE-13.e",
        "A reader without attention sees the cell alone: trained, its loss is $L^*(p)$ plus the decoding gap $I(Y;C|X)$. One whose cell token is drawn at random reaches the loss of the constant code.",
        Imposed,
        largest("abs(loss - reach)", "arm != 'imposed'"),
        "largest difference of trained loss and the least that the reader allows",
        at_most(2e-3),
        unit="nats",
        source="paper",
        comparison=("the floor of a reader of both, $L^*(p)$", largest("abs(loss - target)", "arm != 'imposed'")),
        control="one of the two readers is given a token without meaning, and is itself the idle arm",
        where="Definition 39 and Proposition 40, on an example of ours",
        scale={"gpu": "ours"},
    ),
)


# Figures: What networks tell apart and what an imposed code lets them reach: rows in, a figure with its alt text as
# label out.
#
# mark            meaning
# points          one trained network (a code of one ecology), or one pair of observations
# line in INK     the loss that the reader allows

ARMS = {
    "imposed": (BLUE, "o", "context and cell"),
    "blind": (GREEN, "s", "cell alone"),
    "scrambled": (RED, "^", "context and a random cell"),
}


def trained_against_optimum(rows: pd.DataFrame) -> Figure:
    """Trained loss above the floor against the excess of the code that was imposed; rows of ``Imposed``."""
    rows = largest_tier(rows)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.4), sharey=True)
    words = []
    for ax, against in ((left, "target"), (right, "reach")):
        for arm, (color, marker, name) in ARMS.items():
            part = rows[rows["arm"] == arm]
            x, y = part[against] - part["floor"], part["loss"] - part["floor"]
            ax.plot(x, y, marker, color=color, markersize=3.5, alpha=0.7, label=name)
            if against == "target":
                gap = (part["loss"] - part["target"]).abs().max()
                words.append(f"{name}: largest distance from the diagonal {gap:.2g}")
        end = float(np.max(rows["loss"] - rows["floor"]))
        ax.plot([0, end], [0, end], **THEORY)
    left.set(xlabel=r"excess $\Delta(p)$ of the imposed code (nats)", ylabel="trained loss less the floor (nats)")
    right.set(xlabel="what the reader can see allows (nats)")
    right.legend(*left.get_legend_handles_labels(), fontsize=8, loc="lower right")
    panel_label(left, "who sees context and cell\nreaches the theorem")
    panel_label(right, "each reaches what it can see")
    figure.set_label(
        f"Left: trained loss above the floor against the excess of the code; {'; '.join(words)} nats. Right: against "
        f"what each reader allows all {len(rows)} networks lie on the diagonal, within "
        f"{(rows['loss'] - rows['reach']).abs().max():.1g}; over the last tenth of the steps no loss fell by more than "
        f"{(rows['before'] - rows['loss']).max():.1g}."
    )
    return figure


def separations(rows: pd.DataFrame) -> Figure:
    """How far apart fixed networks put two observations in their best context; rows of ``Frozen``."""
    rows = largest_tier(rows)
    names = {
        ("dense", "distinct"): "dense,\ndistinct texts",
        ("experts", "distinct"): "experts,\ndistinct texts",
        ("dense", "same"): "dense,\nsame text",
        ("experts", "same"): "experts,\nsame text",
        ("adapted", "same"): "adapted,\nsame text",
    }
    figure, ax = plt.subplots(figsize=(6.8, 3.2))
    words = []
    for x, ((network, observed), name) in enumerate(names.items()):
        l1 = rows[(rows["network"] == network) & (rows["observed"] == observed)]["l1"].to_numpy()
        color = BLUE if l1.min() > 0 else MUTED
        ax.plot(x + 0.15 * np.sin(2.4 * np.arange(len(l1))), l1, ".", color=color, alpha=0.35, markersize=4)
        beside(ax, x, l1.max(), f"least {l1.min():.2g}", color, (0, 8), ha="center", fontsize=8)
        words.append(f"{' '.join(name.split())} from {l1.min():.2g} to {l1.max():.2g}")
    ax.axhline(0, **DASHED)
    ax.set(xticks=range(len(names)), ylabel="largest $L_1$ distance of outputs", xlabel="network and what worlds show")
    ax.set_xticklabels(names.values(), fontsize=8)
    ax.margins(y=0.15)
    figure.set_label(f"Largest distance of two worlds' outputs over contexts, untrained networks: {'; '.join(words)}.")
    return figure
