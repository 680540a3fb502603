"""How figures look: one style for all chapters, colour-blind safe, readable on a light and a dark page.

theory              a thin line in INK
recorded, live      filled and open markers, with seed intervals
swept parameter     the sequential map SEQUENTIAL
"""

import matplotlib

INK = "#222222"
MUTED = "#777777"
# Okabe and Ito's colours, without yellow (too pale for lines).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SEQUENTIAL = "viridis"
DIVERGING = "RdBu_r"

STYLE = {
    "axes.edgecolor": INK,
    "axes.prop_cycle": matplotlib.cycler(color=COLOURS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "font.size": 10,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 5,
    "svg.fonttype": "path",
    "svg.hashsalt": "derived",
}
matplotlib.rcParams.update(STYLE)
