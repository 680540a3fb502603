"""What the chapter's claims say of their source, and the gap of a mean."""

import numpy as np

from derived.papers.homogenized import claims
from derived.papers.homogenized.chains import mean_gap


def test_sources_are_worded():
    for claim in claims.CLAIMS:
        assert claim.source != "digest" or claim.where.startswith("version 1")
        assert claim.source != "paper" or claim.where.startswith("abstract")


def test_mean_gap_is_judged_entry_by_entry():
    values = np.array([[0.0, 1.0], [2.0, 1.0]])
    gap, bound = mean_gap(values, [1.5, 1.0], slack=0.25)
    assert gap.tolist() == [0.5, 0.0]
    assert bound.tolist() == [5.25, 0.25]  # the values differ by sqrt(2) standard deviations, and the error is 1
