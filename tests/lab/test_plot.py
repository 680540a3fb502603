"""The style of all figures: colours that every eye can tell apart, and files that are equal byte for byte."""

import io
import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from derived.lab import stats
from derived.lab.plot import COLOURS, apart, largest, mean_and_reach, shades

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
    assert mean_and_reach(pd.Series([2.0] * 6)) == (2.0, 0.0)
