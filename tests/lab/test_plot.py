"""The style of all figures: colours that every eye can tell apart, and files that are equal byte for byte."""

import io
import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import same_color, to_rgb

from derived.lab import stats
from derived.lab.plot import COLOURS, RED, apart, largest, mean_and_reach, plain_log, points, shades

# Machado, Oliveira and Fernandes (2009), severity 1: linear RGB as a dichromat sees it.
VISION = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
}


def lab(colour: str, vision: str) -> np.ndarray:
    """CIE L*a*b* (D65) of a colour under a kind of vision."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(VISION[vision]) @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ seen
    f = np.cbrt(np.maximum(xyz / [0.9505, 1, 1.089], 0.008856))
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def closest(colours, vision: str) -> float:
    return min(np.linalg.norm(lab(a, vision) - lab(b, vision)) for a, b in itertools.combinations(colours, 2))


@pytest.mark.parametrize("vision", VISION)
def test_no_two_colours_look_alike(vision):
    """Ten units of L*a*b* are seen at a glance (one is just noticeable)."""
    assert closest(COLOURS, vision) > 10


def test_the_measure_finds_red_and_green_alike():
    assert closest(("#a52a2a", "#556b2f"), "normal") > 40
    assert closest(("#a52a2a", "#556b2f"), "deuteranopia") < closest(COLOURS, "deuteranopia")


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


def pooled(values: np.ndarray, least: float) -> np.ndarray:
    """The same by pooling adjacent violators, as the algorithm is told in words."""
    order = np.argsort(values, kind="stable")
    pools: list[tuple[float, int]] = []  # mean and size of each pool
    for value in values[order] - least * np.arange(values.size):
        pools.append((float(value), 1))
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            (one, m), (other, k) = pools[-2:]
            pools[-2:] = [((m * one + k * other) / (m + k), m + k)]
    places = np.empty_like(values)
    places[order] = np.repeat([mean for mean, _ in pools], [size for _, size in pools])
    places[order] += least * np.arange(values.size)
    return places


@given(values=st.lists(st.floats(-1, 1), min_size=1, max_size=8), least=st.floats(0.01, 1))
def test_labels_stand_where_pooling_neighbours_puts_them(values, least):
    """Up to 16 roundings of numbers below 1 + 8 least."""
    values = np.array(values)
    bound = 16 * 2**-53 * (1 + 8 * least)
    np.testing.assert_allclose(apart(values, least), pooled(values, least), rtol=0, atol=bound)


def test_labels_that_have_room_stay():
    np.testing.assert_array_equal(apart([3.0, 0.0, 1.5], 1.0), [3.0, 0.0, 1.5])


def test_the_largest_record_is_shown_and_the_live_rows_without_one():
    live = pd.DataFrame({"tier": "ci", "recorded": False, "x": [1]})
    records = [pd.DataFrame({"tier": tier, "recorded": True, "x": [x]}) for tier, x in (("cpu", 2), ("gpu", 3))]
    assert largest(live)["x"].tolist() == [1]
    assert largest(pd.concat([*records[:1], live]))["x"].tolist() == [2]
    assert largest(pd.concat([*records, live]))["x"].tolist() == [3]


@pytest.mark.parametrize("count", [1, 2, 7])
def test_shades_run_from_dark_to_light_and_end_before_the_palest(count):
    colours = shades(count)
    light = [lab(colour, "normal")[0] for colour in colours]
    assert len(colours) == count
    assert light == sorted(light)
    assert light[-1] < 85


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
