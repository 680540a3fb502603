"""CAC-12 and CAC-13: what a trained pair gains and pays; criteria and expected verdicts written before the run."""

from derived.lab.claims import Claim

from . import measures as of
from .trained import TrainedPair

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
    """A paired difference over prompts, judged at the recorded tiers only."""
    facts = {"source": "ours", "where": "–", "paper_value": "–", "kind": "statistic", "expected": HOLDS} | facts
    return Claim(
        id=id,
        statement=statement,
        criterion=criterion,
        experiment=TrainedPair,
        measure=measure,
        accept=accept,
        judged_at=RECORDED,
        **facts,
    )


def against(rule: str, shape: str, matched: float = 1.0) -> of.Measure:
    """Valid texts of Cactus less those of a rival at its acceptance."""
    return of.paired("valid", setting("cactus", shape, matched), setting(rule, shape, matched=matched))


def cost(column: str, shape: str, sign: int = 1, draft: str = "trained") -> of.Measure:
    """A column at the largest budget less the same at budget 0."""
    first, second = (setting("cactus", shape, knob, draft=draft) for knob in (-1, 0.0))
    return of.paired(column, first, second, sign=sign)


OVER_PROMPTS = "paired bootstrap over prompts, joint 99.9 % interval for the {} of the pairs of models"
LEAST, MOST = OVER_PROMPTS.format("worst"), OVER_PROMPTS.format("highest")
DIGEST = {"source": "digest", "where": "Table 1; GSM8K, IFEval, GPQA there, generated text here"}
EQUAL = {"source": "digest", "where": "figure on acceptance and score; GSM8K there, generated text here"}

TRAINED = (
    pair(
        "CAC-12.a",
        r"With truncated laws (temperature 0.6, top-p 0.95) $\delta=1$ accepts longer drafts than exact sampling.",
        "drafts kept per block, difference above 0; " + LEAST,
        cost("al", "truncated"),
        paper_value="+30 to +70 %",
        **DIGEST,
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
    pair(
        "CAC-12.d",
        r"Surprise of the verifier per token at $\delta=1$ less that under exact sampling, truncated laws, in nats.",
        "–",
        cost("surprise", "truncated"),
        kind="measured",
        expected=REPORTED,
        **DIGEST,
    ),
    pair(
        "CAC-12.e",
        r"Speed at $\delta=1$ over plain decoding by the verifier, one text at a time, truncated laws.",
        "–",
        of.speedup,
        kind="measured",
        expected=REPORTED,
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
        "More than top-k acceptance at the $k$ of nearest acceptance, which accepts more.",
        "the same, with the $k$ of nearest acceptance",
        against("topk", "truncated"),
        **EQUAL,
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
        of.paired("valid", setting("cactus", "plain", 0.01), setting("mentored", "plain", matched=0.01), sign=-1),
        (-1.0, 0.0),
        expected={"cpu": "undecided", "gpu": "undecided"},
    ),
)
