"""The words of each criterion and the range that judges are one, also where its numbers are written as formulas."""

import importlib
import math
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
SLUGS = sorted(path.parent.name for path in (ROOT / "src/derived/papers").glob("*/claims.py"))
WORDS = "within|outside|at most|above|at least|below|exactly|other than"
RANGE = re.compile(rf"({WORDS}) \$([^$]+)\$(?: ± \$([^$]+)\$)?(?:, and the proof)?$")


def value(formula: str) -> np.ndarray:
    """A number, or the two ends of an interval, from the little LaTeX in which the ledger writes them."""
    text = re.sub(r"\\frac(\d)(\d)", r"(\1/\2)", formula)
    text = re.sub(r"\\frac(\d)\{([^{}]+)\}", r"(\1/\2)", text)
    text = re.sub(r"\\frac\{([^{}]+)\}\{([^{}]+)\}", r"(\1/\2)", text)
    text = text.replace(r"\varepsilon", str(np.finfo(float).eps)).replace(r"\cdot", "*").replace(r"\,", "*")
    text = re.sub(r"\^\{([^{}]+)\}", r"**(\1)", text)
    assert re.fullmatch(r"[-+*/()\[\], \de.]+", text), f"{formula}: teach this test to read it"
    return np.asarray(eval(re.sub(r"\[([^\[\]]+)\]", r"array([\1])", text), {"array": np.array}), dtype=float)


def ends(criterion: str) -> tuple[float, float]:
    """The range that the last words of a criterion name."""
    match = RANGE.search(criterion)
    assert match, f"{criterion}: no range"
    word, named, reach = match[1], value(match[2]), match[3]
    if word in ("at most", "above"):
        return -math.inf, float(named)
    if word in ("at least", "below"):
        return float(named), math.inf
    both = named + np.array([-1, 1]) * (value(reach) if reach else 0)
    return float(both[0]), float(both[1])


@pytest.mark.parametrize("slug", SLUGS)
def test_the_words_of_each_criterion_are_its_numbers(slug):
    claims = importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS
    for claim in (claim for claim in claims if claim.kind not in ("measured", "on page")):
        assert ends(claim.criterion) == pytest.approx(claim.accept, rel=1e-9), claim.id


def test_a_name_that_is_another_number_is_seen():
    from derived.lab.claims import at_most, within

    for words in (within(0.67, 0.01, r"\frac23").words, at_most(0.34, r"\frac{1}{3}").words):
        found = ends(f"the slope: {words}")
        assert found != pytest.approx((0.66, 0.68), rel=1e-9)
        assert found != pytest.approx((-math.inf, 0.34), rel=1e-9)
    assert ends(r"x: within $\frac{4}{2}\cdot[0.5, 2]$") == (1.0, 4.0)
    assert ends(r"x: at least $2\cdot10^{-3}$, and the proof") == (0.002, math.inf)
