"""How the figures of the chapter mark laws and rules.

mark                   meaning
blue, orange, green    verifier q, draft p, emitted law
line in INK            theory; dashed: a bound or a limit
"""

from derived.lab.plot import COLOURS, INK, MUTED

BLUE, RED, GREEN, PINK, ORANGE, SKY = COLOURS
THEORY = {"color": INK, "linewidth": 1.0, "zorder": 2}
DASHED = {"color": MUTED, "linewidth": 1.0, "linestyle": "--", "zorder": 1}
RULES = {
    "cactus": ("Cactus", GREEN, "o"),
    "mentored": ("clip law", INK, "D"),
    "lenience": ("lenience", SKY, "v"),
    "interp": ("interpolation", PINK, "s"),
    "tas": ("typical", RED, "^"),
    "topk": ("top-k", ORANGE, "P"),
}
