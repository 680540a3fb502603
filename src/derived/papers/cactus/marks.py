"""How the figures of the chapter mark the rules: name, colour, marker."""

from derived.lab.plot import GREEN, INK, ORANGE, PINK, RED, SKY

RULES = {
    "cactus": ("Cactus", GREEN, "o"),
    "mentored": ("clip law", INK, "D"),
    "lenience": ("lenience", SKY, "v"),
    "interp": ("interpolation", PINK, "s"),
    "tas": ("typical", RED, "^"),
    "topk": ("top-k", ORANGE, "P"),
}
