"""What one pair does to logits where the theorem's assumption holds."""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import normalize

from derived.lab.claims import on_page
from derived.lab.experiment import Experiment, rows
from derived.lab.plot import DASHED, GREEN, MUTED, RED, THEORY, largest, panel_label
from derived.lab.rng import stream

from .model.forms import in_place_ttt
from .model.theory import expected_logits

TOKENS = ("v", "k", "other")


def normal(*shape: int, draw: torch.Generator, dtype: torch.dtype) -> Tensor:
    """Independent standard normal numbers, on the CPU."""
    return torch.randn(*shape, generator=draw, dtype=dtype)


@dataclass(frozen=True, kw_only=True)
class Logits(Experiment):
    """The logits that a written pair moves, unrelated keys independent and centred (assumption 2); for the figure.

    Each replicate draws embeddings of unequal length, a text and keys of its own. Rows: target (next or
    reconstruction), replicate, token (v*, k* or another), delta (what the memory adds), expected (closed form).
    """

    replicates: int = 400
    V: int = 24
    d: int = 48
    h: int = 96
    N: int = 64

    tiny: ClassVar = {"replicates": 12, "V": 5, "d": 6, "h": 7, "N": 9}
    deterministic: ClassVar = {"expected": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"target": target} for target in ("next", "reconstruction")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        parts = [self.one(condition["target"], stream(seed, "logits", r), dtype) for r in range(self.replicates)]
        columns = {name: torch.stack([part[name] for part in parts]) for name in parts[0]}
        return rows({"replicate": range(self.replicates), "token": list(TOKENS)}, columns)

    def one(self, target: str, draw: torch.Generator, dtype: torch.dtype) -> dict[str, Tensor]:
        """One text: the pair stands first, the chunk that asks is of its own."""
        lengths = 0.8 + 0.4 * torch.rand(self.V, 1, generator=draw, dtype=dtype)
        e = lengths * normalize(normal(self.V, self.d, draw=draw, dtype=dtype), dim=-1)
        k, v, other = torch.randperm(self.V, generator=draw)[:3].tolist()
        text = torch.randint(self.V, (self.N + 2,), generator=draw)
        text[:2] = torch.tensor([k, v])
        written = e[text.roll(-1)] if target == "next" else e[text]
        keys = normal(self.N + 2, self.h, draw=draw, dtype=dtype) / self.h**0.5
        keys = torch.cat([keys, keys[:1]])  # the last token asks with the pair's key
        values = torch.cat([written, torch.zeros_like(written[:1])])
        read = in_place_ttt(keys, values, torch.zeros(self.d, self.h, dtype=dtype), 1.0, self.N + 2)
        at, align = torch.tensor([v, k, other]), keys[0].square().sum().item()
        expected = expected_logits(e, v if target == "next" else k, align)
        return {"delta": (e @ read[-1])[at], "expected": expected[at]}


# Claims: IPT-7 and 8.a: the theorem on targets, and what its assumption asks of keys, decided by check cells on the
# page.

CLAIMS = (
    on_page(
        "IPT-7.a",
        source="paper",
        where="Theorem 1",
        plain="If the keys of other tokens are independent and centred, writing the next token raises the right logit.",
    ),
    on_page("IPT-7.e"),
    on_page("IPT-8.a"),
)


# Figures: What one write does to logits: rows in, a figure with its alt text as label out.
#
# mark                meaning
# green, red, grey    the right answer v*, the token that asks k*, another token
# line in INK         the theorem's expectation; dashed: zero

TOKEN_NAMES = {"v": ("right answer $v^*$", GREEN), "k": ("asking token $k^*$", RED), "other": ("another token", MUTED)}


def shifts(rows: pd.DataFrame) -> Figure:
    """Histograms of Delta l by target; rows of ``Logits``: target, token, delta, expected."""
    rows = largest(rows)
    targets = {"next": "next token", "reconstruction": "reconstruction"}
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 2.9), sharex=True, sharey=True)
    edges = np.histogram_bin_edges(rows["delta"], 60)
    words = []
    for ax, (target, name) in zip(axes, targets.items(), strict=True):
        for token, (label, color) in TOKEN_NAMES.items():
            part = rows[(rows["target"] == target) & (rows["token"] == token)]
            ax.hist(part["delta"], edges, density=True, histtype="stepfilled", color=color, alpha=0.45, label=label)
            ax.axvline(part["expected"].mean(), **THEORY)
            words.append(f"{name}, {label.split(' $')[0]}: {part['delta'].mean():.2f}")
        ax.axvline(0, **DASHED)
        ax.set(xlabel=r"change of the logit $\Delta\ell_n$", yticks=[])
        panel_label(ax, name)
    axes[0].set_ylabel("density over draws")
    axes[1].legend(fontsize=8)
    figure.set_label(f"Histograms of the change of three logits under two targets. Means: {'; '.join(words)}.")
    return figure
