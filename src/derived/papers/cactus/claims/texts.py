"""CAC-11: whole texts; criteria and expected verdicts were written before the run."""

from derived.lab import measure
from derived.lab.claims import bound, identity

from ..experiments.texts import Blocks

ROUNDING = "largest gap over $8V^4$ units in the last place"
LEVIATHAN = {"source": "prior", "where": "Leviathan et al. 2023"}

CLAIMS = (
    identity(
        "CAC-11.a",
        r"Blocks of exact speculative sampling write texts with exactly the verifier's law.",
        Blocks,
        measure.worst(where="check == 'law'"),
        ROUNDING + ", over all texts of 4 tokens",
        **LEVIATHAN,
    ),
    identity(
        "CAC-11.b",
        r"With independent acceptances of probability $\alpha$ a block of $m$ drafts keeps ${\rm AL}_m=\alpha(1-\alpha^m)/(1-\alpha)$ of them on average.",
        Blocks,
        measure.worst(where="check == 'accepted'"),
        ROUNDING + ", to the enumeration",
        **LEVIATHAN,
    ),
    bound(
        "CAC-11.c",
        r"The KL of a text is at most the expected sum of the KL of what is emitted at its drafted positions.",
        Blocks,
        measure.worst(where="check == 'text'"),
        "cac-text",
        "largest excess over $8V^4$ units in the last place",
    ),
)
