"""Each figure on small hand-made rows: axes named, and alt text that says what these data say, not what others would.

rows with ``recorded`` come once from the live run alone and once with a record beside it.
"""

from functools import partial

import matplotlib
import numpy as np
import pandas as pd
import pytest

from derived.papers.ols_attention import layer, memory, softmax, training
from derived.papers.ols_attention.model.theory import spectral_filter

matplotlib.use("agg")

FIGURES = {
    "doubled": layer.doubled,
    "attention_is_projection": layer.attention_is_projection,
    "spectral_filters": partial(layer.spectral_filters, exact=spectral_filter),
    "end_points": training.end_points,
    "structure": training.structure,
    "shift": layer.shift,
    "loads": memory.loads,
}


def grid(**axes) -> pd.DataFrame:
    """All combinations of the given values."""
    return pd.MultiIndex.from_product(axes.values(), names=axes).to_frame(index=False)


def live(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(tier="ci", recorded=False)


def with_record(rows: pd.DataFrame) -> pd.DataFrame:
    """A record of the same rows beside the live ones."""
    return pd.concat([rows.assign(tier="cpu", recorded=True), live(rows)], ignore_index=True)


def entries(shift: float) -> pd.DataFrame:
    hat = np.array([[0.9, -0.3], [-0.3, 0.1]])
    rows = grid(i=(0, 1), j=(0, 1))
    return rows.assign(hat=hat.ravel(), attention=hat.ravel() + shift)


def filters(power: float) -> pd.DataFrame:
    rows = grid(weights=("ols", "repaired", "regularised"), eigenvalue=(0.1, 1.0, 10.0)).assign(ridge=1.0)
    once = rows["eigenvalue"] / (1 + rows["eigenvalue"])
    exponent = rows["weights"].map({"ols": 0.0, "repaired": power, "regularised": 2 * power})
    return rows.assign(factor=once**exponent)


def course(end: float = 1.0) -> pd.DataFrame:
    rows = grid(
        read_out=("frozen", "recomputed", "trained"), optimizer=("adam", "gd"), l0=(-0.5, 0.5), epoch=(0, 5, 10)
    )
    target = np.where(rows["l0"] > 0, end, np.where(rows["read_out"] == "recomputed", -end, 0.0))
    l = rows["l0"] + (target - rows["l0"]) * rows["epoch"] / 10
    return rows.assign(l=l, P=np.sqrt(1 + (l**2 - rows["l0"] ** 2) / 3), inverse_root=end, s=1 / end, beta=2.0)


def structures(missed: float) -> pd.DataFrame:
    rows = grid(p=(2,), m=(1, 2), replicate=(0, 1)).assign(relative_loss=[1e-9, 0.0, 1e-12, 1e-10])
    return rows.assign(rank=rows["m"], structure_gap=np.where(rows["m"] == 2, 1e-8, missed))


def shifts(error: float) -> pd.DataFrame:
    rows = pd.concat([grid(shift=("scale",), amount=(0.25, 1.0, 4.0)), grid(shift=("rotation",), amount=(0.0, 1.0))])
    rows = rows.merge(grid(method=("self", "cross", "labels"), replicate=(0, 1, 2)), how="cross")
    exact = np.where(rows["method"] == "self", error, 1e-15)
    return rows.assign(error=exact * (1 + 0.01 * rows["replicate"]))


def curves(level: float) -> pd.DataFrame:
    rows = grid(curve=("softmax", "read-out"), beta=(1e-3, 1.0, 1e3), x=(-1.0, 0.0, 1.0))
    rows = rows.assign(y=np.where(rows["curve"] == "softmax", level * np.sign(rows["x"]), 0.5 * rows["x"]))
    fixed = grid(curve=("data", "least squares"), x=(-1.0, 0.0, 1.0)).assign(y=lambda some: 0.5 * some["x"])
    return pd.concat([fixed.assign(beta=np.nan), rows], ignore_index=True)


def loads(rate: float) -> pd.DataFrame:
    kinds = grid(question=("repair",), attention=("linear", "softmax"), ensemble=("sphere",), step=("attention",))
    rows = kinds.merge(grid(d=(8, 12, 16), replicate=(0, 1)), how="cross")
    K = np.where(rows["attention"] == "linear", rate * rows["d"], np.exp(rate * rows["d"]))
    return rows.assign(K=K * (1 + 0.01 * rows["replicate"]))


def answers(times: float) -> pd.DataFrame:
    x = np.linspace(-1, 1, 5)
    return pd.DataFrame({"x": x, "y": 0.7 * x, "fit": 0.5 * x + 1e-9, "doubled": times * (0.5 * x + 1e-9)})


# figure, rows that a number makes, that number and what the alt text then says, another number and what it says then
CASES = {
    "doubled": (answers, 8.0, ("slope 0.50", "lie 8 times too far"), 4.0, ("lie 4 times too far",)),
    "attention_is_projection": (entries, 1e-16, ("1.1e-16", "sum 1.000"), 0.01, ("1.0e-02",)),
    "spectral_filters": (filters, 1.0, ("within 0e+00", "penalty 1"), 1.5, ("within 1e-01",)),
    "end_points": (course, 1.0, ("from -0.5 to 0.000", "from 0.5 to 1.000"), 0.8, ("1/s is 0.800",)),
    "structure": (
        structures,
        0.5,
        (" runs: ", "2 of 2 fit, 0 found the map, median gap 5.0e-01"),
        0.001,
        ("1.0e-03",),
    ),
    "shift": (shifts, 2.0, ("errs by 2.0 at scale 4", "2.02 after 1 quarter"), 3.0, ("errs by 3.0", "below 1e-15")),
    "loads": (loads, 0.5, ("linear attention 8 in 16", "softmax attention 2996"), 0.25, ("linear attention 4 in 16",)),
}


RECORDED = [name for name in CASES if name not in ("doubled", "attention_is_projection", "spectral_filters")]


@pytest.mark.parametrize(("name", "record"), [(n, live) for n in CASES] + [(n, with_record) for n in RECORDED])
def test_alt_text_tells_the_data_and_axes_are_named(name, record, tells):
    make, number, words, other, other_words = CASES[name]
    figure, changed = (FIGURES[name](record(make(each))) for each in (number, other))
    tells(figure, *words)
    tells(changed, *other_words)
    assert changed.get_label() != figure.get_label()


def test_the_explorer_opens_at_a_beta_of_its_rows_and_says_what_it_shows():
    rows = live(curves(1.0))
    figure = softmax.dial_explorer(rows)
    (slider,) = figure.layout.sliders
    assert len(slider.steps) == 121
    assert slider.steps[slider.active].label == "1"
    assert "from 0.001 to 1000" in figure.layout.meta["alt"]
    shown = {"rescaled read-out": "read-out", "softmax output": "softmax", "least squares": "least squares"}
    for trace in figure.data[:3]:
        part = rows[(rows["curve"] == shown[trace.name]) & rows["beta"].isin([1.0, np.nan])]
        np.testing.assert_allclose(trace.y, part["y"], atol=1e-4)
