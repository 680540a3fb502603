"""The S&P 500 and speeches as tokens: the layer's error is the formula's, `ols-held-out`."""

import numpy as np
import pandas as pd
import pytest
import torch
from here import needs
from torch.linalg import matrix_norm as norm

from derived.lab.experiment import run_experiment
from derived.lab.rng import stream
from derived.papers.ols_attention.data.market import absolute_returns
from derived.papers.ols_attention.data.sentences import sentences, speeches
from derived.papers.ols_attention.held_out import eras
from derived.papers.ols_attention.model import theory
from derived.papers.ols_attention.real import CLAIMS, Eras, Quarters, errors

QUARTERS, ERAS = CLAIMS


@needs("arch")
def test_the_series_is_daily_and_positive():
    days, changes = absolute_returns()
    assert len(days) == len(changes) > 5000
    assert days.is_monotonic_increasing
    assert 0 <= changes.min() < 0.5 < changes.mean() < changes.max() < 15


@needs("arch")
def test_the_error_of_a_quarter_is_that_of_the_formula():
    """The frozen layer has the coefficients Sigma^-1 Sigma' B, where Sigma' is the quarter's own second moment."""
    experiment = Quarters.at("ci")
    rows = experiment.run({}, seed=0, device=torch.device("cpu"), dtype=torch.float64)
    series = torch.tensor(absolute_returns()[1])
    tokens = series.unfold(0, 5, 1)[:-1]
    X, Y, fresh = tokens[:1000], series[5:1005, None], tokens[1000:1063]
    B = torch.linalg.lstsq(X, Y).solution
    effective = torch.linalg.solve(theory.second_moment(X), theory.second_moment(fresh)) @ B
    expected = norm(fresh @ (effective - B)) / norm(fresh @ B)
    first = rows[(rows["quarter"] == 0) & (rows["order"] == "in order")].set_index("method")["error"]
    assert abs(first["self"] - float(expected)) < 1e-9
    assert first["cross"] < 1e-12 < 0.05 < first["self"]
    assert rows["quarter"].nunique() == (len(tokens) - 1000) // 63
    anything = rows[(rows["quarter"] == 0) & (rows["order"] == "responses") & (rows["method"] == "self")]
    any_day = torch.randperm(len(tokens), generator=stream(0, "dealt responses"))[:1000]
    B = torch.linalg.lstsq(tokens[:1000], series[5 + any_day, None]).solution
    effective = torch.linalg.solve(theory.second_moment(tokens[:1000]), theory.second_moment(tokens[1000:1063])) @ B
    assert anything["error"].item() == pytest.approx(float(norm(fresh @ (effective - B)) / norm(fresh @ B)), abs=1e-9)
    dealt = torch.randperm(len(series), generator=stream(0, "dealt to quarters"))
    for order, places in (("days", dealt), ("windows", dealt[dealt < len(tokens)])):
        windows = series[dealt].unfold(0, 5, 1) if order == "days" else tokens[places]
        target = series[dealt][5:1005, None] if order == "days" else series[places[:1000] + 5, None]
        X, fresh = windows[:1000], windows[1000:1063]
        B = torch.linalg.lstsq(X, target).solution
        effective = torch.linalg.solve(theory.second_moment(X), theory.second_moment(fresh)) @ B
        one = rows.query(f"quarter == 0 and order == '{order}' and method == 'self'")["error"].item()
        assert one == pytest.approx(float(norm(fresh @ (effective - B)) / norm(fresh @ B)), abs=1e-9)


def test_quarters_are_ranked_by_the_change_of_their_second_moment():
    """`OLS-8.b`: growth and shrinking count alike, and an error that does not follow is refused."""
    growth = np.array([0.2, 0.7, 1.1, 1.5, 3.0])
    tables = [
        pd.DataFrame({"quarter": range(5), "method": "self", "order": order, "growth": growth, "error": error})
        for order, error in (("in order", 2 * abs(growth - 1)), ("windows", growth))
    ]
    rows = pd.concat([*tables, tables[0].assign(method="cross", error=0.0)], ignore_index=True)
    found = QUARTERS.measure(rows)
    assert (found.value, found.n) == (pytest.approx(1.0), 5)
    assert QUARTERS.judge(QUARTERS.control(rows))[0] == "fails"


def drawn(generator: torch.Generator, *scales: float) -> list[torch.Tensor]:
    """A speech of 40 random tokens for each scale."""
    return [c * torch.randn(40, 3, generator=generator, dtype=torch.float64) for c in scales]


def test_the_error_of_a_speech_is_that_of_the_formula_and_leaves_its_speaker_out():
    tokens, era = drawn(stream(0, "eras"), 1, 1, 1, 2, 2, 2, 2), np.array([0, 0, 0, 1, 1, 1, 1])
    frozen, refitted = errors(tokens, era, np.array([*"abccdce"]), 3)
    for found, others in ((frozen, (0, 1)), (refitted, (4, 6))):
        X = torch.cat([tokens[each][:-1] for each in others])
        B = torch.linalg.lstsq(X, torch.cat([tokens[each][1:] for each in others])).solution
        fresh = tokens[3][:-1]
        effective = torch.linalg.solve(theory.second_moment(X), theory.second_moment(fresh)) @ B
        assert found == pytest.approx(float(norm(fresh @ (effective - B)) / norm(fresh @ B)))
    assert 2 < frozen < 5, "near the 3 of twice as large inputs"
    assert refitted < 1


def table(in_order: float, shuffled: float) -> pd.DataFrame:
    """Rows of ``Eras``: six eras, of which one has more than half of the speeches and did not change."""
    rows = [
        {"order": order, "place": k, "name": str(k), "year": 1900 + k, "era": k % 6 if k < 12 else 0, "refitted": 0.5,
         "frozen": 0.5 * (ratio if k % 6 and k < 12 else 1.0) * (1 + 0.001 * (k % 4))}
        for order, ratio in (("in order", in_order), ("shuffled", shuffled)) for k in range(24)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_eras_count_once_and_the_null_arm_is_the_shuffled_order():
    rows = table(1.6, 1.0)
    found = ERAS.measure(rows)
    assert found.n == 6
    assert found.value == pytest.approx(1.6 ** (5 / 6), abs=0.01)
    swapped = ERAS.measure(rows.rename(columns={"frozen": "refitted", "refitted": "frozen"}))
    assert swapped.value == pytest.approx(1 / found.value)
    assert (swapped.low, swapped.high) == (pytest.approx(1 / found.high), pytest.approx(1 / found.low))
    assert ERAS.control(rows).value == pytest.approx(1.0, abs=0.01)
    assert ERAS.judge(ERAS.control(rows))[0] == "fails"
    with pytest.raises(ValueError, match="no number"):
        ERAS.measure(rows.assign(frozen=np.nan))
    label = eras(rows.assign(tier="ci", recorded=False)).get_label()
    assert "each of 24 speeches" in label
    assert "by chance: 1.00" in label


def test_sentences_are_in_order_and_none_is_a_heading():
    text = "I.\n\nThe state of the\nunion is strong. Is it so? We have never had better days than these!"
    assert sentences(text) == ["The state of the union is strong.", "We have never had better days than these!"]


@needs("minilm", "stdlib")
def test_speeches_are_read_and_texts_of_ones_own_as_well(tmp_path):
    small = Eras.at("tiny")
    rows = run_experiment(small, seed=0, device="cpu")
    assert set(rows["order"]) == {"in order", "shuffled"}
    assert len(rows) == 2 * small.per_era
    assert (rows[["frozen", "refitted"]] > 0).all(axis=None)
    years = [year for _, year, _ in speeches(10)]
    assert years == sorted(years)
    assert (years[0], years[-1]) == (1790, 2021)
    with pytest.raises(ValueError, match="no file"):
        speeches(2, str(tmp_path))
    for name, text in (("b", "Two."), ("a", "One.")):
        (tmp_path / f"{name}.txt").write_text(text, "utf-8")
    assert speeches(2, str(tmp_path)) == [("a", 0, "One."), ("b", 1, "Two.")]
    with pytest.raises(ValueError, match="2 texts, and 3"):
        speeches(3, str(tmp_path))
