"""Whole texts of Markov chains with large vocabularies."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import matplotlib.pyplot as plt
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from derived.lab import measure, stats
from derived.lab.claims import at_least, on_page, statistic
from derived.lab.experiment import Experiment
from derived.lab.plot import beside, shades
from derived.lab.rng import stream
from derived.lab.stats import Estimate

from .data.chains import zipf_chains
from .matching import rule_of
from .model.divergences import divergence
from .model.exact import acceptance_rate, output_law
from .model.generate import next_laws
from .model.theory import num_overdrafted

#: How laws are made from a chain's rows, for both models alike.
SHAPES = MappingProxyType({"plain": {}, "truncated": {"temperature": 0.6, "top_p": 0.95}})


@dataclass(frozen=True, kw_only=True)
class MarkovPairs(Experiment):
    """CAC-11.d: what a text of a chain on V tokens pays, exactly, when each of its tokens is drafted.

    Texts begin after a class that is uniform and have ``tokens`` tokens. Both models at temperature 1 ("plain"), or
    both at 0.6 with the fewest tokens that reach 0.95 ("truncated"). Rows: V, laws, replicate; per token of the text:
    acceptance, exact_acceptance (SpS), overdrafted (V_+), kl (nats; times ``tokens`` it is the KL of the text).
    """

    replicates: int = 16
    sizes: tuple[int, ...] = (16, 64, 256, 1024)
    delta: float = 0.01
    classes: int = 16
    tokens: int = 64

    tiers: ClassVar = {"ci": {"sizes": (64, 256)}, "cpu": {}}
    deterministic: ClassVar = {"kl": 1e-9, "acceptance": 1e-9, "exact_acceptance": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"V": V} for V in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        V, found = condition["V"], []
        for replicate in range(self.replicates):
            chains = zipf_chains(V, self.classes, stream(seed, "zipf", V, replicate))
            for name, shape in SHAPES.items():
                p, q = (next_laws(each.to(device).log(), **shape) for each in chains)
                found.append({"V": V, "laws": name, "replicate": replicate, **self._spent(p, q)})
        return pd.DataFrame(found)

    def _spent(self, p: Tensor, q: Tensor) -> dict[str, float]:
        rule, exact = (rule_of("cactus", delta) for delta in (self.delta, 0.0))
        emitted = output_law(p, q, rule)
        follows = emitted.new_zeros(self.classes, self.classes)  # the class of the token after a class
        follows.index_add_(1, torch.arange(emitted.shape[-1], device=emitted.device) % self.classes, emitted)
        here = emitted.new_full((self.classes,), 1 / self.classes)
        visits = torch.zeros_like(here)
        for _ in range(self.tokens):
            visits, here = visits + here / self.tokens, follows.mT @ here
        each = {
            "acceptance": acceptance_rate(p, q, rule),
            "exact_acceptance": acceptance_rate(p, q, exact),
            "overdrafted": num_overdrafted(p, q).double(),
            "kl": divergence(emitted, q),
        }
        return {name: float(visits @ value) for name, value in each.items()}


# Claims: CAC-11: whole texts; criteria and expected verdicts were written before the run.


def rise(rows: pd.DataFrame) -> Estimate:
    """The KL per token at the largest vocabulary less that at 64 tokens, plain laws."""
    wide = measure.chosen(rows, "laws == 'plain'").pivot(index="replicate", columns="V", values="kl")
    return stats.mean(wide[wide.columns.max()] - wide[64])


def halves(rows: pd.DataFrame) -> Estimate:
    """The KL per token at 64 tokens in one half of the chains less that in the other: what chance alone gives."""
    spent = measure.chosen(rows, "laws == 'plain' and V == 64").sort_values("replicate")["kl"].to_numpy()
    return stats.mean(spent[::2] - spent[1::2])


CLAIMS = (
    on_page("CAC-11.c"),
    statistic(
        "CAC-11.d",
        r"On chains whose next token has Zipf's law, in an order that depends on the class of the last token, a text written at $\delta=0.01$ without truncation is farther from the verifier's text, in KL per token, with the largest vocabulary than with 64 tokens.",
        MarkovPairs,
        rise,
        "KL per token at the largest vocabulary less that at 64 tokens, mean over pairs of chains",
        at_least(0),
        control=halves,
        unit="nats per token",
        where="criterion before any run",
        horizon="texts on 1,024 tokens; the page goes on to 131,072 at one position, where the rise has ended",
    ),
)


# Figures: Speed of blocks: rows in, a figure with its alt text as label out.
#
# mark                   meaning
# sequential colours     a swept parameter


def speed(rows: pd.DataFrame) -> Figure:
    """Tokens per verifier pass and speed over plain decoding against m; rows: alpha, m, tokens, speedup."""
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.1))
    alphas, words = sorted(rows["alpha"].unique()), []
    for alpha, color in zip(alphas, shades(len(alphas)), strict=True):
        part = rows[rows["alpha"] == alpha].sort_values("m")
        for ax, column in zip(axes, ("tokens", "speedup"), strict=True):
            ax.plot(part["m"], part[column], color=color)
        best = part.loc[part["speedup"].idxmax()]
        axes[1].plot(best["m"], best["speedup"], "o", color=color, markersize=4)
        beside(axes[0], part["m"].iloc[-1], part["tokens"].iloc[-1], rf"$\alpha={alpha:g}$", color, (3, 0))
        words.append(f"{best['speedup']:.2f} at m = {best['m']:.0f} for {alpha:g}")
    axes[0].set(xlabel="drafts per block $m$", ylabel=r"tokens per verifier pass", xlim=(0, 1.3 * rows["m"].max()))
    axes[1].set(xlabel="drafts per block $m$", ylabel="speed over plain decoding")
    figure.set_label(
        "Tokens per verifier pass, and modelled speed, against drafts per block for several acceptance rates. Largest "
        f"speeds: {', '.join(words)}."
    )
    return figure
