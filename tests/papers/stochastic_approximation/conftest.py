"""What the tests of this paper's claims share."""

import math

import numpy as np
import pytest

from derived.papers.stochastic_approximation.claims import CLAIMS

NAMES = {"alpha", "beta", "epsilon", "a", "rate", "chosen"}  # of cases: numbers that nobody measures


@pytest.fixture
def undecided_without():
    """NaN in every other cell of a column that a claim's measure reads leaves the claim undecided. A column is read if
    the estimate changes with it, and each claim reads one."""

    def estimate(claim, table):
        try:
            return claim.measure(table)
        except ValueError:
            return None

    def check(rows) -> None:
        found = {}
        for claim in (claim for claim in CLAIMS if claim.experiment in rows):
            table = rows[claim.experiment].drop(columns=["tier", "recorded"])
            whole, found[claim.id] = estimate(claim, table), set()
            measured = {name for name in table.columns if table[name].dtype.kind in "fb"} - NAMES
            for column in measured:
                numbers = table[column].astype(float)
                for odd in (0, 1):
                    kept = np.arange(len(table)) % 2 != odd
                    other = 1 - numbers if table[column].dtype.kind == "b" else 1.7 * numbers + 0.3
                    if estimate(claim, table.assign(**{column: numbers.where(kept, other)})) == whole:
                        continue
                    left = estimate(claim, table.assign(**{column: numbers.where(kept, math.nan)}))
                    decided = left is not None and claim.judge(left)[0] != "undecided"
                    assert not decided, f"{claim.id}: a missing {column} is passed over"
                    found[claim.id].add(column)
        assert all(found.values()), found

    return check
