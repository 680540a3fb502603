"""What the paper prints and what counting says of it."""

import pytest

from derived.papers.in_place_ttt.data import published


def test_standard_errors_of_independent_answers():
    """By hand: 4.4 points at 64k between 74.3 and 78.7 per cent of 1,300."""
    row = published.gains().query("model == 'Qwen3-4B' and length == '64k'").iloc[0]
    assert row["gain"] == pytest.approx(4.4)
    assert row["error"] == pytest.approx((74.3 * 25.7 / 1300 + 78.7 * 21.3 / 1300) ** 0.5)
    assert row["errors"] == pytest.approx(row["gain"] / row["error"])


def test_errors_halve_with_four_times_the_items():
    one, four = published.gains(100), published.gains(400)
    assert (one["error"] / four["error"]).to_numpy() == pytest.approx(2)


def test_all_scores_of_the_three_tables_are_there():
    assert published.gains().groupby("model", sort=False).size().to_dict() == {
        "Qwen3-4B": 7,
        "LLaMA-3.1-8B": 5,
        "Qwen3-14B": 5,
        "4B from scratch, full attention": 3,
        "4B from scratch, window attention": 3,
    }
    table = published.gains().query("scratch")
    assert len(table) == 6
    assert (table["gain"] > 2).all()
    with pytest.raises(ValueError, match="items = 0"):
        published.gains(0)
