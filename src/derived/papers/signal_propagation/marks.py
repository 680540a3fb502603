"""What the figures of the chapter share: names and colours of the normalisers, and the axis of amplifications."""

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from derived.lab.plot import BLUE, INK, RED, plain_log

NAMES = {"layernorm": "pre-LayerNorm", "erf": "Derf", "tanh": "DyT"}
NORM_COLOURS = {"layernorm": INK, "erf": BLUE, "tanh": RED}


def amplification_axis(ax: Axes, top: float) -> None:
    """Plain numbers up to ``top`` on a logarithmic axis of amplifications, and whole blocks below it."""
    ax.set_yscale("log")
    steps = (1, 2, 5) if top < 100 else (1,)
    ticks = [step * 10**power for power in range(6) for step in steps]
    plain_log(ax.yaxis, [tick for tick in ticks if tick <= 1.3 * top])
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
