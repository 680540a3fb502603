"""What the tests of this paper's claims share."""

import math

import pandas as pd
import pytest

from derived.lab.claims import Claim


@pytest.fixture
def lacks():
    """A claim is undecided by rows of which one lacks a number: no measure passes over it."""

    def check(claims, id: str, rows: pd.DataFrame, column: str, where: str = "") -> None:
        claim: Claim = next(one for one in claims if one.id == id)
        at = (rows.query(where, engine="python") if where else rows).index[0]
        lacking = rows.astype({column: float})
        lacking.loc[at, column] = math.nan
        try:
            verdict, _ = claim.judge(claim.measure(lacking))
        except ValueError:  # which the ledger takes for "undecided", with its words as the reason
            return
        assert verdict == "undecided", f"{id} {verdict} without a {column}"

    return check
