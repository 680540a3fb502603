"""Where an iterate goes: windows, the equation of the component, one stream or many, larger steps, the inclusion."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from derived.lab.rng import stream
from derived.papers.stochastic_approximation.data.environments import DoublingBlocks, HeavyTailedRenewal, Mixture
from derived.papers.stochastic_approximation.model.core import StepSize, robbins_monro
from derived.papers.stochastic_approximation.model.linear import coupled_worlds
from derived.papers.stochastic_approximation.model.theory import expected_freezes, mean_field_root, renewal_mean
from derived.papers.stochastic_approximation.model.windows import extreme_sequence, window_bounds, window_sums

examples = settings(derandomize=True, max_examples=40, deadline=None, database=None)
TWO = Mixture(means=(-1.0, 2.0), noise=(0.5, 0.5), weights=(0.5, 0.5))


@examples
@given(st.integers(2, 60), st.integers(0, 10**6), st.floats(0, 2))
def test_a_window_is_bounded_by_averages(start, draw, alpha):
    """`sa-window`: against sums written out, for steps that fall as n^-alpha and data of any sign."""
    g = torch.randn(60, 2, generator=stream(draw, "g"), dtype=torch.float64) + 0.3
    steps = StepSize.power(alpha=alpha).values(60)
    sums, bounds = window_sums(steps, g, start), window_bounds(steps, g, start)
    for k in {start, (start + 60) // 2, 60}:
        plain = sum(steps[i - 1] * g[i - 1] for i in range(start, k + 1))
        means = max((g[:j, 0].sum() / j).abs() for j in range(start - 1, k + 1))
        bound = means * (2 * (start - 1) * steps[start - 1] + steps[start - 1 : k].sum())
        assert (plain - sums[k - start]).abs().max() <= 1e-12
        assert abs(bound - bounds[k - start, 0]) <= 1e-12
    assert (sums.abs() <= bounds * (1 + 1e-12)).all()


def test_the_bound_on_windows_is_attained():
    """`sa-window`: by S_{n-1} = -(n-1), then S_i = i; with any factor below 1 it would fail."""
    for start in (2, 7, 50):
        steps, g = StepSize.power(alpha=0.8).values(80), extreme_sequence(80, start)
        assert (window_sums(steps, g, start) / window_bounds(steps, g, start) - 1).abs().max() <= 1e-12
    with pytest.raises(ValueError, match="steps = 2"):
        extreme_sequence(2, 3)  # no window begins in so few
    assert extreme_sequence(3, 3).tolist() == [-1, -1, 5]
    for refused in (lambda: extreme_sequence(80, 1), lambda: window_sums(steps, g, 1)):
        with pytest.raises(ValueError, match="start = 1"):  # there is no average before the first step
            refused()


def pulled(x, y):
    """A field that is not linear, with the Lipschitz constant 3."""
    return y - x - 2 * torch.tanh(x)


def turning(x, y):
    """Turns with the speed y, and is drawn to the unit circle: it never comes to rest."""
    length = x.norm(dim=-1, keepdim=True)
    return y.unsqueeze(-1) * torch.stack([-x[..., 1], x[..., 0]], dim=-1) + x * (1 - length)


def test_the_path_follows_the_equation_of_its_component():
    """`sa-ode`: from time t_n on, over a length 3, against the closed solution of the component's equation, which turns
    for ever; the equation of the mixture, or of the other component, is refused, and so is a clock 5 % too slow."""
    steps = StepSize.power(a=2.0, n0=6).values(60_000)
    y, component = TWO.draw(60_000, 8, stream(4, "ode"))
    times = steps.cumsum(dim=0).numpy()
    x0 = torch.tensor([[1.5, 0.0]], dtype=torch.float64).repeat(8, 1)
    path = torch.view_as_complex(robbins_monro(turning, y, steps, x0, record=range(1, 60_001)).x).numpy()
    gaps = {}
    for start in (30, 10_000):
        stop = int(np.searchsorted(times, times[start] + 3))
        time = times[start : stop + 1, None] - times[start]
        length = 1 / (1 + (1 / np.abs(path[start]) - 1) * np.exp(-time))  # r' = r (1 - r)
        speeds = {"own": (-1.0, 2.0), "other": (2.0, -1.0), "mean": (0.5, 0.5), "slow": (-0.95, 1.9)}
        for name, means in speeds.items():
            speed = np.asarray(means)[component.numpy()]
            flow = length * np.exp(1j * (np.angle(path[start]) + speed * time))
            gaps[name, start] = np.abs(path[start : stop + 1] - flow).max()
    assert gaps["own", 10_000] < 0.1
    assert gaps["own", 10_000] < gaps["own", 30]
    assert min(gaps["other", 10_000], gaps["mean", 10_000]) > 0.5
    assert gaps["slow", 10_000] > 0.2


def test_the_limit_depends_on_the_component_alone():
    """`sa-random`: streams of one component, with starts and near pasts of their own, end at one point; the points of
    the two components are apart."""
    y, component = TWO.draw(40_000, 12, stream(5, "random"))
    start = torch.linspace(-2, 2, 12, dtype=torch.float64)
    ends = robbins_monro(pulled, y, StepSize.power(n0=6), start).x[-1]
    for k, mean in enumerate((-1.0, 2.0)):
        root = brentq(lambda x, m=mean: m - x - 2 * math.tanh(x), -3, 3)
        assert (component == k).sum() >= 2
        assert (ends[component == k] - root).abs().max() < 0.02  # 8 standard errors of a mean of 40,000
    assert ends[component == 1].min() - ends[component == 0].max() > 1


def test_many_streams_go_to_the_root_of_the_mean_field():
    """`sa-many`: the recursion of the mean, exact for independent data, against the closed form, in one and two
    dimensions; the mean of the roots is another number."""
    A, b, w = np.array([2.0, 0.5]), np.array([1.0, 2.0]), np.array([0.3, 0.7])
    x = 5.0
    for n in range(1, 40_001):
        x += (w @ b - (w @ A) * x) * 2 / (n + 4)
    assert abs(x - mean_field_root(A, b, w)) < 1e-6
    assert abs(x - w @ mean_field_root(A, b)) > 1
    A = np.array([[[2.0, 0.3], [0.0, 1.0]], [[0.5, 0.0], [0.2, 1.5]]])
    b = np.array([[1.0, 0.0], [2.0, 1.0]])
    annealed = mean_field_root(A, b, w)
    assert np.abs(np.tensordot(w, b - A @ annealed, axes=1)).max() <= 1e-12
    y, component = TWO.draw(8_000, 200, stream(6, "many"))
    dealt = y[torch.arange(8_000).unsqueeze(1), torch.rand(8_000, 200, generator=stream(6, "deal")).argsort(dim=1)]
    ends = robbins_monro(lambda x, y: y - x, dealt, StepSize.power(), torch.zeros(200).double()).x[-1]
    mean = float(torch.where(component == 0, -1.0, 2.0).mean())
    assert (ends - mean).abs().max() < 0.12  # data of variance 2.5: over six standard errors


def test_every_world_converges_and_the_learner_of_all_diverges():
    """`sa-diverge`: slow twin in plain numbers, other steps. Each world alone leads to its root, the sum of the
    coordinates of the learner of both passes its bound step by step, and at c = 1 it stays near its root."""
    for c, grows in ((4.0, True), (3.0, True), (1.0, False)):
        coins = torch.rand(3000, generator=stream(0, "coins", int(c))).tolist()
        ends = []
        for heard in ([0.0] * 3000, [1.0] * 3000, coins):
            x, y, least = 2.0, 3.0, math.log(5.0)
            for n, coin in enumerate(heard, start=1):
                a, first = 0.9 * n**-0.8, coin < 0.5
                share = (y if first else x) / (x + y)
                if n > 100:
                    least += a * (c * share - 1) - (a * c) ** 2
                x, y = (x + a * (1 - x + c * y * first), y + a * (1 - y + c * x * (not first)))
                if n == 100:
                    least = math.log(x + y)
            assert math.log(x + y) >= least
            ends.append((x, y))
        assert max(abs(ends[0][0] - 1 - c), abs(ends[0][1] - 1), abs(ends[1][0] - 1), abs(ends[1][1] - 1 - c)) < 0.02
        assert (sum(ends[2]) > 100) == grows
        mean = coupled_worlds(c).mean(dim=0)
        assert (torch.linalg.eigvalsh(mean).min() < 0) == grows


def test_a_stream_does_not_tell_the_weights():
    """`sa-weights`: under two weights a stream of the first component is the same, bit for bit, so no estimate that
    sees it alone can differ."""
    draws = [Mixture((-1.0, 2.0), (0.5, 0.5), w).draw(50, 200, stream(7, "w")) for w in ((0.3, 0.7), (0.8, 0.2))]
    both = (draws[0].component == 0) & (draws[1].component == 0)
    assert both.sum() > 20
    assert torch.equal(draws[0].y[:, both], draws[1].y[:, both])
    assert (draws[0].component != draws[1].component).any()


@examples
@given(st.integers(0, 10**6), st.floats(0.51, 0.99))
def test_larger_steps_need_smaller_sums(draw, alpha):
    """`sa-larger`: where |S_j| <= eta j^alpha, a window of length T is at most eta (2 + alpha T n^{alpha - 1})."""
    j = torch.arange(1, 3001, dtype=torch.float64)
    sums = (2 * torch.rand(3000, generator=stream(draw, "S"), dtype=torch.float64) - 1) * j**alpha
    g = torch.cat([sums[:1], sums.diff()])
    steps = StepSize.power(alpha=alpha).values(3000)
    for start in (2, 100, 1000):
        found, length = window_sums(steps, g, start).abs(), steps[start - 1 :].cumsum(dim=0)
        assert (found <= 2 + alpha * length * start ** (alpha - 1) + 1e-9).all()


def test_long_sojourns_end_below_the_line_alone():
    """`sa-heavy`: the expected number of long sojourns in [N, 2N) grows as N^{1 - alpha beta}: for ever iff
    alpha beta <= 1; mean sojourn 1 + zeta(beta)."""
    for beta in (1.2, 1.5, 1.8):
        assert (
            abs(
                renewal_mean(beta)
                - sum(max(t, 1) ** -beta for t in range(200_000))
                - 200_000 ** (1 - beta) / (beta - 1)
            )
            < 1e-3
        )
        for alpha in (0.55, 1 / beta, 0.9):
            counts = [expected_freezes(beta, alpha, 2.0, 2**e) for e in (16, 20)]
            assert abs(math.log2(counts[1] / counts[0]) / 4 - (1 - alpha * beta)) < 0.01


def test_a_long_sojourn_drags_the_iterate():
    """`sa-heavy`: over c n^alpha steps from n on, the iterate comes within e^-c of the sojourn's value, up to the drift
    of the steps; over a sojourn of fixed length it hardly moves."""
    n = 4_000_000
    for alpha, c in ((0.55, 3.0), (0.6, 1.0)):
        long = int(c * n**alpha)
        steps = StepSize.power(alpha=alpha, n0=n - 1).values(long)
        start, ones = torch.zeros(1, dtype=torch.float64), torch.ones(long, 1, dtype=torch.float64)
        x = robbins_monro(lambda x, y: y - x, ones, steps, start, record=(20, long)).x[:, 0]
        assert x[0] < 0.01
        assert abs(math.log(1 - x[1]) + c) < 0.02 * c


def test_the_threshold_in_simulation():
    """`sa-heavy`: on the same streams the learner below the line comes within .2 of both ends late in the run, the one
    above it stays within .2 of one half; both are near one half in mean square."""
    N = 2**14
    y = HeavyTailedRenewal(1.5).draw(2 * N, 200, stream(8, "heavy")).y
    ends = {}
    for alpha in (0.55, 1.0):
        x = robbins_monro(lambda x, y: y - x, y, StepSize.power(alpha=alpha), y[0], record=range(N, 2 * N + 1)).x
        ends[alpha] = ((x - 0.5).abs().amax(dim=0), x[-1])
    assert (ends[0.55][0] > 0.3).double().mean() > 0.6
    assert (ends[1.0][0] > 0.3).double().mean() < 0.1
    assert float((ends[0.55][1] - 0.5).square().mean()) < 0.05  # a fair coin's would be .25


def test_windows_forget_where_they_stand():
    """`sa-inclusion`: sums of a_i (f(Z_i) - f(Z_{i-1})) over a window are at most 2 a_n max|f|, for any data; so limits
    of window averages are laws of stationary processes."""
    g = stream(9, "any")
    y = (torch.rand(3000, generator=g) < torch.rand(3000, generator=g)).long()
    past = y[3:] + 2 * y[2:-1] + 4 * y[1:-2] + 8 * y[:-3]
    f = torch.randn(16, generator=g, dtype=torch.float64)[past]
    for alpha in (0.6, 1.0):
        steps = StepSize.power(alpha=alpha).values(len(f))
        for start in (2, 300, 2000):
            moved = (steps[start - 1 :] * (f[start - 1 :] - f[start - 2 : -1])).cumsum(dim=0).abs().max()
            assert moved <= 2 * steps[start - 1] * f.abs().max() * (1 + 1e-12)


def test_the_inclusion_is_used_below_the_line():
    """`sa-inclusion`: the renewal stream's chance to leave a sojourn of age t is 1 - (t/(t+1))^beta, near beta/t: it
    tends to 0, so standing still for ever is invariant too."""
    y = HeavyTailedRenewal(1.5).draw(4000, 500, stream(10, "hazard")).y.numpy()
    ages, leaves = {}, {}
    for r in range(500):
        switches = np.flatnonzero(np.diff(y[:, r])) + 1
        for length in np.diff(switches):
            for t in range(2, min(length, 12) + 1):
                ages[t] = ages.get(t, 0) + 1
                leaves[t] = leaves.get(t, 0) + (length == t)
    for t in (2, 3, 5, 8):
        chance = 1 - ((t - 1) / t) ** 1.5  # P(tau = t | tau >= t) = 1 - P(tau > t) / P(tau > t - 1)
        assert abs(leaves[t] / ages[t] - chance) < 6 * math.sqrt(chance / ages[t]) + 0.004  # long ones are cut off


def test_doubling_blocks_sweep_a_third():
    """`sa-sweep`: the mean after each block, in whole numbers, tends to 2/3 and 1/3 in turn; the data are those."""
    y = DoublingBlocks().draw(2**12 - 1, 1, stream(0, "blocks")).y[:, 0].long().tolist()
    ones = total = 0
    for k in range(12):
        total += 2**k
        ones += 2**k * (k % 2)
        assert sum(y[:total]) == ones
        assert abs(Fraction(ones, total) - Fraction(1 + k % 2, 3)) <= Fraction(1, 3 * total)
    means = np.cumsum(y) / np.arange(1, len(y) + 1)
    assert set(np.floor(10 * means[2**10 :]).astype(int)) == {3, 4, 5, 6}
