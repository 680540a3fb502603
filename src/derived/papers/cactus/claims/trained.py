"""CAC-12 and CAC-13: what a trained pair gains and pays; criteria and expected verdicts written before the run."""

from derived.lab.claims import Claim

from ..experiments.trained import PairTime, TrainedPair
from . import measures as of

RECORDED = ("cpu", "gpu")
HOLDS, REPORTED = {"cpu": "holds", "gpu": "holds"}, {"cpu": "reported", "gpu": "reported"}
LARGE = float("inf")


def setting(rule: str, shape: str, knob: float | None = None, matched: float = 0.0, draft: str = "trained") -> dict:
    """Columns that pick one setting; knob -1 is the largest Cactus budget, None any."""
    chosen = {"rule": rule, "shape": shape, "matched": matched, "draft": draft}
    return chosen if knob is None else chosen | {"knob": knob}


def pair(
    id: str, statement: str, criterion: str, measure, accept: tuple[float, float] = (0.0, LARGE), **facts
) -> Claim:
    """A paired difference over prompts unless said otherwise, judged at the recorded tiers only."""
    facts = {"source": "ours", "where": "–", "paper_value": "–", "kind": "statistic", "expected": HOLDS} | facts
    return Claim(
        id=id,
        statement=statement,
        criterion=criterion,
        measure=measure,
        accept=accept,
        judged_at=RECORDED,
        **{"experiment": TrainedPair, **facts},
    )


def reported(id: str, statement: str, measure, **facts) -> Claim:
    """A number of the trained pairs that no criterion judges."""
    return pair(id, statement, "–", measure, kind="measured", expected=REPORTED, **facts)


def against(rule: str, shape: str, matched: float = 1.0, sign: int = 1) -> of.Measure:
    """Valid texts of Cactus less those of a rival at its acceptance."""
    return of.paired("valid", setting("cactus", shape, matched), setting(rule, shape, matched=matched), sign)


def cost(column: str, shape: str, sign: int = 1, draft: str = "trained") -> of.Measure:
    """A column at the largest budget less the same at budget 0."""
    first, second = (setting("cactus", shape, knob, draft=draft) for knob in (-1, 0.0))
    return of.paired(column, first, second, sign=sign)


OVER_PROMPTS = "paired bootstrap over the prompts of each pair of models (n of them), joint 99.9 % intervals; the {} pair is judged"
AFTER = "first seen in the rows, then made a row: no verdict"
LEAST, MOST = OVER_PROMPTS.format("worst"), OVER_PROMPTS.format("highest")
DIGEST = {"source": "digest", "where": "Table 1; GSM8K, IFEval, GPQA there, generated text here"}
EQUAL = {"source": "digest", "where": "figure on acceptance and score; GSM8K there, generated text here"}

BY_THE_REPO = (
    "the present rows hold the rival with $q_n>0$ (CAC-13.c); in a first record, kept in the repository's history, "
    "the rule as worded wrote no text without fault, far from matched acceptance"
)

TRAINED = (
    pair(
        "CAC-12.a",
        r"With truncated laws (temperature 0.6, top-p 0.95) $\delta=1$ accepts longer drafts than exact sampling.",
        "drafts kept per block, total over total, difference above 0; " + LEAST,
        cost("al", "truncated"),
        paper_value="+30 to +70 %",
        source=DIGEST["source"],
        where=DIGEST["where"] + "; counted as a mean over texts in the first record",
    ),
    pair(
        "CAC-12.b",
        r"With truncated laws the quality holds at $\delta=1$.",
        "share of texts without fault, difference to exact sampling above $-0.05$; " + LEAST,
        cost("valid", "truncated"),
        (-0.05, 1.0),
        paper_value="no visible loss",
        **DIGEST,
    ),
    pair(
        "CAC-12.c",
        r"At temperature 1 without truncation $\delta=1$ costs at least ten points of quality.",
        "share of texts without fault, difference to exact sampling below $-0.1$; " + MOST,
        cost("valid", "plain", -1),
        (-1.0, -0.1),
    ),
    reported(
        "CAC-12.d",
        r"Surprise of the verifier per token at $\delta=1$ less that under exact sampling, truncated laws, in nats: mean of the pairs of models, interval over all of them.",
        cost("surprise", "truncated", 0),
        **DIGEST,
    ),
    reported(
        "CAC-12.e",
        r"Tokens per second at $\delta=1$ over plain decoding by the verifier, one text at a time, truncated laws: the slower pair of models.",
        of.speedup,
        experiment=PairTime,
        paper_value="nearly 1.9",
        source="digest",
        where="Figure 3; one A100 there",
    ),
    pair(
        "CAC-12.f",
        r"Negative control: with a draft that was never trained $\delta=1$ loses over 30 points of validity at temperature 1.",
        "share of texts without fault, difference to exact sampling below $-0.3$; " + MOST,
        cost("valid", "plain", -1, "unrelated"),
        (-1.0, -0.3),
        expected={"cpu": "undecided", "gpu": "holds"},
    ),
    reported(
        "CAC-12.g",
        r"With that draft: drafts kept per block at $\delta=1$ less those under exact sampling, temperature 1, mean of the pairs of models, interval over all of them.",
        cost("al", "plain", 0, "unrelated"),
        where=AFTER,
    ),
    reported(
        "CAC-12.h",
        r"With truncated laws, the share of texts without fault at $\delta=1$ less that of the verifier's own texts: mean of the pairs of models, interval over all of them.",
        cost("valid", "truncated", 0),
        where=AFTER,
    ),
    pair(
        "CAC-13.a",
        r"At equal acceptance ($\delta=1$, truncated laws) Cactus writes more valid texts than interpolation.",
        "share of texts without fault, difference above 0; " + LEAST,
        against("interp", "truncated"),
        paper_value="above 86 against below 72",
        **EQUAL,
    ),
    pair(
        "CAC-13.b",
        "More than typical acceptance.",
        "the same",
        against("tas", "truncated"),
        expected={"cpu": "undecided", "gpu": "undecided"},
        **EQUAL,
    ),
    pair(
        "CAC-13.c",
        "More than top-k acceptance with $q_n>0$ also required, at the whole $k$ of nearest acceptance.",
        "the same",
        against("topk", "truncated"),
        expected={"cpu": "undecided", "gpu": "holds"},
        source="ours",
        where="a retold comparison; the rival as amended after the first record (CAC-13.g)",
    ),
    Claim(
        id="CAC-13.g",
        statement="More than top-k acceptance as the public code words it: $q_n$ at least the $k$-th largest, also where that is 0.",
        source="digest",
        where=EQUAL["where"] + "; the first record, before CAC-13.c's rival was amended",
        paper_value="–",
        kind="measured",
        criterion="–",
        reason=BY_THE_REPO,
    ),
    pair(
        "CAC-13.d",
        r"At temperature 1 without truncation, at the acceptance of $\delta=0.01$, more than interpolation.",
        "the same",
        against("interp", "plain", 0.01),
    ),
    pair(
        "CAC-13.e",
        r"There the KL-optimal rule, at the acceptance of $\delta=0.01$, writes more valid texts than Cactus.",
        "share of texts without fault, Cactus less mentored decoding, below 0; " + MOST,
        against("mentored", "plain", 0.01, -1),
        (-1.0, 0.0),
        expected={"cpu": "undecided", "gpu": "undecided"},
    ),
    reported(
        "CAC-13.f",
        r"There, the share of texts without fault of Cactus less that of lenience: mean of the pairs of models, interval over all of them.",
        against("lenience", "plain", 0.01, 0),
        where=AFTER,
    ),
)
