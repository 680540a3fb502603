"""Trained models and their untrained twins: which clock do real shapes keep, and do trained tokens collapse?

m is the mean overlap of different tokens, and m_theory what ``hot_block`` makes of the tokens that enter: fresh weights
in every layer, infinite width, hot attention.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from derived.lab.claims import RECORDED, at_least, at_most, statistic, within
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import Measure, by_draw, chosen, mean, power, values
from derived.lab.plot import BLUE, GREEN, ORANGE, RED, THEORY, beside, largest, panel_label, plain_log, points
from derived.lab.real import models, texts
from derived.lab.rng import stream
from derived.lab.stats import Estimate
from derived.lab.stats import mean as interval

from .chains import off_diagonal
from .model.chain import overlaps
from .model.heads import equiangular_tokens, layer_step, matched_law, normalise
from .model.overlaps import hot_block


@dataclass(frozen=True, kw_only=True)
class OneLayer(Experiment):
    """The layers until orthogonal tokens have the overlap 1/2: fresh weights in every layer, or one layer for all,
    which is then the same for all steps.

    Rows: weights, eta, replicate, layers (the first crossing, between two layers by a straight line; missing where the
    overlap stayed below).
    """

    d: int = 64
    n: int = 8
    logit_std: float = 1.0
    etas: tuple[float, ...] = (0.2, 0.1, 0.05)
    replicates: int = 48

    tiers: ClassVar = {"ci": {"etas": (0.2, 0.1)}, "cpu": {}}
    tiny: ClassVar = {"d": 16, "n": 4, "replicates": 4, "etas": (0.4, 0.2)}

    def conditions(self) -> list[dict]:
        return [{"weights": weights, "eta": eta} for weights in ("fresh", "shared") for eta in self.etas]

    @torch.no_grad()
    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        weights, eta = condition["weights"], condition["eta"]
        most = round(12 / eta**2 if weights == "fresh" else 60 / eta)
        law, g = matched_law(self.d, self.logit_std), stream(seed, "one layer", weights, device=device)
        X = equiangular_tokens(self.n, self.d, 0.0, replicas=self.replicates).to(device, dtype)
        heads, reached, before = None, np.full(self.replicates, np.nan), np.zeros(self.replicates)
        for layer in range(1, most + 1):
            if heads is None or weights == "fresh":
                heads = law.draw(g, (self.replicates, 1), beta=1.0, device=device, dtype=dtype)
            X = layer_step(X, eta, heads)
            now = off_diagonal(overlaps(X)).mean(dim=-1).cpu().numpy()
            crossing = np.isnan(reached) & (now >= 0.5)
            reached[crossing] = layer - 1 + ((0.5 - before) / (now - before))[crossing]
            before = now
            if not np.isnan(reached).any():
                break
        return rows({"replicate": range(self.replicates)}, {"layers": reached})


def mean_overlap(states: Tensor) -> float:
    """The mean overlap of different tokens (1, n, d)."""
    return off_diagonal(overlaps(normalise(states[0].double()))).mean().item()


def predicted(states: Tensor, blocks: int, spread: float, inner: int) -> list[float]:
    """The mean overlap after each block, from the tokens (1, n, d) that enter; ``spread`` is that of a weight."""
    gram, variance = overlaps(normalise(states[0].double())), spread**2 * states.shape[-1]
    found = [off_diagonal(gram).mean().item()]
    for _ in range(blocks):
        gram = hot_block(gram, variance**2, spread**2 * inner, variance)
        found.append(off_diagonal(gram).mean().item())
    return found


@dataclass(frozen=True, kw_only=True)
class Sentences(Experiment):
    """A BERT on passages of novels, trained and as it was before its training, a draw of weights for each passage.

    Rows: weights (trained, fresh), replicate (a passage), layer, m, m_theory (for fresh weights).
    """

    model: str = "minilm"
    passages: int = 64

    needs: ClassVar = ("minilm", "austen")
    tiers: ClassVar = {"ci": {"passages": 8}, "cpu": {}}
    tiny: ClassVar = {"passages": 2}
    deterministic: ClassVar = {"m_theory": 1e-3}

    def conditions(self) -> list[dict]:
        return [{"weights": weights} for weights in ("trained", "fresh")]

    @torch.no_grad()
    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        trained, found = models.load(self.model), []
        for index, text in enumerate(passages(self.passages)):
            one = trained
            if condition["weights"] == "fresh":
                one = models.fresh(trained, stream(seed, "untrained", index))
            states = one.model(one.tokens(text), output_hidden_states=True).hidden_states
            found.append(_courses(states, one.model.config, condition["weights"] == "fresh"))
        return _rows(found)


def passages(count: int) -> list[str]:
    """Paragraphs of 300 to 600 characters, as many from each novel of Jane Austen."""
    novels = texts.austen()
    share = -(-count // len(novels))
    each = [[part for part in novel.split("\n\n") if 300 < len(part) < 600][5 : 5 + share] for novel in novels.values()]
    return [part.replace("\n", " ") for group in zip(*each, strict=True) for part in group][:count]


@dataclass(frozen=True, kw_only=True)
class Reactions(Experiment):
    """The ALBERT of RXNMapper, which passes twelve times through one shared layer, on the reactions of its own tests:
    trained; with the trained embeddings and a fresh layer (grafted); before its training (shared); and with a layer of
    its own, as fresh, for every pass.

    Rows: weights (trained, grafted, shared, fresh), draw, replicate (a reaction), layer (a pass), m, m_theory (fresh).
    """

    model: str = "rxnmapper"
    draws: int = 24

    needs: ClassVar = ("rxnmapper",)
    tiers: ClassVar = {"ci": {"draws": 2}, "cpu": {}}
    tiny: ClassVar = {"draws": 1}
    deterministic: ClassVar = {"m_theory": 1e-3}

    def conditions(self) -> list[dict]:
        untrained = ("grafted", "shared", "fresh")
        arms = [{"weights": weights, "draw": draw} for weights in untrained for draw in range(self.draws)]
        return [{"weights": "trained", "draw": 0}, *arms]

    @torch.no_grad()
    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        weights, draw = condition["weights"], condition["draw"]
        trained, found = models.load(self.model), []
        for index, reaction in enumerate(texts.reactions()):

            def again(layer: int, index: int = index):
                return models.fresh(trained, stream(seed, "drawn again", weights, draw, index, layer)).model.albert

            body = trained.model.albert if weights in ("trained", "grafted") else again(0)
            one = again(0) if weights == "grafted" else body
            layers = again if weights == "fresh" else lambda layer, one=one: one
            states = _passes(body, layers, trained.tokens(reaction))
            found.append(_courses(states, body.config, weights == "fresh"))
        return _rows(found)


def _passes(body, layers: Callable[[int], object], tokens: Tensor) -> list[Tensor]:
    """The tokens that enter an ALBERT, and after each pass, through the layer of ``layers(pass)``."""
    states = [body.encoder.embedding_hidden_mapping_in(body.embeddings(tokens))]
    for layer in range(body.config.num_hidden_layers):
        [shared] = layers(layer).encoder.albert_layer_groups[0].albert_layers
        after = shared(states[-1])
        states.append(after[0] if isinstance(after, tuple) else after)
    return states


def _courses(states: list[Tensor], config, fresh: bool) -> tuple[list[float], list[float]]:
    """Mean overlaps after each layer, measured, and predicted where weights are fresh."""
    theory = [np.nan] * len(states)
    if fresh:
        theory = predicted(states[0], len(states) - 1, config.initializer_range, config.intermediate_size)
    return [mean_overlap(each) for each in states], theory


def _rows(found: list[tuple[list[float], list[float]]]) -> pd.DataFrame:
    measured, theory = (np.array(each) for each in zip(*found, strict=True))
    index = {"replicate": range(measured.shape[0]), "layer": range(measured.shape[1])}
    return rows(index, {"m": measured, "m_theory": theory})


# Claims: Claims on real shapes and real weights: the clock of one shared layer, an untrained model, and a trained one
# (HT-24).
#
# Evidence, criterion and expected verdicts were written before the run; a pilot of other draws fixed the sizes.


def rise_beyond(one: tuple[str, str], other: tuple[str, str]) -> Measure:
    """How much further the mean overlap of a reaction rises in one arm than in the other: each (weights, condition)."""

    def rise(rows: pd.DataFrame, weights: str, where: str) -> pd.Series:
        arm = chosen(rows, f"weights == '{weights}' and {where}")
        table = by_draw(values(arm, "m"), arm, ["replicate", "layer"]).mean().unstack("layer")
        return table[table.columns.max()] - table[table.columns.min()]

    def measure(rows: pd.DataFrame) -> Estimate:
        return interval(rise(rows, *one) - rise(rows, *other))

    return measure


def motionless(rows: pd.DataFrame) -> Estimate:
    """As if the tokens had not moved: their overlap at the start less the recurrence at the end."""
    start, end = (chosen(rows, f"weights == 'fresh' and layer == layer.{end}()") for end in ("min", "max"))
    return interval(values(start, "m").to_numpy() - values(end, "m_theory").to_numpy())


ALL, SOME, OTHERS = "draw >= 0", "draw % 2 == 0", "draw % 2 == 1"

CLAIMS = (
    statistic(
        "HT-24.a",
        r"Where one layer is drawn once and used for all passes, the passes to overlap $\frac12$ grow like $\eta^{-1}$, and "
        r"not like the $\eta^{-2}$ of fresh layers.",
        OneLayer,
        power("layers", "eta", "weights == 'shared'"),
        r"$n=8$, $\lambda=1$, slope of ln passes in $\ln\eta$ with one shared layer",
        within(-1, 0.15),
        unit=r"power of $\eta$",
        control=power("layers", "eta", "weights == 'fresh'"),
        horizon=r"$\eta$ from $0.2$ to $0.05$",
    ),
    statistic(
        "HT-24.b",
        r"Before its training MiniLM moves its tokens as the clock says: after six layers the mean overlap of a passage is "
        r"that of the recurrence at infinite width, which has no free constant.",
        Sentences,
        mean("m - m_theory", "weights == 'fresh' and layer == layer.max()"),
        "passages of novels, mean overlap after the last layer less the recurrence",
        within(0, 0.012),
        unit="mean overlap",
        where="half of a block is not seen: without the MLP the recurrence would pass, too",
        judged_at=RECORDED,
        control=motionless,
        made_of="real data",
    ),
    statistic(
        "HT-24.c",
        r"Twelve passes through the trained layer of a real ALBERT bring the tokens of a reaction less near to each other "
        r"than twelve passes through the same layer before its training, from the same tokens.",
        Reactions,
        rise_beyond(("trained", ALL), ("grafted", ALL)),
        "rise of the mean overlap, trained less untrained layer, both from the trained tokens",
        at_most(-0.1),
        unit="mean overlap",
        where="five reactions from the tests of its own package, one trained model",
        control=rise_beyond(("grafted", SOME), ("grafted", OTHERS)),
        made_of="real weights",
        judged_at=RECORDED,
        scale={"cpu": "ours"},
    ),
    statistic(
        "HT-24.d",
        r"Untrained, in the shape of a real ALBERT, one layer used twelve times brings the tokens nearer to each other than "
        r"twelve layers, each drawn anew.",
        Reactions,
        rise_beyond(("shared", ALL), ("fresh", ALL)),
        "rise of the mean overlap, one shared layer less fresh layers",
        at_least(0.1),
        unit="mean overlap",
        control=rise_beyond(("fresh", SOME), ("fresh", OTHERS)),
        made_of="real data",
        judged_at=RECORDED,
        scale={"cpu": "ours"},
    ),
)


# Figures: The figure of real models: their tokens before and after training, on the clock's prediction and off it.

ARMS = {"trained": (BLUE, "o"), "fresh": (GREEN, "s"), "shared": (RED, "D"), "grafted": (ORANGE, "^")}
WORDS = {"trained": "trained", "fresh": "untrained, fresh layers", "shared": "untrained, one layer"}
WORDS |= {"grafted": "trained tokens, untrained layer"}


def courses(reactions: pd.DataFrame, sentences: pd.DataFrame) -> Figure:
    """Mean overlap over depth, ALBERT on reactions and MiniLM on passages; rows of ``Reactions``, ``Sentences``."""
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.3), sharey=True)
    said = []
    for ax, title, table in zip(axes, ("ALBERT on reactions", "MiniLM on novels"), (reactions, sentences), strict=True):
        rows = largest(table)
        theory = rows[rows["weights"] == "fresh"].groupby("layer")["m_theory"].mean()
        ax.plot(theory.index, theory, **THEORY)
        for name, part in rows.groupby("weights", sort=False):
            color, marker = ARMS[name]
            one = part.groupby(["recorded", "replicate", "layer"], as_index=False)["m"].mean()
            drawn = points(ax, one, "layer", "m", color, marker)
            beside(ax, drawn["layer"].iloc[-1], drawn["value"].iloc[-1], WORDS[name], color, fontsize=8)
            said.append(f"{title}, {WORDS[name]}: from {drawn['value'].iloc[0]:.2f} to {drawn['value'].iloc[-1]:.2f}")
        panel_label(ax, title)
        ax.set(xlabel="layer", xlim=(0, rows["layer"].max() * 1.75))
    axes[0].set(ylabel="mean overlap of different tokens")
    figure.set_label(f"Mean overlap of different tokens over depth. {'; '.join(said)}. The line is the recurrence.")
    return figure


def passes(rows: pd.DataFrame) -> Figure:
    """Layers to overlap one half over the step, for fresh layers and one shared layer; rows of ``OneLayer``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(5.6, 3.2))
    said = []
    for name, part in rows.groupby("weights", sort=False):
        color, marker = ARMS[name]
        drawn = points(ax, part, "eta", "layers", color, marker)
        first, last = drawn.iloc[-1], drawn.iloc[0]
        power = 1 if name == "shared" else 2
        ax.plot(
            [first["eta"], last["eta"]],
            [first["value"], first["value"] * (first["eta"] / last["eta"]) ** power],
            **THEORY,
        )
        beside(ax, first["eta"], first["value"], {"fresh": "fresh layers", "shared": "one shared layer"}[name], color)
        said.append(
            f"{name}: {last['value']:.0f} layers at step {last['eta']:g}, {first['value']:.0f} at {first['eta']:g}"
        )
    ax.set(
        xscale="log", yscale="log", xlabel=r"step $\eta$", ylabel=r"layers to overlap $\frac{1}{2}$", xlim=(None, 0.5)
    )
    plain_log(ax.xaxis, sorted(rows["eta"].unique()))
    figure.set_label(f"Layers to overlap one half over the step, with lines of slope -2 and -1. {'; '.join(said)}.")
    return figure
