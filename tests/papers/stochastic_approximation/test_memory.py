"""Topic memory: heavy-tailed sojourns and fractional noise against their exact laws, and the count of excursions."""

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.rng import stream
from derived.papers.stochastic_approximation import FractionalGaussian, HeavyTailedRenewal, memory
from derived.papers.stochastic_approximation.memory import (
    Freezes,
    Line,
    LongRange,
    PhaseDiagram,
    Renewal,
    SamplePaths,
    Shuffled,
    exact_slope,
    excursions,
)
from derived.papers.stochastic_approximation.model.theory import (
    expected_freezes,
    filtered_variance,
    fractional_autocovariance,
    renewal_autocovariance,
    renewal_mean,
    renewal_threshold,
)

FACTS = {"seed": 0, "device": torch.device("cpu"), "dtype": torch.float64}
EXPERIMENTS = (Renewal, Freezes, Line, Shuffled, PhaseDiagram, SamplePaths, LongRange)


@pytest.mark.parametrize("beta", [1.2, 1.5, 2.5])
def test_the_covariance_of_a_renewal_stream_by_counting_switches(beta):
    """Slow twin: the law of the number of switches, one sojourn after the other."""
    lags = 12
    longer = np.append(1.0, np.arange(1.0, lags + 1) ** -beta)
    law = longer[:-1] - longer[1:]  # P(tau = t + 1), t = 0..
    residual = np.append([0.0], longer[:lags]) / renewal_mean(beta)  # P(R = r) at r = 0..lags
    found = renewal_autocovariance(beta, lags)
    for k in range(lags):
        parity, at = 0.0, residual.copy()  # at[r]: probability that a switch, the j-th, happens at r
        none = 1 - residual[: k + 1].sum()
        sign, parity = -1.0, none
        for _ in range(k):
            after = [1 - law[: k - r].sum() for r in range(k + 1)]  # no further switch up to k
            parity += sign * sum(at[r] * after[r] for r in range(1, k + 1))
            nxt = np.zeros_like(at)
            for r in range(1, k + 1):
                for tau in range(1, k - r + 1):
                    nxt[r + tau] += at[r] * law[tau - 1]
            at, sign = nxt, -sign
        assert abs(found[k] - parity / 4) <= 1e-13


@pytest.mark.parametrize("beta", [1.3, 1.7])
def test_a_renewal_stream_is_stationary_and_has_its_covariance(beta):
    y = HeavyTailedRenewal(beta).draw(300, 4000, stream(0, "renewal")).y
    assert set(y.unique().tolist()) == {0.0, 1.0}
    gamma = renewal_autocovariance(beta, 300)
    for start in (0, 290):  # replicas are independent: errors are those of 4000 coins
        for k in (1, 2, 5):
            product = (y[start] - 0.5) * (y[start + k] - 0.5)
            assert abs(product.mean() - gamma[k]) <= 4 * 0.25 / 4000**0.5
    square = (y.mean(dim=0) - 0.5).square()
    assert abs(square.mean() - filtered_variance(np.full(300, 1 / 300), gamma)) <= 4 * square.std() / 4000**0.5


def test_sojourns_have_their_tail():
    y = HeavyTailedRenewal(1.5).draw(2000, 500, stream(0, "tail")).y
    sojourns = []
    for column in y.mT.numpy():
        sojourns.extend(np.diff(np.flatnonzero(np.diff(column))[:40]))  # early ones: none is cut off by the end
    sojourns = np.array(sojourns)
    for t in (1, 2, 5):
        share, exact = (sojourns > t).mean(), t**-1.5
        assert abs(share - exact) <= 4 * (exact * (1 - exact) / len(sojourns)) ** 0.5 + 1e-9
    assert sojourns.min() >= 2


@pytest.mark.parametrize(("H", "replicas"), [(0.3, 3000), (0.5, 3001), (0.8, 3000)])
def test_fractional_noise_has_its_covariance(H, replicas):
    y = FractionalGaussian(H).draw(40, replicas, stream(0, "fractional")).y
    assert y.shape == (40, replicas)
    gamma = fractional_autocovariance(H, 40)
    for k in (0, 1, 3, 20):
        product = y[5] * y[5 + k]
        assert abs(product.mean() - gamma[k]) <= 4 * product.std() / replicas**0.5
    assert abs((y[:, :10] * y[:, -10:]).mean()) <= 0.2  # real and imaginary parts do not know each other


def test_sums_of_fractional_noise_scale():
    """Var(Y_1 + ... + Y_n) = n^{2H}, exactly."""
    for H in (0.2, 0.5, 0.9):
        assert abs(filtered_variance(np.ones(500), fractional_autocovariance(H, 500)) / 500 ** (2 * H) - 1) <= 1e-10


def test_thresholds_and_refusals():
    assert renewal_threshold(2.0) == 0.5
    assert abs(renewal_mean(2.0) - 1 - np.pi**2 / 6) <= 1e-14
    for beta in (1.0, 0.5, np.inf, np.nan):
        with pytest.raises(ValueError, match="beta"):
            renewal_threshold(beta)
    with pytest.raises(ValueError, match="H = 0"):
        fractional_autocovariance(0.0, 3)


def test_freezes_are_counted_one_by_one():
    """Slow twin: walk over the sojourns of each stream."""
    small, alpha = Freezes(windows=(8, 16), replicas=1, block=1), 0.55
    y = HeavyTailedRenewal(1.5).draw(60, 30, stream(0, "count")).y
    found = small.counts(y, alpha)
    for r in range(30):
        switches = [n for n in range(2, 61) if y[n - 1, r] != y[n - 2, r]]  # times count from 1
        ends = [*switches[1:], 10**9][: len(switches)]
        for place, N in enumerate((8, 16)):
            lengths = zip(switches, ends, strict=True)
            count = sum(N <= n < 2 * N and end - n > n**alpha for n, end in lengths)
            assert found[place, r] == count


def test_expected_freezes_are_the_sum_of_tails():
    exact = sum(max(1, int(n**0.6)) ** -1.5 for n in range(50, 100)) / renewal_mean(1.5)
    assert abs(expected_freezes(1.5, 0.6, 1.0, 50) - exact) <= 1e-12
    for bad in ({"c": -1.0}, {"alpha": float("nan")}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            expected_freezes(**{"beta": 1.5, "alpha": 0.6, "c": 1.0, "N": 50} | bad)
    few, many = (expected_freezes(1.5, 0.9, 1.0, N) for N in (2**12, 2**8))
    assert few < many  # above the threshold they die out
    few, many = (expected_freezes(1.5, 0.55, 1.0, N) for N in (2**8, 2**12))
    assert few < many


def test_an_excursion_is_seen_in_its_window_alone():
    x = torch.full((21, 2), 0.5)  # times 2..22
    x[9, 1] = 0.81  # time 11
    assert excursions(x, (2, 6, 11), 2).tolist() == [[False, False], [False, True], [False, True]]
    assert not excursions(x, (4,), 2).any()  # the window [4, 8] ends before
    x[9, 1], x[10, 0] = 0.5, 0.1  # time 12
    assert excursions(x, (6, 5), 2).tolist() == [[True, False], [False, False]]  # 12 is the end of [6, 12]


def test_rows_are_whole(rows):
    table = rows[Freezes]
    assert len(table) == 2 * 2 * 40
    assert (table.groupby(["alpha", "N"])["predicted"].nunique() == 1).all()
    phase = rows[PhaseDiagram]
    assert phase["share"].between(0, 1).all()
    heavy, light = (phase[phase["beta"] == beta]["share"].mean() for beta in (1.2, 2.5))
    assert heavy > light
    assert rows[SamplePaths]["x"].between(0, 1).all()
    assert (abs(rows[LongRange]["ratio"] - 1) < 1).mean() > 0.9


def test_errors_under_fractional_noise_are_flat_once_scaled(rows):
    """And those of a running mean of white noise are n^-1/2 exactly."""
    table = rows[LongRange]
    scaled = table.groupby(["H", "alpha"])["scaled"]
    assert (scaled.max() / scaled.min() < 1.1).all()
    assert table[table["H"] == 0.5]["scaled"].to_numpy() == pytest.approx(1)


def test_shuffled_streams_are_followed_by_the_loop():
    """Slow twin: paths that leave 0.2 .. 0.8 between N and 2 N, where a step is n^-alpha."""
    small = Shuffled(window=64, replicas=60)
    y = HeavyTailedRenewal(1.5).draw(128, 60, stream(0, "control")).y
    x, far = torch.full((60,), 0.5, dtype=torch.float64), []
    for n, value in enumerate(y - y.mean(dim=0) + 0.5, start=1):
        x = x + n**-small.alpha * (value - x)
        far.append((x - 0.5).abs() > 0.3)
    table = small.run({"data": "as drawn"}, **FACTS)
    assert table["excursion"].tolist() == torch.stack(far[63:]).any(dim=0).tolist()


def test_windows_of_the_line_are_those_of_the_loop():
    """Slow twin of one condition; and no shuffled stream is far off."""
    small = Line(windows=(32, 128), replicas=40, block=20)
    table = small.run({"beta": 1.5, "data": "as drawn"}, **FACTS)
    y = torch.cat([HeavyTailedRenewal(1.5).draw(256, 20, stream(0, "trend", block)).y for block in range(2)], dim=1)
    for side, alpha in (("below", 2 / 3 - 0.1), ("above", 2 / 3 + 0.1)):
        x, far = torch.full((40,), 0.5, dtype=torch.float64), []
        for n, value in enumerate(y, start=1):
            x = x + n**-alpha * (value - x)
            far.append((x - 0.5).abs() > 0.3)
        early, late = (torch.stack(far[N - 1 : 2 * N]).any(dim=0).double() for N in (32, 128))
        found = table[table["side"] == side]
        assert (found["early"].to_numpy() == early.numpy()).all()
        assert (found["trend"].to_numpy() == ((late - early) * (1 if side == "below" else -1)).numpy()).all()
    shuffled = Line(windows=(256, 1024), replicas=40, block=40).run({"beta": 1.5, "data": "shuffled"}, **FACTS)
    assert shuffled["late"].mean() < 0.05


def test_the_phase_diagram_counts_the_paths_of_the_loop():
    """Slow twin of one condition: paths that leave 0.2 .. 0.8 between N and 2 N."""
    small = PhaseDiagram(windows=(8, 32), alphas=(0.51, 1.0), replicas=40)
    table = small.run({"beta": 1.2}, **FACTS)
    y = HeavyTailedRenewal(1.2).draw(64, 40, stream(0, "phase")).y
    for alpha in small.alphas:
        x, far = torch.full((40,), 0.5, dtype=torch.float64), []
        for n, value in enumerate(y, start=1):
            x = x + n**-alpha * (value - x)
            far.append((x - 0.5).abs() > 0.3)
        shares = [float(torch.stack(far[N - 1 : 2 * N]).any(dim=0).double().mean()) for N in small.windows]
        assert table[table["alpha"] == alpha].sort_values("N")["share"].tolist() == shares
    assert (table["replicas"] == 40).all()


def test_typical_errors_are_those_of_running_means():
    table = Renewal(groups=2, size=9, first=50, steps=200, points=2).run({}, **FACTS)
    for group, case in table.groupby("group"):
        y = HeavyTailedRenewal(1.5).draw(200, 9, stream(0, "sojourns", group)).y
        off = np.abs(y.numpy().cumsum(axis=0)[[49, 199]] / np.array([[50], [200]]) - 0.5)
        assert np.allclose(case["median"], np.median(off, axis=1), atol=1e-12)
        assert np.allclose(case["rmse"], (off**2).mean(axis=1) ** 0.5, atol=1e-12)


def test_a_shuffle_takes_the_excursions_away(rows):
    share = rows[Shuffled].groupby("data")["excursion"].mean()
    assert share["as drawn"] > 0.3
    assert share["shuffled"] < 0.1


def test_a_slope_on_a_table_with_a_known_answer():
    n = np.array([10, 100, 1000])
    one = pd.DataFrame({"group": 0, "n": n, "exact": 3.0 * n**-0.25})
    assert abs(exact_slope(one).value + 0.25) <= 1e-12
    groups = pd.concat([one, one.assign(group=1)], ignore_index=True)
    assert exact_slope(groups) == exact_slope(one)
    for row in (0, 5):  # also in a group that the slope does not need
        with pytest.raises(ValueError, match="1 of 6 rows"):
            exact_slope(groups.assign(exact=groups["exact"].drop(row)))


def test_a_missing_number_decides_nothing(rows, undecided_without):
    read = undecided_without(rows)
    assert all(read.values()), read


def test_where_sides_are_exchanged_in_every_second_stream_the_side_says_nothing():
    """SA-6.g: trends of 0.2 below and 0.6 above become their half differences, -0.2 and 0.2."""
    cells = [
        {"data": "as drawn", "beta": beta, "replicate": r, "side": side, "trend": trend}
        for beta in (1.3, 1.5)
        for r in range(4)
        for side, trend in (("below", 0.2), ("above", 0.6))
    ]
    table = pd.DataFrame(cells)
    null = memory.sides_exchanged(table)
    even = table["replicate"] % 2 == 0
    pd.testing.assert_frame_equal(null[even], table[even])
    means = null.groupby("side")["trend"].mean()
    assert means["below"] == pytest.approx(-0.2)
    assert means["above"] == pytest.approx(0.2)
    assert memory.TREND(null).value == pytest.approx(-0.2)
    assert memory.TREND(table).value == pytest.approx(0.2)
