"""Small transformers on streams of two coins: trained on many streams, or on one (SA-10).

symbol    name      meaning                                                                          axes
y         tokens    texts of T tokens                                                                (models, B, T)
-         bayes     log loss of the exact Bayes mixture on the same texts, expected over the next    (models,)
-         excess    log loss less that of the Bayes mixture, in nats: a mean of KL divergences       (models,)

Every model is trained at each of the rates, from the same start on the same texts; the rate of an arm is the one
of least mean log loss on validation texts of the kind that it trains on, the same number for all. Losses are expected
over the next token, given the texts, by its exact distribution; test texts are the same for every arm and rate of a
model.
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
from derived.lab.plot import BLUE, RED, THEORY, largest, panel_label, plain_log
from derived.lab.rng import stream

from .data import Coins, Tokens, multi_stream, single_stream
from .model.networks import TinyAttention
from .model.predictors import bayes_predictive, both

COINS = Coins((0.2, 0.8))


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


def entropy(of: Tensor, under: Tensor) -> Tensor:
    """-sum_s of(s) ln under(s) at every place, mean over texts."""
    return -(of * under.log()).sum(dim=-1).mean(dim=1)


@dataclass(frozen=True, kw_only=True)
class Bernoulli(Experiment):
    """SA-10: one layer without positions on streams of two coins. Arms: "many" (each text draws its coin) and "one" (a
    single stream of one coin, cut into consecutive texts; model r has coin r mod 2). Rows: arm, model, rate, chosen,
    validation (loss by which it is chosen), final (mean training loss of the last tenth), excess (over Bayes on
    fresh streams), bayes, own and other (excess over the entropy of the model's coin on texts of that coin, and of the
    other over the Bayes mixture's loss there), parameters.
    """

    models: int = 8
    rates: tuple[float, ...] = (3e-3, 1e-2, 3e-2, 6e-2)
    steps: int = 200
    batch: int = 32
    validation: int = 200
    test: int = 400
    context: int = 32

    tiers: ClassVar = {
        "ci": {"models": 2, "steps": 20, "validation": 20, "test": 40},
        "cpu": {},
    }
    tiny: ClassVar = {"steps": 3, "batch": 4, "validation": 4, "test": 6, "context": 6}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"arm": arm} for arm in ("many", "one")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        arm, sizes = condition["arm"], {"num_networks": self.models, "copies": len(self.rates)}
        net = TinyAttention(2, self.context, **sizes, seed=seed, dtype=dtype, device=device)
        texts = self.batch * self.steps + self.validation
        drawn = [self.texts(arm, model, texts, stream(seed, "texts", arm, model)) for model in range(self.models)]
        pool = torch.stack([each.tokens for each in drawn])
        lesson, held = pool[:, : -self.validation], pool[:, -self.validation :]
        losses = self.train(net, lambda step: lesson[:, step * self.batch : (step + 1) * self.batch])
        validation = self.losses(net, held, self.heard(arm, held))
        best = validation.mean(dim=1).argmin()
        columns = {"validation": validation, "chosen": (torch.arange(len(self.rates)) == best).unsqueeze(-1)}
        last = losses[:, -max(1, self.steps // 10) :].mean(dim=-1)
        columns["final"] = last.unflatten(0, (len(self.rates), self.models))
        columns |= self.tested(net, seed)
        columns["parameters"] = sum(weight[0].numel() for weight in net.parameters())
        return rows({"rate": self.rates, "model": range(self.models)}, columns)

    def train(self, net: TinyAttention, texts) -> Tensor:
        """AdamW, warm-up for a tenth of the steps, then a cosine to zero; ``texts(step)`` gives (models, B, T)."""
        optimiser = training.adamw(net, betas=(0.9, 0.98), weight_decay=0.0)
        device, top = net.readout.device, max(self.rates)
        factors = torch.tensor(self.rates, dtype=net.readout.dtype) / top
        own_rates(optimiser, factors.repeat_interleave(self.models).to(device))

        def loss(step: int) -> Tensor:
            tokens = texts(step).repeat(len(self.rates), 1, 1).to(device)
            return training.mean_cross_entropy(net(tokens), tokens)

        def rate(step: int) -> float:
            return top * min(1.0, 10 * (step + 1) / self.steps) * 0.5 * (1 + math.cos(math.pi * step / self.steps))

        return training.train(loss, optimiser, steps=self.steps, rate=rate)

    @torch.no_grad()
    def losses(self, net: TinyAttention, tokens: Tensor, truth: Tensor) -> Tensor:
        """-sum_s truth(s) ln p(s), mean over texts and places: (rates, models); ``truth`` (models, texts, T, 2)."""
        logits = net(tokens.repeat(len(self.rates), 1, 1).to(net.readout.device)).double().cpu()
        each = -(truth.repeat(len(self.rates), 1, 1, 1) * torch.log_softmax(logits, dim=-1)).sum(dim=-1)
        return each.mean(dim=1).unflatten(0, (len(self.rates), self.models)).mean(dim=-1)

    def texts(self, arm: str, model: int, count: int, generator: torch.Generator) -> Tokens:
        """The texts of a model's life."""
        if arm == "one":
            return single_stream(COINS, model % 2, count, self.context, generator)
        return multi_stream(COINS, count, self.context, generator)

    def heard(self, arm: str, tokens: Tensor) -> Tensor:
        """The distribution of the next token on an arm's own texts."""
        return self.mixture(tokens) if arm == "many" else self.coin(tokens, 0)

    def mixture(self, tokens: Tensor) -> Tensor:
        """The Bayes mixture's, at every place."""
        return bayes_predictive(tokens, COINS.biases, COINS.weights)

    def coin(self, tokens: Tensor, shift: int) -> Tensor:
        """That of coin (r + shift) mod 2 on the texts of model r."""
        biases = [COINS.biases[(model + shift) % 2] for model in range(self.models)]
        return both(torch.tensor(biases, dtype=torch.float64).view(-1, 1, 1).expand(tokens.shape))

    def tested(self, net: TinyAttention, seed: int) -> dict[str, Tensor]:
        """Losses on fresh streams, on the coin with the model's own number, and on the other."""
        generators = [stream(seed, "test", model) for model in range(self.models)]
        mixed = torch.stack([multi_stream(COINS, self.test, self.context, g).tokens for g in generators])
        truth = self.mixture(mixed)
        bayes = entropy(truth, truth).mean(dim=-1)
        found = {"excess": self.losses(net, mixed, truth) - bayes, "bayes": bayes}
        for name, shift in (("own", 0), ("other", 1)):
            coins = [(model + shift) % 2 for model in range(self.models)]
            drawn = [
                single_stream(COINS, k, self.test, self.context, g) for k, g in zip(coins, generators, strict=True)
            ]
            tokens = torch.stack([each.tokens for each in drawn])
            truth = self.coin(tokens, shift)
            best = truth if name == "own" else self.mixture(tokens)
            found[name] = self.losses(net, tokens, truth) - entropy(truth, best).mean(dim=-1)
        return found


EXPERIMENTS = (Bernoulli,)

# Claims: criteria and expected verdicts were written before the run; a training cut short judges nothing -----------

CPU = {"judged_at": RECORDED, "unit": "nats", "horizon": "200 steps of 32 texts"}
GUESS = math.log(2) + 0.8 * math.log(0.8) + 0.2 * math.log(0.2)  # what an even guess loses on either coin

CLAIMS = (
    statistic(
        "SA-10.a",
        r"Trained on many streams of two coins, a one-layer transformer predicts as the exact Bayes mixture does.",
        Bernoulli,
        measure.mean("excess", "chosen and arm == 'many'"),
        "excess log loss over the Bayes mixture on fresh streams, mean of eight models",
        at_most(0.005),
        **CPU,
        plain="Trained on many streams, a small transformer is nearly the best predictor there is for the mixture.",
        control=measure.mean(f"{math.log(2)} - bayes", "chosen and arm == 'many'"),  # an even guess
    ),
    statistic(
        "SA-10.b",
        r"Trained on one stream of one coin, a one-layer transformer predicts as that coin does.",
        Bernoulli,
        measure.mean("own", "chosen and arm == 'one'"),
        "excess log loss over the coin's entropy on texts of that coin, mean of eight models",
        at_most(0.005),
        **CPU,
        control=measure.mean(f"{GUESS} + 0 * own", "chosen and arm == 'one'"),  # an even guess
    ),
)


# Figure: rows in, a figure with its alt text as label out -------------------------------------------------------------

TESTS = {"excess": "fresh streams", "own": "own coin", "other": "the other coin"}


def coins(rows: pd.DataFrame) -> Figure:
    """Excess of each trained model over the exact predictor, at the chosen rate, and the rates; rows of
    ``Bernoulli``."""
    rows = largest(rows)
    figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.5), width_ratios=(1.4, 1))
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
    left.set_yscale("symlog", linthresh=0.01)
    left.set(xticks=range(len(TESTS)), xticklabels=TESTS.values(), ylabel="excess loss (nats per token)")
    left.set_yticks([0, 0.01, 0.1, 1], ["0", "0.01", "0.1", "1"])
    left.set_ylim(min(-0.004, rows[[*TESTS]].min().min()), 3)
    left.axhline(0, **THEORY)
    left.set(xlabel="tested on", xlim=(-0.5, 2.5))
    left.legend(title="streams", loc="center right")
    right.set(xscale="log", xlabel="learning rate", ylabel="validation loss above its least")
    plain_log(right.xaxis, sorted(rows["rate"].unique()))
    panel_label(left, "one stream: lost on the other coin")
    panel_label(right, "the choice of the rate (ring)")
    figure.set_label(
        f"Mean excess loss of trained models over the exact predictor, in nats per token: {'; '.join(words)}."
    )
    return figure
