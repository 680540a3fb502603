"""What holds to rounding: rows and measures of SP-1 and SP-5."""

import numpy as np
import pytest

from derived.papers.signal_propagation.claims.identities import CLAIMS
from derived.papers.signal_propagation.experiments.identities import ClosedForms, Ends

EXPERIMENTS = (ClosedForms, Ends)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_gaps_are_within_their_bounds_and_a_larger_one_is_caught(rows, claim):
    table = rows[claim.experiment]
    assert claim.judge(claim.measure(table)) == ("holds", "")
    wrong = table.assign(gap=table["gap"].where(table["instance"] != 2, 1.01 * table["bound"]))
    assert claim.judge(claim.measure(wrong)) == ("fails", "")


def test_six_moments_are_compared_and_their_gaps_are_of_the_columns_beside_them(rows):
    table = rows[ClosedForms]
    moments = ["q_tilde", "p_tilde", "q_hat", "p_hat", "kappa", "kappa_prime"]
    assert table["moment"].tolist() == list(np.repeat(moments, 4))
    np.testing.assert_array_equal(table["gap"], np.abs(table["closed"] - table["quadrature"]))
