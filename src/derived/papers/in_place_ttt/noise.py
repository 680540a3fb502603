"""What other pairs in the memory do to an answer: signal, noise and bias of what is read."""

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.figure import Figure
from torch.nn.functional import normalize

from derived.lab.plot import BLUE, INK, RED, THEORY, beside, panel_label
from derived.lab.rng import stream

from .model.theory import capacity_of_few


def piled_up(N: int, d: int, h: int, cosine: float, share: float, seed: int, draws: int = 200) -> tuple[float, float]:
    """What N random pairs add to logits, simulated: the standard deviation at a token that was not written, and the
    mean at one that a ``share`` of them wrote. Unit keys have this mean ``cosine``; the signal of a pair is 1."""
    draw, found = stream(seed, "piled up", N, cosine), []
    for _ in range(draws):
        keys = torch.randn(N + 1, h, generator=draw) * ((1 - cosine) / h) ** 0.5
        keys[:, 0] += cosine**0.5  # a direction in common
        e = normalize(torch.randn(N + 2, d, generator=draw), dim=-1)
        values = torch.where((torch.rand(N, 1, generator=draw) < share), e[-1], e[:N])
        found.append(e[-2:] @ values.mT @ (keys[:N] @ keys[N]))
    other, common = torch.stack(found).unbind(dim=-1)
    return other.std().item(), common.mean().item()


def three_curves(cosine: float, seed: int, share: float = 0.05, width: int = 64, tokens: int = 256) -> Figure:
    """Signal, noise and bias of a logit against the number of other pairs: lines by theory, points simulated."""
    counts, points = np.geomspace(4, 2048, 60), (16, 64, 256, 1024)
    noise = [piled_up(N, width, width, 0.0, 0.0, seed)[0] for N in points]
    bias = [piled_up(N, width, width, cosine, share, seed, 100)[1] for N in points]
    figure, ax = plt.subplots(figsize=(6.4, 3.4))
    lines = (
        ("signal of the pair", 1 + 0 * counts, (), INK),
        ("bias of the keys' mean", cosine * share * counts, bias, RED),
        ("noise", counts**0.5 / width, noise, BLUE),
    )
    for name, values, measured, color in lines:
        ax.plot(counts, values, **(THEORY | {"color": color}))
        ax.plot(points[: len(measured)], measured, "o", color=color, markerfacecolor="none", markersize=5)
        beside(ax, counts[-1], values[-1], name, color, (6, -6 if name == "noise" else 3), fontsize=9)
    half, met = capacity_of_few(width, width, tokens), 1 / cosine / share
    ax.plot([met, half], [1, 1], "s", color=INK, markersize=5)
    beside(ax, met, 1, f"{met:.0f} pairs: the bias\nis as large as the signal", RED, (-6, 18), ha="right", fontsize=8)
    beside(ax, half, 1, f"{half:.0f} pairs: noise alone\nloses half of the answers", BLUE, (0, -40), fontsize=8)
    ax.set(xscale="log", yscale="log", ylim=(0.02, 60), xlim=(4, 20_000), xlabel="other pairs in the memory $N$")
    ax.set_ylabel("size on a logit")
    panel_label(ax, "The bias reaches the signal long before the noise does")
    figure.set_label(
        f"Size on a logit against the number of other pairs, d = h = {width}. The bias of a token that is {share:.0%} "
        f"of what was written reaches the signal at {met:.0f} pairs; noise loses half of {tokens} tokens at {half:.0f}."
    )
    return figure
