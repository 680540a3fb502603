"""Small vision transformers that train with LayerNorm, and with Derf at equal predicted growth.

column      meaning                                                                        per
stage       pilot: each rate of the grid; judged: the best of them, fresh draws            row
alpha       of every branch, fixed; LayerNorm ignores it                                   replicate
growth      predicted growth, from output to input, of a gradient that all tokens share    replicate
loss        training loss, mean over the last tenth of the steps                           replicate
test_loss   on pictures that were not trained on                                           replicate
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from scipy.optimize import elementwise

from derived.lab import stats, training
from derived.lab.claims import statistic, within
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import Measure, farthest_from, jointly
from derived.lab.rng import stream
from derived.lab.stats import Estimate

from .data.generated import pictures, smooth
from .model.asymptotics import vit_variances
from .model.kernels import kernel_of
from .model.meanfield import propagate
from .model.transformer import RandomTransformer, token_moments
from .model.vit import Vision, patches

ALPHA = {"LayerNorm": 1.0, "small": 0.4, "large": 3.0}  # the fourth arm is "matched"


@dataclass(frozen=True, kw_only=True)
class Trained(Experiment):
    """SP-22: LayerNorm, Derf at the alpha with LayerNorm's predicted growth, and Derf at 0.4 and 3, trained alike.

    The rate is the one of ``rates`` with the least training loss of two networks of their own; then ``replicates`` fresh
    networks, each with classes and pictures of its own, which all arms share. Width 32, two heads, 16 patches; batches of
    32 from eight pictures a step. Rows: depth, arm, stage, rate, replicate, alpha, growth, loss, test_loss.
    """

    depths: tuple[int, ...] = (3, 6, 12)
    rates: tuple[float, ...] = (1.6e-4, 2.5e-4, 4e-4, 6.3e-4, 1e-3, 1.6e-3, 2.5e-3, 4e-3)
    replicates: int = 12
    steps: int = 400
    num_test: int = 512

    small: ClassVar = {"depths": (2,), "rates": (1e-3, 2.5e-3), "replicates": 2, "steps": 2, "num_test": 16}
    tiers: ClassVar = {"ci": small, "cpu": {}}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"depth": depth, "arm": arm} for depth in self.depths for arm in (*ALPHA, "matched")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        tables = [self._trained("pilot", 2, rate, seed, **condition) for rate in self.rates]
        best = int(np.nanargmin([table["loss"].mean(skipna=False) for table in tables]))
        judged = self._trained("judged", self.replicates, self.rates[best], seed, **condition)
        return pd.concat([*tables, judged], ignore_index=True)

    def _trained(self, stage: str, count: int, rate: float, seed: int, depth: int, arm: str) -> pd.DataFrame:
        """``count`` networks at one rate; weights and pictures are the same for every arm and rate."""
        of_pictures = [stream(seed, stage, "pictures", each) for each in range(count)]
        templates = [smooth(10, 1.0, 4.0, each) for each in of_pictures]

        def drawn(num: int) -> tuple[torch.Tensor, torch.Tensor]:
            sets = [pictures(num, *each) for each in zip(templates, of_pictures, strict=True)]
            return torch.stack([patches(images, 8) for images, _ in sets]), torch.stack([labels for _, labels in sets])

        (test, labels), (images, classes) = drawn(self.num_test), drawn(8 * self.steps)
        norm, of_weights = "layernorm" if arm == "LayerNorm" else "erf", stream(seed, stage, "weights")
        shape = {"width": 32, "depth": depth, "num_heads": 2, "num_networks": count}
        model = Vision(test.shape[-1], RandomTransformer(norm=norm, **shape, generator=of_weights), of_weights)
        q, p, _ = (each.mean(dim=-1).numpy() for each in token_moments(model.embed(test).detach()))
        alpha = np.full(count, ALPHA[arm]) if arm in ALPHA else matched(q, p, depth)
        model.blocks.alpha = torch.tensor(alpha, dtype=torch.float32)

        own, of_batches = torch.arange(count)[:, None], stream(seed, stage, "batches")

        def loss(step: int) -> torch.Tensor:
            picked = own, torch.randint(8 * self.steps, (count, 32), generator=of_batches)
            return training.mean_cross_entropy(model(images[picked]), classes[picked])

        adam = training.adamw(model, betas=(0.9, 0.999), weight_decay=0.05, decays=lambda _, weight: weight.ndim == 3)
        losses = training.train(loss, adam, steps=self.steps, rate=lambda step: rate)
        test_loss, _ = training.evaluate((model(shown), of) for shown, of in [(test, labels)])
        columns = {"alpha": alpha, "growth": np.exp(log_growth(q, p, norm, alpha, depth)), "test_loss": test_loss}
        columns["loss"] = losses[:, -max(1, self.steps // 10) :].mean(dim=-1)
        return rows({"stage": stage, "rate": rate, "replicate": range(count)}, columns)


def log_growth(q: np.ndarray, p: np.ndarray, norm: str, alpha: np.ndarray, depth: int) -> np.ndarray:
    """ln of the predicted growth of a gradient that all 16 tokens share."""
    a, s = vit_variances()
    path = propagate(q, p, kernel=kernel_of(norm, alpha), a=a, s=s, n=16, depth=depth, output_gradient="pooled")
    return path.log_J_backward[..., 0]


def matched(q: np.ndarray, p: np.ndarray, depth: int) -> np.ndarray:
    """The alpha at which Derf has LayerNorm's predicted growth, from tokens of second moment q and overlap p."""

    def excess(alpha, q, p):
        return log_growth(q, p, "erf", alpha, depth) - log_growth(q, p, "layernorm", alpha, depth)

    return elementwise.find_root(excess, (0.05, 20.0), args=(q, p)).x


# Claim: LayerNorm against Derf at equal predicted growth (SP-22).


def apart(arm: str, where: str = "stage == 'judged'") -> Measure:
    """Test loss of an arm less that of LayerNorm, in pairs of replicates, at the depth where it reaches farthest from
    zero, jointly; infinite where the best rates are more than one step of the grid apart."""

    def one(case: pd.DataFrame, level: float) -> Estimate:
        table = case.pivot(index="replicate", columns="arm", values=["test_loss", "rate"]).swaplevel(axis="columns")
        found = stats.mean((table[arm] - table["LayerNorm"])["test_loss"], level)
        steps = abs(np.log10(table[arm, "rate"] / table["LayerNorm", "rate"]).iloc[0]) / 0.2  # a step is 10^0.2 = 1.6
        return found if steps < 1.5 else Estimate(np.inf, found.n, np.inf, np.inf)

    return jointly(one, ["depth"], farthest_from(0.0), where)


CLAIMS = (
    statistic(
        "SP-22",
        r"Small vision transformers of 3, 6 and 12 blocks with LayerNorm, and with Derf at the $\alpha$ that has LayerNorm's "
        "predicted growth, have best rates at most a factor of 1.6 apart, and there the same test loss within 0.1 nats.",
        Trained,
        apart("matched"),
        "test loss with Derf less that with LayerNorm, in pairs of networks, at the depth where it reaches farthest from "
        "zero, jointly over depths; infinite if the best rates are more than one step apart",
        within(0, 0.1),
        unit="nats",
        plain="At equal predicted growth small networks with LayerNorm and with Derf train alike.",
        control=apart("large", "stage == 'judged' and depth == 12"),
        judged_at=("cpu",),
    ),
)
