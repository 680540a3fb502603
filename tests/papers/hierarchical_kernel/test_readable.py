"""A layer whose tables can be read, and the explorer that shows it."""

import numpy as np
import pandas as pd
import pytest

from derived.papers.hierarchical_kernel import explorer
from derived.papers.hierarchical_kernel.model.readable import readable_columns

SYMBOLS = ["[MAX", "2", "9", "[MIN", "4", "7", "]", "0", "]"]


def test_the_readable_layer_is_the_mixture_of_its_tables():
    rows = pd.DataFrame(readable_columns(SYMBOLS, 2, 0.25))
    tables = [
        rows[rows["level"] == level].pivot(index="i", columns="j", values="score").to_numpy() for level in (0, 1, -1)
    ]
    spread = tables[1].repeat(2, axis=0).repeat(2, axis=1)[: len(SYMBOLS), : len(SYMBOLS)]
    assert np.allclose(tables[2], 0.75 * tables[0] + 0.25 * spread)
    assert rows.loc[rows["level"] >= 0, "attention"].isna().all()  # only the mixture attends
    attention = rows[rows["level"] == -1].pivot(index="i", columns="j", values="attention").to_numpy()
    assert np.allclose(attention.sum(axis=1), 1)
    assert (np.triu(attention, 1) == 0).all()


def test_each_token_knows_where_its_innermost_list_begins():
    figure = explorer.score_explorer(pd.DataFrame(readable_columns(SYMBOLS, 4, 0.75)), SYMBOLS)
    assert figure.layout.meta["given"]["opens"] == [0, 0, 0, 3, 3, 3, 3, 0, 0]
    own, rest = (np.array(bars.y) for bars in figure.data[1:3])
    assert (own[:3] == 0).all()
    assert (rest[3:] == 0).all()
    assert (own + rest).sum() == pytest.approx(1, abs=1e-3)
    assert figure.data[4].text[0].startswith(f"{own.sum():.2f} of the attention")
