"""Each figure on small hand-made rows: axes named, and alt text that says what these data say."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from derived.papers.cactus import figures

matplotlib.use("agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def grid(**axes) -> pd.DataFrame:
    """All combinations of the given values."""
    return pd.MultiIndex.from_product(axes.values(), names=axes).to_frame(index=False)


def live(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(tier="ci", recorded=False)


def bars(raised: float) -> pd.DataFrame:
    table = pd.DataFrame({"token": [1, 2], "p": [0.3, 0.7], "q": [0.6, 0.4], "drafted": [False, True]})
    return live(table.assign(h=[1 - raised, raised]))


def curves(gap: float) -> pd.DataFrame:
    return live(grid(delta=(0.1, 1.0), q_n=(0.2, 0.5)).assign(second_order=0.7, exact=0.7 - gap))


def budgets(ratio: float) -> pd.DataFrame:
    return live(grid(delta=(0.01, 0.1, 1.0), q_n=(0.1, 0.5, 0.9)).assign(ratio=[0.5, 0.9, ratio] * 3))


def laws(kl: float) -> pd.DataFrame:
    table = pd.DataFrame({"token": [1, 2], "p": [0.3, 0.7], "q": [0.6, 0.4], "emitted": 0.5, "mixture": 0.5})
    return live(table.assign(kl_emitted=kl, kl_mixture=0.01, delta=0.05))


def prices(gain: float) -> pd.DataFrame:
    rows = grid(kind=("noised", "independent"), rule=tuple(figures.RULES), pair=(0, 1)).assign(V=5, knob=0.01)
    return live(rows.assign(tv=gain, exact_acceptance=0.5, acceptance=0.5 + gain))


def sweeps(level: float) -> pd.DataFrame:
    rows = grid(rule=tuple(figures.RULES), kl=(0.0, 0.1, 0.2))
    return live(rows.assign(knob=rows["kl"], acceptance=level + rows["kl"]))


def flats(ratio: float) -> pd.DataFrame:
    return live(pd.DataFrame({"V": [2, 4], "delta": [0.5, 1 / 6], "kl": 0.69, "ratio": [1.4, ratio], "predicted": 2.0}))


def speeds(best: float) -> pd.DataFrame:
    rows = grid(alpha=(0.8, 0.9), m=(1, 2, 3))
    return live(rows.assign(tokens=1 + rows["m"], speedup=np.where(rows["m"] == 2, best, 1.0)))


def texts(share: float) -> pd.DataFrame:
    cactus = grid(rule=("cactus",), knob=(0.0, 1.0), matched=(0.0,))
    rivals = grid(rule=tuple(rule for rule in figures.RULES if rule != "cactus"), knob=(0.5,), matched=(1.0,))
    rows = pd.concat([cactus, rivals]).merge(grid(shape=("truncated", "plain"), prompt=range(10)), how="cross")
    rows = rows.assign(draft="trained", kept=20.0 + 10 * rows["knob"], blocks=10.0)
    valid = (rows["prompt"] < 10 * share).astype(float)
    return live(rows.assign(valid=valid, fault=np.where(valid > 0, 8.0, 3.0)))


CASES = {
    "overlap": (bars, 0.8, ("is 0.70", "raised to 0.80"), 0.9, ("raised to 0.90",)),
    "raised_probability": (curves, 0.1, ("0.100 at 0.1",), 0.2, ("0.200 at 1",)),
    "budget_map": (budgets, 1.5, ("up to 1.50", "33 %"), 1.8, ("up to 1.80",)),
    "which_law": (laws, 0.4, ("emitted 0.400",), 0.3, ("emitted 0.300",)),
    "price": (prices, 0.1, ("Cactus 0.10 for 0.10",), 0.2, ("Cactus 0.20 for 0.20",)),
    "frontier": (sweeps, 0.5, ("Cactus 0.550",), 0.6, ("Cactus 0.650",)),
    "flat_family": (flats, 4.0, ("to 4 at V = 4",), 5.0, ("to 5 at V = 4",)),
    "speed": (speeds, 2.0, ("2.00 at m = 2 for 0.8",), 3.0, ("3.00 at m = 2",)),
    "trained_pair": (texts, 0.5, ("truncated Cactus 0.50 at 2.0, 0.50 at 3.0",), 0.7, ("0.70 at 2.0",)),
    "where_faults_begin": (texts, 0.5, ("0.50 at 0, 0.50 at 1",), 0.7, ("0.70 at 0",)),
    "heat_of_rules": (texts, 0.5, ("plain, δ = 1: Cactus 0.50 (3.00 kept)",), 0.7, ("Cactus 0.70 (",)),
}


@pytest.mark.parametrize("name", CASES)
def test_alt_text_tells_the_data_and_axes_are_named(name):
    make, number, words, other, other_words = CASES[name]
    figure = getattr(figures, name)(make(number))
    assert isinstance(figure, Figure)
    for word in words:
        assert word in figure.get_label()
    drawn = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    assert all(ax.get_xlabel() for ax in drawn)
    assert not any(ax.get_title() for ax in figure.axes)
    changed = getattr(figures, name)(make(other)).get_label()
    for word in other_words:
        assert word in changed
    assert "$" not in figure.get_label()
    assert "nan" not in figure.get_label().split()


def test_recorded_markers_are_filled_and_live_ones_open():
    def faces(rows: pd.DataFrame) -> set[str]:
        lines = [line for ax in figures.trained_pair(rows).axes for line in ax.get_lines()]
        return {str(line.get_markerfacecolor()) for line in lines if line.get_marker() == "o"}

    recorded = texts(0.5).assign(tier="cpu", recorded=True)
    assert faces(texts(0.5)) == {"none"}
    assert "none" not in faces(pd.concat([recorded, texts(0.9)]))


def test_the_explorer_has_a_frame_for_every_setting_and_stays_small():
    axes = {"delta": (0.0, 0.1, 1.0), "temperature": (0.5, 1.0), "noise": (0.0, 2.0)}
    rows = grid(**axes, token=range(1, 5)).assign(p=0.25, q=0.25, emitted=0.25)
    rows = rows.assign(acceptance=0.9, exact=0.8, tv=0.1, kl=0.2, draft_kl=0.3)
    figure = figures.explorer(rows)
    assert {frame.name for frame in figure.frames} == {
        "|".join(f"{value:g}" for value in each) for each in grid(**axes).to_numpy()
    }
    assert len(figure.to_json()) < 1_500_000
    assert "3 × 2 × 2" in figure.layout.meta["alt"]
