"""What trained networks reach and keep: the loss of an imposed code, and the hidden states of worlds that are alike (TE-13)."""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from derived.lab import stats
from derived.lab.claims import RECORDED, at_most, computed, on_page, statistic
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import Measure, chosen, largest
from derived.lab.plot import BLUE, DASHED, GREEN, MUTED, RED, THEORY, beside, panel_label
from derived.lab.plot import largest as largest_tier
from derived.lab.rng import stream

from .data.ecologies import random_ecology
from .fits import build, falling, fit
from .model.ecology import FiniteEcology
from .model.gpt import GPTSize
from .model.partitions import set_partitions


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


CLASSES = (0, 0, 1, 1, 2, 2)


@dataclass(frozen=True, kw_only=True)
class Quotient(Experiment):
    """TE-13.f: does a network forget what its loss does not ask for? Six worlds in three classes of equal
    distributions, each shown by its own token after the context; trained on the exact expected loss, with and without
    weight decay.

    Arms: "classes", and the control "all different", where six worlds have six distributions and the same three pairs
    are compared. Rows: arm, decay, replicate, at (start, end), states (mean distance of last hidden states within the
    pairs over that between them, in the mean over contexts), outputs (the same of what the network says), excess (its
    loss less the least one).
    """

    replicates: int = 16
    contexts: int = 3
    tokens: int = 5
    width: int = 16
    steps: int = 1500
    rate: float = 0.02
    decays: tuple[float, ...] = (0.0, 0.1)

    tiers: ClassVar = {"ci": {"replicates": 2, "steps": 60}, "cpu": {}}
    tiny: ClassVar = {"replicates": 2, "steps": 60}
    dtype: ClassVar = torch.float64

    def conditions(self) -> list[dict]:
        return [{"arm": arm, "decay": decay} for arm in ("classes", "all different") for decay in self.decays]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        worlds = len(CLASSES)
        classes = CLASSES if condition["arm"] == "classes" else None
        facts = {"n": worlds, "C": self.contexts, "V": self.tokens, "classes": classes, "uniform": True}
        ecologies = [
            random_ecology(generator=stream(seed, "quotient", replicate), **facts)
            for replicate in range(self.replicates)
        ]
        joint = np.stack([ecology.weighted.transpose(1, 0, 2) for ecology in ecologies])  # K, contexts, worlds, tokens
        weights = torch.as_tensor(joint, dtype=dtype, device=device).flatten(1, 2)
        size = GPTSize(vocabulary=self.contexts + worlds, width=self.width, heads=2, block=2)
        model = build(size, self.replicates, seed, device, dtype, "quotient")
        ids = torch.cartesian_prod(torch.arange(self.contexts), self.contexts + torch.arange(worlds)).to(device)
        said = lambda: model(ids)[:, :, -1, : self.tokens].log_softmax(dim=-1)  # noqa: E731
        loss = lambda step: -(weights * said()).sum(dim=(1, 2))  # noqa: E731
        floor = torch.tensor([ecology.entropy_floor() for ecology in ecologies], dtype=torch.float64)

        @torch.no_grad()
        def measured(at: str) -> pd.DataFrame:
            shape = (self.contexts, worlds)
            columns = {
                "states": alike(model.states(ids)[:, :, -1].unflatten(1, shape)),
                "outputs": alike(said().exp().unflatten(1, shape)),
                "excess": loss(0).double().cpu() - floor,
            }
            return rows({"replicate": range(self.replicates)}, columns).assign(at=at)

        start = measured("start")
        fit(model, loss, steps=self.steps, rate=falling(self.rate, self.steps), decay=condition["decay"])
        return pd.concat([start, measured("end")], ignore_index=True)


def alike(points: Tensor) -> Tensor:
    """Mean distance within the pairs of ``CLASSES`` over that between them, (K, contexts, worlds, d) -> (K,).

    >>> alike(torch.tensor([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]).view(1, 1, 6, 1)).round(decimals=3)
    tensor([0.3750])
    """
    apart = torch.cdist(points, points)
    classes = torch.tensor(CLASSES, device=points.device)
    same = classes[:, None] == classes
    within = apart[..., same & ~torch.eye(len(classes), dtype=torch.bool, device=points.device)].mean(dim=-1)
    return (within / apart[..., ~same].mean(dim=-1)).mean(dim=-1).cpu()


# Claims: TE-13: what networks reach where a code is imposed, and what they keep. Criteria and expected verdicts were
# written before the run, unless a claim says otherwise.


def nearer_by_decay(arm: str) -> Measure:
    """The logarithm of the ratio of hidden states with weight decay less that without it, network by network."""

    def measure(rows: pd.DataFrame) -> stats.Estimate:
        end = chosen(rows, f"arm == '{arm}' and at == 'end'").pivot(index="replicate", columns="decay", values="states")
        return stats.mean(np.log(end[end.columns.max()]) - np.log(end[0.0]))

    return measure


CLAIMS = (
    on_page("TE-13.c", source="paper", where="Propositions 17 to 28, 40"),
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
    statistic(
        "TE-13.f",
        "In small transformers trained on six worlds of three classes, weight decay brings the last hidden states of worlds of one class nearer together, in units of their distance from other classes.",
        Quotient,
        nearer_by_decay("classes"),
        "logarithm of the ratio of distances with weight decay less that without it, network by network",
        at_most(0),
        unit="in logarithms",
        control="the same network without decay is subtracted, so that decay that does nothing scores zero, the end of the range",
        comparison=("six worlds of six laws", nearer_by_decay("all different")),
        judged_at=RECORDED,
    ),
)


# Figures: What networks reach and keep: rows in, a figure with its alt text as label out.
#
# mark            meaning
# points          one trained network (a code of one ecology, or six worlds in three classes)
# line in INK     the loss that the reader allows

ARMS = {
    "imposed": (BLUE, "o", "context and cell"),
    "blind": (GREEN, "s", "cell alone"),
    "scrambled": (RED, "^", "context and a random cell"),
}
DOTS = {"markersize": 3.5, "alpha": 0.7}
KEPT = {("states", 0.0): "states,\nno decay", ("states", 0.1): "states,\ndecay", ("outputs", 0.0): "outputs"}


def trained_against_optimum(imposed: pd.DataFrame, kept: pd.DataFrame) -> Figure:
    """Trained loss above the lower bound against the excess of the code that was imposed, and how near worlds of one
    class are at the end; rows of ``Imposed`` and ``Quotient``."""
    imposed, kept = largest_tier(imposed), largest_tier(kept)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.4))
    words = []
    for arm, (color, marker, name) in ARMS.items():
        part = imposed[imposed["arm"] == arm]
        x, y = (part[each] - part["floor"] for each in ("target", "loss"))
        left.plot(x, y, marker, color=color, label=name, **DOTS)
        words.append(f"{name}: at most {(part['loss'] - part['target']).abs().max():.2g} from the diagonal")
    end = float(np.max(imposed["loss"] - imposed["floor"]))
    left.plot([0, end], [0, end], **THEORY)
    left.set(xlabel=r"excess $\Delta(p)$ of the imposed code (nats)", ylabel="trained loss above the bound (nats)")
    left.legend(fontsize=8, loc="lower right")
    panel_label(left, "A given code reaches its own bound,\nif the reader sees it")
    for x, ((column, decay), _) in enumerate(KEPT.items()):
        for arm, color, shift in (("classes", BLUE, -0.12), ("all different", MUTED, 0.12)):
            part = kept[(kept["arm"] == arm) & (kept["decay"] == decay) & (kept["at"] == "end")][column]
            beside_it = x + shift + 0.04 * np.sin(2.4 * np.arange(len(part)))
            right.plot(beside_it, part.clip(lower=1e-9), "o", color=color, **DOTS)
            words.append(f"{arm}, {column} at decay {decay:g}: {part.mean():.2g}")
    right.axhline(1, **DASHED)
    beside(right, 2.5, 1, "worlds that differ", MUTED, (0, 8), ha="right", fontsize=8)
    right.set(yscale="log", xticks=range(len(KEPT)), xlim=(-0.5, 2.5), ylabel="within a class, over between classes")
    right.set_xlabel("what is compared at the end")
    right.set_xticklabels(KEPT.values(), fontsize=8)
    panel_label(right, "Outputs of one class coincide;\nstates need not")
    figure.set_label(
        f"Left: trained loss above the bound against the excess of the code. Right: distances within classes over those between them. {'; '.join(words)}."
    )
    return figure
