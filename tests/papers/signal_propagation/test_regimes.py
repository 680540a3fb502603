"""The recurrences carried far: rows, and the measures of SP-6 to SP-12 on curves whose laws are known."""

import numpy as np
import pandas as pd
import pytest

from derived.papers.signal_propagation import regimes
from derived.papers.signal_propagation.model import asymptotics
from derived.papers.signal_propagation.model.asymptotics import vit_variances
from derived.papers.signal_propagation.regimes import Crossing, Regimes

EXPERIMENTS = (Crossing, Regimes)
CLAIMS = {claim.id: claim for claim in regimes.CLAIMS}
DEPTHS = np.unique(np.geomspace(4, 20_000, 60).round().astype(int))


def test_rows_of_infinitely_many_tokens_are_those_of_the_limit(rows, by_hand):
    table = rows[Regimes].query("norm == 'layernorm' and attn_mult == 1")
    a, s = vit_variances()
    for tokens, n in ((0, np.inf), (16, 16)):
        course = by_hand("layernorm", 1.0, 1.0, 0.2, a=a, s=s, n=n, depth=400)
        curve = table[table["tokens"] == tokens]
        difference = np.subtract(course["q"], course["p"])[curve["b"]]
        np.testing.assert_allclose(np.exp(curve["log_difference"]), difference, rtol=1e-11)
        last = curve[curve["b"] == 400]
        np.testing.assert_allclose(np.exp(last["log_J"]), course["J"][0], rtol=1e-11)


def curve(log_J, *, norm: str = "layernorm", attn_mult: float = 1.0, tokens: int = 0, alpha: float = 1.0, **columns):
    """Rows of one curve of ``Regimes``."""
    rows = pd.DataFrame({"b": DEPTHS, "log_J": log_J, **columns})
    return rows.assign(norm=norm, attn_mult=attn_mult, tokens=tokens, alpha=alpha)


def test_exponents_are_read_at_the_deepest_block_of_the_right_curve():
    rows = pd.concat([curve(0.7 * np.log(DEPTHS)), curve(np.log(DEPTHS), tokens=4, attn_mult=2.0)])
    assert regimes.last_exponent()(rows).value == pytest.approx(0.7)
    assert regimes.last_exponent(2.0, 4)(rows).value == pytest.approx(1.0)


@pytest.mark.parametrize(("exponent", "verdict"), [(2 / 3, "holds"), (0.68, "fails"), (1.0, "fails")])
def test_the_exponent_of_the_limit_is_found_behind_its_corrections(exponent, verdict):
    """A local exponent of 0.68 at the last depths is no sign of a limit of 2/3, and one of 2/3 behind it is found."""
    slow, next_one = DEPTHS ** (-1 / 3), DEPTHS ** (-1 / 2)
    rows = curve(exponent * np.log(DEPTHS) - 3 * slow + 2 * next_one)
    found = CLAIMS["SP-6.a"].measure(rows)
    assert found.value == pytest.approx(exponent, abs=1e-3)
    assert CLAIMS["SP-6.a"].judge(found)[0] == verdict
    assert abs(regimes.last_exponent()(rows).value - exponent) > 0.01  # which is what stood in its place


def test_stretched_is_the_slope_over_the_law_for_the_alpha_farthest_from_it():
    a, s = asymptotics.vit_variances()
    tables = []
    for alpha, factor in ((0.5, 1.01), (1.0, 0.97)):
        law = np.sqrt(DEPTHS / asymptotics.lambda_stretched(a, s, asymptotics.stretch_constant("erf", alpha)))
        tables.append(curve(factor * law, norm="erf", alpha=alpha))
    assert regimes.slope_over_law("erf")(pd.concat(tables)).value == pytest.approx(0.97)


def test_the_limit_of_the_overlap_is_found_behind_both_of_its_powers():
    a, s = asymptotics.vit_variances()
    c, mu = float(asymptotics.overlap_fixed_point(a, s)), float(asymptotics.relaxation_exponent(a, s))
    for missed in (0.0, 0.02):
        rho = c + missed + 3 * DEPTHS**-mu - 5 * DEPTHS**-0.5
        rows = pd.concat([curve(0.0, norm="erf", alpha=alpha, rho=rho) for alpha in (0.5, 1.0)])
        assert CLAIMS["SP-10.a"].measure(rows).value == pytest.approx(missed, abs=1e-9)


def test_derf_overtakes_at_the_first_depth_where_it_is_larger(rows, by_hand):
    table = rows[Crossing]
    grid = {"norm": "erf", "alpha": 0.5, "b": [10, 20, 30, 40]}
    derf = pd.DataFrame(grid).assign(log_J=[0.0, 2.0, 0.5, 3.0])
    made = pd.concat([derf, derf.assign(norm="layernorm", alpha=1.0, log_J=1.0)])
    assert regimes.overtaken(0.5)(made).value == 19  # a second crossing does not matter
    never = made.assign(log_J=made["log_J"].where(made["norm"] == "layernorm", 0.0))
    assert regimes.overtaken(0.5)(never).value == 40
    a, s = vit_variances()
    for norm in ("erf", "layernorm"):
        exact = by_hand(norm, 1.0, 1.0, 0.2, a=a, s=s, n=197, depth=32)["J"][0]
        last = table.query(f"norm == {norm!r} and alpha == 1.0 and b == 32")["log_J"].item()
        assert last == pytest.approx(np.log(exact), rel=1e-10)
