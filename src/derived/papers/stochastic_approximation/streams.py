"""Small transformers on streams: many against one, and chains that only pairs of tokens tell apart (SA-10).

symbol    name      meaning                                                                          axes
y         tokens    texts of T tokens                                                                (models, B, T)
-         bayes     log loss of the exact Bayes mixture on the same texts, expected over the next    (models,)
-         excess    log loss less that of the Bayes mixture, in nats: a mean of KL divergences       (models,)

Every model is trained at each of the rates, from the same start on the same texts; the rate of an arm is the one
of least mean log loss on validation texts of the kind that it trains on, the same number for all. Losses are expected
over the next token, given the texts, by its exact law; test texts are the same for every arm and rate of a model.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from derived.lab import measure, training
from derived.lab.claims import RECORDED, at_most, statistic
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import highest
from derived.lab.plot import (
    BLUE,
    COLOURS,
    DASHED,
    INK,
    RED,
    THEORY,
    beside,
    largest,
    mean_and_reach,
    panel_label,
    plain_log,
)
from derived.lab.rng import stream

from .data.environments import MarkovMixture
from .data.streams import multi_stream, single_stream
from .model.networks import TinyAttention
from .model.predictors import bayes_predictive, component_predictives

#: Two coins, and three chains on {0, 1, 2} with one marginal: step 0, +1 or -1 with probability 0.8.
COINS = MarkovMixture((((0.8, 0.2), (0.8, 0.2)), ((0.2, 0.8), (0.2, 0.8))), (0.5, 0.5))
TURNS = MarkovMixture(
    tuple(tuple(tuple(0.8 if (i + turn) % 3 == j else 0.1 for j in range(3)) for i in range(3)) for turn in range(3)),
    (1 / 3, 1 / 3, 1 / 3),
)


def own_rates(optimiser: torch.optim.Optimizer, factors: Tensor) -> None:
    """Let network r move ``factors[r]`` times as far in each step: Adam's step is in proportion to its rate."""
    held: list[Tensor] = []

    def keep(*_) -> None:
        held[:] = [weight.detach().clone() for group in optimiser.param_groups for weight in group["params"]]

    @torch.no_grad()
    def rescale(*_) -> None:
        weights = (weight for group in optimiser.param_groups for weight in group["params"])
        for weight, before in zip(weights, held, strict=True):
            weight.sub_(before).mul_(factors.view(-1, *[1] * (weight.ndim - 1))).add_(before)

    optimiser.register_step_pre_hook(keep)
    optimiser.register_step_post_hook(rescale)


@dataclass(frozen=True, kw_only=True)
class Streams(Experiment):
    """Models trained side by side at several rates each; a subclass says on what."""

    models: int = 8
    rates: tuple[float, ...] = (3e-3, 1e-2, 3e-2, 6e-2)
    batch: int = 32
    validation: int = 200
    test: int = 400

    dtype: ClassVar = torch.float32

    def train(self, net: TinyAttention, texts, steps: int) -> Tensor:
        """AdamW, warm-up for a tenth of the steps, then a cosine to zero; ``texts(step)`` gives (models, B, T)."""
        optimiser = training.adamw(net, betas=(0.9, 0.98), weight_decay=0.0)
        device, top = net.readout.device, max(self.rates)
        factors = torch.tensor(self.rates, dtype=net.readout.dtype) / top
        own_rates(optimiser, factors.repeat_interleave(self.models).to(device))

        def loss(step: int) -> Tensor:
            tokens = texts(step).repeat(len(self.rates), 1, 1).to(device)
            return training.mean_cross_entropy(net(tokens), tokens)

        def rate(step: int) -> float:
            return top * min(1.0, 10 * (step + 1) / steps) * 0.5 * (1 + math.cos(math.pi * step / steps))

        return training.train(loss, optimiser, steps=steps, rate=rate)

    @torch.no_grad()
    def losses(self, net: TinyAttention, tokens: Tensor, law: Tensor) -> Tensor:
        """-sum_s law(s) ln p(s) at every place, mean over texts: (rates, models, T); ``law`` (models, texts, T, S)."""
        device = net.readout.device
        logits = net(tokens.repeat(len(self.rates), 1, 1).to(device)).double().cpu()
        each = -(law.repeat(len(self.rates), 1, 1, 1) * torch.log_softmax(logits, dim=-1)).sum(dim=-1)
        return each.mean(dim=1).unflatten(0, (len(self.rates), self.models))

    def chosen(self, validation: Tensor) -> Tensor:
        """The rate of least mean validation loss over the models, one for the arm: (rates, 1)."""
        return (torch.arange(len(self.rates)) == validation.mean(dim=1).argmin()).unsqueeze(-1)


def entropy(law: Tensor, of: Tensor) -> Tensor:
    """-sum_s law(s) ln of(s) at every place, mean over texts."""
    return -(law * of.log()).sum(dim=-1).mean(dim=1)


@dataclass(frozen=True, kw_only=True)
class Bernoulli(Streams):
    """SA-10: one layer without positions on streams of two coins. Arms: "many" (each text draws its coin) and "one" (a
    single stream of one coin, cut into consecutive texts; model r has coin r mod 2). Rows: arm, model, rate, chosen,
    validation (loss by which it is chosen), final (mean training loss of the last tenth), excess (over Bayes on
    fresh streams), bayes, own and other (excess over the entropy of the model's coin on texts of that coin, and of the
    other over the Bayes mixture's loss there), parameters.
    """

    steps: int = 200
    context: int = 32

    tiers: ClassVar = {
        "ci": {"models": 2, "steps": 20, "validation": 20, "test": 40},
        "cpu": {},
    }
    tiny: ClassVar = {"steps": 3, "batch": 4, "validation": 4, "test": 6, "context": 6}

    def conditions(self) -> list[dict]:
        return [{"arm": arm} for arm in ("many", "one")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        arm, sizes = condition["arm"], {"num_networks": self.models, "copies": len(self.rates)}
        net = TinyAttention(2, self.context, **sizes, seed=seed, dtype=dtype, device=device)
        texts = self.batch * self.steps + self.validation
        drawn = [self.texts(arm, model, texts, stream(seed, "texts", arm, model)) for model in range(self.models)]
        pool = torch.stack([each.tokens for each in drawn])
        lesson, held = pool[:, : -self.validation], pool[:, -self.validation :]
        losses = self.train(net, lambda step: lesson[:, step * self.batch : (step + 1) * self.batch], self.steps)
        validation = self._on(net, held, self.heard(arm, held))
        columns = {"validation": validation, "chosen": self.chosen(validation)}
        last = losses[:, -max(1, self.steps // 10) :].mean(dim=-1)
        columns["final"] = last.unflatten(0, (len(self.rates), self.models))
        columns |= self.tested(net, seed)
        columns["parameters"] = sum(weight[0].numel() for weight in net.parameters())
        return rows({"rate": self.rates, "model": range(self.models)}, columns)

    def texts(self, arm: str, model: int, count: int, generator: torch.Generator):
        """The texts of a model's life."""
        if arm == "one":
            return single_stream(COINS, model % 2, count, self.context, generator)
        return multi_stream(COINS, count, self.context, generator)

    def heard(self, arm: str, tokens: Tensor) -> Tensor:
        """The law of the next token on an arm's own texts."""
        if arm == "many":
            return bayes_predictive(tokens, COINS.matrices, COINS.weights)
        laws = component_predictives(tokens, COINS.matrices)
        return torch.stack([laws[model % 2, model] for model in range(self.models)])

    def _on(self, net: TinyAttention, tokens: Tensor, law: Tensor) -> Tensor:
        return self.losses(net, tokens, law).mean(dim=-1)  # (rates, models)

    def tested(self, net: TinyAttention, seed: int) -> dict[str, Tensor]:
        """Losses on fresh streams, on the coin with the model's own number, and on the other."""
        generators = [stream(seed, "test", model) for model in range(self.models)]
        mixed = torch.stack([multi_stream(COINS, self.test, self.context, g).tokens for g in generators])
        law = bayes_predictive(mixed, COINS.matrices, COINS.weights)
        bayes = entropy(law, law).mean(dim=-1)
        found = {"excess": self._on(net, mixed, law) - bayes, "bayes": bayes}
        for name, shift in (("own", 0), ("other", 1)):
            coins = [(model + shift) % 2 for model in range(self.models)]
            drawn = [
                single_stream(COINS, k, self.test, self.context, g) for k, g in zip(coins, generators, strict=True)
            ]
            tokens = torch.stack([each.tokens for each in drawn])
            laws = component_predictives(tokens, COINS.matrices)
            law = torch.stack([laws[k, model] for model, k in enumerate(coins)])
            best = law if name == "own" else bayes_predictive(tokens, COINS.matrices, COINS.weights)
            found[name] = self._on(net, tokens, law) - entropy(law, best).mean(dim=-1)
        return found


@dataclass(frozen=True, kw_only=True)
class Markov(Streams):
    """SA-10: two layers with positions on streams of three chains that share their marginal, each text its own chain.
    A network reads the same number of ``tokens`` whatever its context. Rows: context, steps, model, rate, chosen, place
    (of the token), excess, bayes, blind (the excess of ln 3, of a reader of single tokens), parameters.
    """

    contexts: tuple[int, ...] = (8, 16, 32)
    tokens: int = 1_024_000
    rates: tuple[float, ...] = (1e-3, 3e-3, 1e-2, 3e-2)

    tiers: ClassVar = {
        "ci": {"contexts": (8,), "models": 2, "tokens": 2560, "validation": 20, "test": 40},
        "cpu": {},
        "gpu": {
            **{"contexts": (8, 16, 32, 64, 128), "tokens": 6_144_000, "models": 16},
            "rates": (1.6e-3, 2.5e-3, 4e-3, 6.3e-3, 1e-2, 1.6e-2, 2.5e-2, 4e-2),
        },
    }
    tiny: ClassVar = {"tokens": 40, "batch": 4, "validation": 4, "test": 6, "contexts": (5,)}

    def conditions(self) -> list[dict]:
        return [{"context": context} for context in self.contexts]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        context = condition["context"]
        steps, sizes = self.tokens // (self.batch * context), {"num_networks": self.models, "copies": len(self.rates)}
        net = TinyAttention(3, context, layers=2, positions=True, **sizes, seed=seed, dtype=dtype, device=device)

        def texts(name: str, count: int, *which: int) -> Tensor:
            drawn = multi_stream(TURNS, self.models * count, context, stream(seed, name, context, *which)).tokens
            return drawn.view(self.models, count, context)

        self.train(net, lambda step: texts("train", self.batch, step), steps)
        held, tokens = texts("validation", self.validation), texts("test", self.test)
        law = bayes_predictive(held, TURNS.matrices, TURNS.weights)
        validation = self.losses(net, held, law).mean(dim=-1)
        law = bayes_predictive(tokens, TURNS.matrices, TURNS.weights)
        bayes = entropy(law, law)  # (models, T)
        columns = {"excess": self.losses(net, tokens, law) - bayes, "bayes": bayes, "blind": np.log(3) - bayes}
        columns |= {"chosen": self.chosen(validation).unsqueeze(-1), "steps": steps}
        columns["parameters"] = sum(weight[0].numel() for weight in net.parameters())
        return rows({"rate": self.rates, "model": range(self.models), "place": range(context)}, columns)


# Claims: SA-10: trained transformers. Criteria and expected verdicts were written before the run, unless a claim says
# otherwise.
#
# A training cut short at tier ci compares code and judges nothing.

CPU = {"judged_at": RECORDED, "unit": "nats"}

CLAIMS = (
    statistic(
        "SA-10.a",
        r"Trained on many streams of two coins, a one-layer transformer predicts as the exact Bayes mixture does.",
        Bernoulli,
        measure.mean("excess", "chosen and arm == 'many'"),
        "excess log loss over the Bayes mixture on fresh streams, mean of eight models",
        at_most(0.005),
        **CPU,
        horizon="200 steps of 32 texts",
        plain="Trained on many streams, a small transformer is nearly the best predictor there is for the mixture.",
        control=measure.mean("excess", "chosen and arm == 'one'"),
    ),
    statistic(
        "SA-10.b",
        r"Trained on one stream of one coin, a one-layer transformer predicts as that coin does.",
        Bernoulli,
        measure.mean("own", "chosen and arm == 'one'"),
        "excess log loss over the coin's entropy on texts of that coin, mean of eight models",
        at_most(0.005),
        **CPU,
        horizon="200 steps of 32 texts",
        control=measure.mean("own", "chosen and arm == 'many'"),
    ),
    statistic(
        "SA-10.d",
        r"On three chains of one marginal, two layers trained on many streams predict as the Bayes mixture does, at each of several context lengths.",
        Markov,
        measure.mean("excess", "chosen", unit=["model"], by=["context"], decides=highest),
        "excess log loss over the Bayes mixture, mean of the models, the worst context length",
        at_most(0.005),
        **CPU,
        control=measure.mean("blind", "chosen", unit=["model"], by=["context"], decides=highest),
        horizon="contexts of $8$ to $32$ tokens at tier cpu",
    ),
)


# Figures: Small transformers on many streams or one: rows in, a figure with its alt text as label out.
#
# mark              meaning
# blue, orange      trained on many streams, on one
# line in INK       the exact Bayes mixture; dashed: a reader of single tokens

TESTS = {"excess": "fresh streams", "own": "own component", "other": "the other"}


def coins(rows: pd.DataFrame) -> Figure:
    """Excess of each trained model over the exact predictor, at the chosen rate, and the rates; rows of
    ``Bernoulli``."""
    rows = largest(rows)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.4), width_ratios=(1.3, 1))
    words = []
    for place, (arm, color) in enumerate((("many", BLUE), ("one", RED))):
        part = rows[(rows["arm"] == arm) & rows["chosen"]]
        for x, test in enumerate(TESTS):
            spread = np.linspace(-0.08, 0.08, len(part)) + 0.3 * place - 0.15
            left.plot(x + spread, part[test], "o", color=color, markersize=4, alpha=0.8, label=arm if x == 0 else None)
            words.append(f"trained on {arm}, on {TESTS[test]}: {part[test].mean():.4f}")
        swept = rows[rows["arm"] == arm].groupby("rate")["validation"]
        means = swept.mean() - rows.loc[rows["arm"] == arm, "validation"].min()
        right.plot(means.index, means, "o-", color=color)
        best = part["rate"].iloc[0]
        right.plot(best, means[best], "o", color=color, markersize=9, markerfacecolor="none")
    left.set(
        yscale="symlog", xticks=range(len(TESTS)), xticklabels=TESTS.values(), ylabel="excess loss (nats per token)"
    )
    left.set_yscale("symlog", linthresh=0.01)
    left.set_yticks([0, 0.01, 0.1, 1], ["0", "0.01", "0.1", "1"])
    left.set_ylim(min(-0.004, rows[[*TESTS]].min().min()), 3)
    left.axhline(0, **THEORY)
    left.set(xlabel="tested on", xlim=(-0.5, 2.5))
    left.legend(title="streams", fontsize=8, title_fontsize=8, loc="upper center")
    right.set(xscale="log", xlabel="learning rate", ylabel="validation loss over its least (nats)")
    plain_log(right.xaxis, sorted(rows["rate"].unique()))
    panel_label(left, "excess, one point a model")
    panel_label(right, "the choice of the rate")
    figure.set_label(
        f"Mean excess loss of trained models over the exact predictor, in nats per token: {'; '.join(words)}."
    )
    return figure


def contexts(rows: pd.DataFrame) -> Figure:
    """Loss against the place in the context, at the chosen rate of each context; rows of ``Markov``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.4, 3.4))
    words = []
    for color, (context, part) in zip(COLOURS, rows[rows["chosen"]].groupby("context"), strict=False):
        loss = part.assign(loss=part["excess"] + part["bayes"]).groupby("place")["loss"]
        drawn = pd.DataFrame(
            [(place + 1, *mean_and_reach(each)) for place, each in loss], columns=["t", "mean", "reach"]
        )
        style = {"fmt": "o", "color": color, "markersize": 3.5, "elinewidth": 0.8, "label": f"$C={context}$"}
        ax.errorbar(drawn["t"], drawn["mean"], drawn["reach"], **style)
        words.append(f"context {context}: excess {part['excess'].mean():.4f}")
        longest = part
    bayes = longest.groupby("place")["bayes"].mean()
    ax.plot(bayes.index + 1, bayes, **THEORY)
    blind = (longest["bayes"] + longest["blind"]).mean()
    ax.axhline(blind, **DASHED)
    beside(ax, bayes.index[-1] + 1, blind, "reader of single tokens", INK, (0, -9), ha="right", fontsize=9)
    beside(ax, bayes.index[-1] + 1, bayes.iloc[-1], "exact Bayes mixture", INK, (0, -9), ha="right", fontsize=9)
    ax.set(xlabel="place in the context", ylabel="loss (nats per token)", ylim=(bayes.min() - 0.07, None))
    ax.legend(fontsize=8, loc="center right")
    figure.set_label(
        f"Loss of trained models against the place in the context, in nats per token; {'; '.join(words)}. The exact "
        f"mixture falls from {bayes.iloc[0]:.2f} to {bayes.iloc[-1]:.2f}; a reader of single tokens stays at "
        f"{blind:.2f}."
    )
    return figure
