"""Every numbered result of the page, against witnesses that are not made from the same code."""

import itertools
import math
from fractions import Fraction

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import null_space
from scipy.optimize import brentq

from derived.lab.rng import stream
from derived.papers.stochastic_approximation.data import Mixture
from derived.papers.stochastic_approximation.model import attention, theory
from derived.papers.stochastic_approximation.model.core import StepSize, robbins_monro
from derived.papers.stochastic_approximation.model.theory import (
    agreement,
    coupled_worlds,
    expected_freezes,
    mean_field_root,
    renewal_mean,
)
from derived.papers.stochastic_approximation.model.windows import extreme_sequence, window_bounds, window_sums

examples = settings(derandomize=True, max_examples=40, deadline=None, database=None)
TWO = Mixture(means=(-1.0, 2.0), noise=(0.5, 0.5), weights=(0.5, 0.5))


def classes_by_networkx(P):
    graph = networkx.from_numpy_array((P > 0).astype(int), create_using=networkx.DiGraph)
    return [sorted(each) for each in networkx.attracting_components(graph)]


@pytest.mark.parametrize("worlds", [1, 2, 4])
def test_a_harmonic_function_cannot_move(worlds):
    """`sa-decomposition`: on chains with transient states, in a stationary state, E (f(Z_1) - f(Z_0))^2 is 0 for
    harmonic f alone, which are constant on each closed class (as networkx finds them) and as many as these."""
    g = np.random.default_rng(worlds)
    for _ in range(10):
        P = np.zeros((3 * worlds + 3, 3 * worlds + 3))
        for k in range(worlds):
            P[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = g.uniform(0.1, 1, (3, 3))
        P[3 * worlds :] = g.uniform(0.1, 1, (3, len(P)))  # transient
        P /= P.sum(axis=1, keepdims=True)
        closed = classes_by_networkx(P)
        harmonic = null_space(np.eye(len(P)) - P)
        assert len(closed) == harmonic.shape[1] == worlds
        far = np.linalg.matrix_power(P, 2**12)
        law = far[[each[0] for each in closed]].mean(axis=0)  # stationary, and not ergodic for several worlds
        for each, moves in ((harmonic @ g.normal(size=worlds), False), (np.cos(np.arange(len(P))), True)):
            squares = law @ (P * (each[None] - each[:, None]) ** 2).sum(axis=1)
            assert abs(squares - 2 * (law @ each**2 - law @ (each * (P @ each)))) <= 1e-11
            assert (squares > 1e-3) == moves
            assert all(np.ptp(each[states]) <= 1e-9 for states in closed) != moves


@pytest.mark.parametrize("q", [2, 3, 5])
def test_the_remote_past_may_know_more_than_the_limit(q):
    """`sa-tail`: of q shifted paths, one invariant set; any value tells the path; the mean is the same on all. At q = 2
    these are the two alternating paths."""
    paths = [[(n + u) % q for n in range(600)] for u in range(q)]
    step = {tuple(path[:-1]): tuple(path[1:]) for path in paths}  # the shift, on paths of equal probability
    at, seen = tuple(paths[0][:-1]), set()
    while at not in seen:
        seen.add(at)
        at = next(tuple(path[:-1]) for path in paths if tuple(path[:-1]) == step[at])
    assert len(seen) == q  # one cycle: an invariant event holds all paths or none
    assert all(len({path[n] for path in paths}) == q for n in (0, 7, 599))  # any datum tells which path it is
    assert max(abs(sum(path) / 600 - (q - 1) / 2) for path in paths) <= q / 600


@examples
@given(st.floats(0, 1), st.integers(0, 6), st.sampled_from((0.6, 0.9)))
def test_early_data_name_the_limit_as_long_as_the_world_is_kept(epsilon, gap, bias):
    """`sa-gap`: over all courses of the coin and all tosses, three early and one late; and by the formula, whose
    constant is the one without a gap."""

    def over(gap):
        steps, total = 4 + gap, 0.0
        for course in itertools.product((0, 1), repeat=steps):  # the coin at each step
            chance = 0.5
            for one, other in itertools.pairwise(course):
                chance *= epsilon / 2 + (1 - epsilon) * (one == other)
            heads = [bias if coin == 0 else 1 - bias for coin in course]
            for tosses in itertools.product((0, 1), repeat=3):
                early = math.prod(p if y else 1 - p for p, y in zip(heads[:3], tosses, strict=True))
                total += chance * early * (heads[-1] if sum(tosses) >= 2 else 1 - heads[-1])
        return total

    found = agreement(3, gap, 1, epsilon, bias)
    assert abs(found - over(gap)) <= 1e-12
    c = 2 * over(0) - 1
    assert abs(found - (1 + c * (1 - epsilon) ** gap) / 2) <= 1e-12


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


def test_the_path_follows_the_equation_of_its_world():
    """`sa-ode`: from time t_n on, over a length 3, against the closed solution of the world's equation, which turns
    for ever; the equation of the mixture, or of the other world, is refused, and so is a clock 5 % too slow."""
    steps = StepSize.power(a=2.0, n0=6).values(30_000)
    y, world = TWO.draw(30_000, 8, stream(4, "ode"))
    times = steps.cumsum(dim=0).numpy()
    x0 = torch.tensor([[1.5, 0.0]], dtype=torch.float64).repeat(8, 1)
    path = torch.view_as_complex(robbins_monro(turning, y, steps, x0, record=range(1, 30_001)).x).numpy()
    gaps = {}
    for start in (30, 6_000):
        stop = int(np.searchsorted(times, times[start] + 3))
        time = times[start : stop + 1, None] - times[start]
        length = 1 / (1 + (1 / np.abs(path[start]) - 1) * np.exp(-time))  # r' = r (1 - r)
        speeds = {"own": (-1.0, 2.0), "other": (2.0, -1.0), "mean": (0.5, 0.5), "slow": (-0.95, 1.9)}
        for name, means in speeds.items():
            speed = np.asarray(means)[world.numpy()]
            flow = length * np.exp(1j * (np.angle(path[start]) + speed * time))
            gaps[name, start] = np.abs(path[start : stop + 1] - flow).max()
    assert gaps["own", 6_000] < 0.1
    assert gaps["own", 6_000] < gaps["own", 30]
    assert min(gaps["other", 6_000], gaps["mean", 6_000]) > 0.5
    assert gaps["slow", 6_000] > 0.2


def test_the_limit_depends_on_the_world_alone():
    """`sa-random`: streams of one world, with different starts and near pasts, end at one point; the points of
    the two worlds are apart."""
    y, world = TWO.draw(40_000, 12, stream(5, "random"))
    start = torch.linspace(-2, 2, 12, dtype=torch.float64)
    ends = robbins_monro(pulled, y, StepSize.power(n0=6), start).x[-1]
    for k, mean in enumerate((-1.0, 2.0)):
        root = brentq(lambda x, m=mean: m - x - 2 * math.tanh(x), -3, 3)
        assert (world == k).sum() >= 2
        assert (ends[world == k] - root).abs().max() < 0.02  # 8 standard errors of a mean of 40,000
    assert ends[world == 1].min() - ends[world == 0].max() > 1


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
    y, world = TWO.draw(8_000, 200, stream(6, "many"))
    dealt = y[torch.arange(8_000).unsqueeze(1), torch.rand(8_000, 200, generator=stream(6, "deal")).argsort(dim=1)]
    ends = robbins_monro(lambda x, y: y - x, dealt, StepSize.power(), torch.zeros(200).double()).x[-1]
    mean = float(torch.where(world == 0, -1.0, 2.0).mean())
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


@pytest.mark.parametrize(("gamma", "settles"), [(0.4, True), (0.9, False)])
def test_blocks_that_grow_are_averaged_by_steps_that_fall_more_slowly(gamma, settles):
    """`sa-larger`, in plain numbers and without chance: blocks of zeros and ones in turn, one that begins at n has the
    length n^gamma, so that the centred sums are of that order; steps n^-0.7 settle for gamma below 0.7 alone."""
    x, n, value, late = 0.0, 1, 0, []
    while n < 200_000:
        for _ in range(max(1, int(n**gamma))):
            x += n**-0.7 * (value - x)
            n += 1
            late.append(x) if n > 50_000 else None
        value = 1 - value
    assert (max(abs(x - 0.5) for x in late) < 0.05) == settles
    assert (max(late) - min(late) > 0.9) != settles


def test_long_stays_end_below_the_line_alone():
    """`sa-heavy`: the expected number of long stays in [N, 2N) grows as N^{1 - alpha beta}: for ever iff
    alpha beta <= 1; mean stay 1 + zeta(beta)."""
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


def test_a_long_stay_drags_the_iterate():
    """`sa-heavy`: over c n^alpha steps from n on, the iterate comes within e^-c of the stay's value, up to the drift
    of the steps; over a stay of fixed length it hardly moves."""
    n = 4_000_000
    for alpha, c in ((0.55, 3.0), (0.6, 1.0)):
        long = int(c * n**alpha)
        steps = StepSize.power(alpha=alpha, n0=n - 1).values(long)
        start, ones = torch.zeros(1, dtype=torch.float64), torch.ones(long, 1, dtype=torch.float64)
        x = robbins_monro(lambda x, y: y - x, ones, steps, start, record=(20, long)).x[:, 0]
        assert x[0] < 0.01
        assert abs(math.log(1 - x[1]) + c) < 0.02 * c


def test_second_moments_do_not_decide():
    """The renewal stream's autocovariance falls as j^{1 - beta}, and that of fractional noise with H = (3 - beta)/2
    too; the tail of a Gaussian iterate is summable over windows, the number of long stays is not (`sa-heavy`)."""
    beta, alpha = 1.5, 0.55
    H = (3 - beta) / 2
    for gamma in (theory.renewal_autocovariance(beta, 20_000), theory.fractional_autocovariance(H, 20_000)):
        assert abs(math.log(gamma[18_000] / gamma[2250]) / math.log(8) - (1 - beta)) < 0.02
    variances = []
    for e in (11, 14, 17):
        weights = theory.sa_weights(StepSize.power(alpha=alpha), 2**e)
        variances.append(theory.filtered_variance(weights, theory.fractional_autocovariance(H, 2**e)))
    assert abs(math.log2(variances[2] / variances[1]) / 3 + 2 * alpha * (1 - H)) < 0.02
    n = 2.0 ** np.arange(10, 40)
    tails = n * np.exp(-(0.3**2) / (2 * variances[0] * (n / 2**11) ** (-2 * alpha * (1 - H))))  # over [n, 2n)
    assert tails[-1] < tails[-2] / 2 < tails[-3] / 4
    freezes = [theory.expected_freezes(beta, alpha, 1.0, 2**e) for e in (14, 18)]
    assert freezes[1] > 1.3 * freezes[0]


def test_attention_reads_the_gradient_of_the_cumulant_function():
    """`sa-attention`: by autograd of Lambda for a Gaussian and for a law on five tokens, by quadrature, and by a head
    over many tokens; the plain mean is refused."""
    m, S = torch.tensor([0.3, -1.0], dtype=torch.float64), torch.tensor([[1.0, 0.4], [0.4, 0.5]], dtype=torch.float64)
    theta = torch.tensor([0.7, -0.4], dtype=torch.float64).requires_grad_()
    (gradient,) = torch.autograd.grad(theta @ m + theta @ S @ theta / 2, theta)
    tilted = attention.tilted_mean_gaussian(m, S, theta.detach())
    assert (gradient - tilted).abs().max() <= 1e-12
    assert (gradient - m).abs().max() > 0.1
    law, tokens = np.array([0.1, 0.2, 0.4, 0.2, 0.1]), np.array([-2.0, -0.5, 0.0, 1.0, 3.0])
    push = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)
    cumulant = (torch.tensor(law) * (push * torch.tensor(tokens)).exp()).sum().log()
    (slope,) = torch.autograd.grad(cumulant, push)
    assert abs(attention.tilted_mean_discrete(law, 0.8 * tokens, tokens) - slope.item()) <= 1e-12
    head = attention.RunningSoftmaxAttention(theta.detach(), torch.eye(2).double(), torch.eye(2).double())
    root = torch.linalg.cholesky(S)
    draw = stream(1, "tokens")
    for _ in range(3000):
        head.update(m + torch.randn(200, 2, generator=draw, dtype=torch.float64) @ root.T)
    spread = attention.readout_covariance_gaussian(S, theta.detach()).diagonal() / (3000 * 200)
    assert ((head.read().mean(dim=0) - tilted) / spread.sqrt()).abs().max() < 5


def test_self_fed_attention_is_an_urn():
    """`sa-urn`: in exact fractions, the law of every text of six tokens is that of a coin of Beta bias, whatever the
    order; and what the head reads is that rule."""
    b, c = 2, 3
    for text in itertools.product(range(2), repeat=6):
        chance, ones = Fraction(1), 0
        for n, y in enumerate(text):
            one = Fraction(b + ones, b + c + n)
            chance *= one if y else 1 - one
            ones += y
        s = sum(text)
        moment = Fraction(math.factorial(b + s - 1) * math.factorial(c + 6 - s - 1), math.factorial(b + c + 5))
        moment *= Fraction(math.factorial(b + c - 1), math.factorial(b - 1) * math.factorial(c - 1))
        assert chance == moment
    written, read = attention.self_fed_attention(b, c, 40, 7, generator=stream(2, "fed"))
    for n in (0, 1, 20, 39):
        scores = torch.cat([torch.tensor([math.log(b), math.log(c)], dtype=torch.float64), torch.zeros(n).double()])
        values = torch.cat([torch.tensor([[1.0], [0.0]], dtype=torch.float64).expand(2, 7), written[:n]])
        assert (torch.softmax(scores, dim=0) @ values - read[n]).abs().max() <= 1e-12


@examples
@given(st.floats(0.01, 1), st.floats(0.001, 1), st.floats(0, 3))
def test_tracking(a, epsilon, sigma):
    """`sa-tracking`: the stationary second moments of the pair (x, k) from their own linear recursion, solved as a
    fixed point; and the two bounds on the variance, which a variance of one world alone would break."""
    rho = 1 - epsilon
    # m' = E x_n k_n = (1 - a) rho m + a ; v' = (1 - a)^2 v + 2 a (1 - a) rho m + a^2 (1 + sigma^2)
    step = np.array([[(1 - a) * rho, 0.0], [2 * a * (1 - a) * rho, (1 - a) ** 2]])
    m, v = np.linalg.solve(np.eye(2) - step, np.array([a, a**2 * (1 + sigma**2)]))
    variance = theory.telegraph_variance(a, epsilon)
    assert abs(v - variance - a * sigma**2 / (2 - a)) <= 1e-9 * v
    assert abs(theory.tracking_error(a, epsilon, sigma) - (v - 2 * m + 1)) <= 1e-9 * (1 + v)
    assert 1 - epsilon / 2 - 1e-12 <= (1 + epsilon / a) * variance <= 1 + epsilon + 1e-12
    assert abs(2 * theory.telegraph_variance(1.0, 1.0) - 2) <= 1e-12  # the upper bound is attained
