"""The style of all figures: colours that every eye can tell apart, and files that are equal byte for byte."""

import io
import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import same_color

from derived.lab import stats
from derived.lab.plot import RED, apart, largest, mean_and_reach, plain_log, points


# Machado, Oliveira and Fernandes (2009), severity 1: linear RGB as a dichromat sees it.
def test_two_drawings_of_the_same_figure_are_equal_byte_for_byte():
    def draw() -> bytes:
        figure, ax = plt.subplots()
        ax.plot([0, 1], label="a")
        ax.legend()
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
        plt.close(figure)
        return buffer.getvalue()

    assert draw() == draw()


@pytest.mark.parametrize("values", [[1.0], [3.0, 1.0, 2.0], [0.0, 0.0, 0.0, 5.0], [2.0, 1.9, 0.0]])
def test_labels_stand_apart_in_their_order_and_around_their_values(values):
    values = np.array(values)
    places = apart(values, 1.0)
    order = np.argsort(values, kind="stable")
    assert (np.diff(places[order]) > 1 - 1e-12).all()
    assert places.mean() == pytest.approx(values.mean())
    steps = np.array([-1e-3, 0.0, 1e-3])
    for moves in itertools.product(steps, repeat=len(values)):  # the nearest of all places that are apart
        other = places + np.array(moves)
        if (np.diff(other[order]) >= 1).all():
            assert np.square(other - values).sum() >= np.square(places - values).sum() - 1e-12


def test_the_largest_record_is_shown_and_the_live_rows_without_one():
    live = pd.DataFrame({"tier": "ci", "recorded": False, "x": [1]})
    records = [pd.DataFrame({"tier": tier, "recorded": True, "x": [x]}) for tier, x in (("cpu", 2), ("gpu", 3))]
    assert largest(live)["x"].tolist() == [1]
    assert largest(pd.concat([*records[:1], live]))["x"].tolist() == [2]
    assert largest(pd.concat([*records, live]))["x"].tolist() == [3]


def test_mean_and_reach_are_those_of_the_interval():
    values = pd.Series([1.0, 2.0, 4.0, 5.0, 8.0])
    one = stats.mean(values)
    value, reach = mean_and_reach(values)
    assert value == pytest.approx(4.0)
    assert (value - reach, value + reach) == pytest.approx((one.low, one.high))
    assert mean_and_reach(values[:3]) == (pytest.approx(7 / 3), 0.0)
    assert mean_and_reach(values[:4])[1] > 0
    assert mean_and_reach(pd.Series([2.0] * 6)) == (2.0, 0.0)


def test_points_are_means_with_intervals_recorded_filled_and_live_open():
    y = {(True, 1): [1.0, 2.0, 4.0, 5.0, 8.0], (True, 2): [3.0] * 4, (False, 1): [0.0, 1.0]}
    tables = [pd.DataFrame({"recorded": recorded, "n": n, "y": values}) for (recorded, n), values in y.items()]
    figure, ax = plt.subplots()
    drawn = points(ax, pd.concat(tables), "n", "y", RED, "s")
    one = stats.mean(y[True, 1])
    expected = [(1, 0.5, 0.0, False), (1, 4.0, (one.high - one.low) / 2, True), (2, 3.0, 0.0, True)]
    assert list(drawn.columns) == ["n", "value", "reach", "recorded"]
    assert [tuple(row) for row in drawn.to_numpy()] == [pytest.approx(row) for row in expected]
    live, recorded = (container[0] for container in ax.containers)
    assert live.get_markerfacecolor() == "none"
    assert same_color(recorded.get_markerfacecolor(), RED)
    assert recorded.get_markersize() < live.get_markersize()  # both are seen where they coincide
    assert recorded.get_xydata().tolist() == [[1.0, 4.0], [2.0, 3.0]]
    ends = [path.vertices[:, 1].tolist() for path in ax.containers[1][2][0].get_paths()]
    assert ends[0] == pytest.approx([one.low, one.high])
    plt.close(figure)


def test_plain_numbers_stand_at_the_ticks_of_a_logarithmic_axis():
    figure, ax = plt.subplots()
    ax.set(yscale="log", ylim=(1, 3000))
    plain_log(ax.yaxis, (2, 30, 1000))
    figure.canvas.draw()
    assert [text.get_text() for text in ax.get_yticklabels()] == ["2", "30", "1000"]
    assert not any(text.get_text() for text in ax.get_yticklabels(minor=True))
    plt.close(figure)
