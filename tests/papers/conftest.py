"""What the tests of every paper share: rows of its experiments, smaller than tier ci, what each figure must say,
and what no claim may pass over."""

import importlib
import json
import math
import random
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.claims import Claim
from derived.lab.experiment import run_experiment


@pytest.fixture(scope="module", autouse=True)
def face(request):
    """The paper's public names, all loaded: a class is checked in place once its face has handed it out, so that no
    test depends on which ran before it."""
    slug = request.path.parent.name
    if slug != "papers":
        module = importlib.import_module(f"derived.papers.{slug}")
        for name in module.__all__:
            getattr(module, name)


@pytest.fixture(scope="module")
def rows(request):
    """Rows of each of the module's EXPERIMENTS at its tiny size, as if they were those of tier ci."""
    found = {}
    for experiment in request.module.EXPERIMENTS:
        before = torch.get_rng_state()
        found[experiment] = run_experiment(experiment.at("tiny"), seed=0, device="cpu")
        own = getattr(experiment, "needs", ()) or torch.equal(torch.get_rng_state(), before)  # a library makes a model
        assert own, f"{experiment.__name__} draws without a generator of its own"
        assert "failure" not in found[experiment], found[experiment]["failure"].dropna().iloc[0]
        assert {*experiment.deterministic} <= {*found[experiment].columns}, "a deterministic column that no row has"
    return {experiment: table.assign(tier="ci", recorded=False) for experiment, table in found.items()}


@pytest.fixture(scope="session")
def expected() -> dict[str, str]:
    """The verdict that is expected of each claim at tier ci."""
    ledger = json.loads((Path(__file__).parents[2] / "results/ledger.json").read_text("utf-8"))
    return {row["id"]: row["expected"] for row in ledger if row["tier"] == "ci"}


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    """matplotlib warns of more than twenty open figures, and a warning is an error here."""
    yield
    plt.close("all")


@pytest.fixture
def tells():
    """Axes are named, on one panel of those that share them, there is no title, and the alt text has these words and no
    formula."""

    def check(figure, *words: str) -> None:
        figure.canvas.draw()
        alt = figure.get_label()
        for word in words:
            assert word in alt, alt
        assert "$" not in alt
        assert "nan" not in alt.split()
        for ax in (ax for ax in figure.axes if ax.get_label() != "<colorbar>"):
            assert any(other.get_xlabel() for other in ax.get_shared_x_axes().get_siblings(ax))
            assert not ax.get_title()

    return check


@pytest.fixture
def follows(tells):
    """The alt text says other numbers when a column that the figure shows has others: it is made from the rows."""

    def check(draw, rows, *columns: str) -> None:
        figure, shrinking = draw(rows), np.linspace(0.9, 0.5, len(rows))
        tells(figure)
        for column in columns:
            assert draw(rows.assign(**{column: rows[column] * shrinking})).get_label() != figure.get_label(), column
        plt.close("all")

    return check


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


@pytest.fixture(params=range(6))
def draw(request):
    """A generator of Python's own, one for each of six instances of a reference program."""
    return random.Random(request.param)


@pytest.fixture
def table(draw):
    """A function that draws a table of standard normal numbers, as lists."""
    return lambda rows, columns: [[draw.gauss(0, 1) for _ in range(columns)] for _ in range(rows)]


@pytest.fixture
def law(draw):
    """A function that draws a distribution over so many things, none of probability zero."""

    def drawn(size):
        weights = [draw.expovariate(1) + 0.01 for _ in range(size)]
        return [w / sum(weights) for w in weights]

    return drawn
