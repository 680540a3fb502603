"""Random transformers with few tokens against the recurrences: SP-3, 4, 18 and 21, their rows and their measures."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import optimize

from derived.lab.measure import highest, jointly
from derived.lab.rng import stream
from derived.papers.signal_propagation import measures
from derived.papers.signal_propagation.measured import measure
from derived.papers.signal_propagation.model import jacobian, kernels, meanfield, transformer
from derived.papers.signal_propagation.networks import CASES, CLAIMS, Networks, SharpAttention, annealed, mlp_only

EXPERIMENTS = (Networks, SharpAttention)
BY_ID = {claim.id: claim for claim in CLAIMS}
FOLD = jointly(measures.fold_error("J"), CASES, highest)
KERNELS = {"layernorm": kernels.LayerNormKernel(), "erf": kernels.ErfKernel(1.0), "tanh": kernels.TanhKernel(1.0)}


def fold(measured: torch.Tensor | np.ndarray, theory: np.ndarray) -> float:
    """The geometric-mean fold error."""
    return float(np.exp(np.abs(np.log(np.asarray(measured) / theory)).mean()))


@pytest.mark.parametrize("norm", KERNELS)
@pytest.mark.parametrize("num_heads", [1, 4])
def test_recurrences_describe_networks_sp2_sp3_sp4_sp18(norm, num_heads):
    """`sp-forward`, `sp-backward`, `sp-pooled`: 24 networks of width 128, 12 tokens, 6 blocks, a = s = 1.

    What must miss is checked to miss.
    """
    n, depth, R = 12, 6, 24
    sigmas = transformer.Sigmas(v=1, o=1, one=1, two=1)
    arguments = {"width": 128, "depth": depth, "sigmas": sigmas, "num_heads": num_heads, "num_networks": R}
    model = transformer.RandomTransformer(norm=norm, generator=stream(0, "nets", num_heads), **arguments)
    x = transformer.equiangular_tokens(n, 128, 1.0, 0.2, batch=(R,), generator=stream(0, "x", num_heads))
    states = model.states(x)
    q, p, _ = (torch.stack(m, dim=-1).mean(dim=0) for m in zip(*map(transformer.token_moments, states), strict=True))
    alone = jacobian.apjn_hutchinson(model, x, num_probes=2, generator=stream(0, "alone"))
    pooled = jacobian.apjn_hutchinson(model, x, num_probes=4, generator=stream(0, "pooled"), output_gradient="pooled")
    J, K, P = (m.mean(dim=(0, 1)).numpy() for m in (alone.J, alone.K, pooled.J))
    common = {"kernel": KERNELS[norm], "s": 1.0, "n": n, "depth": depth}
    course = meanfield.propagate(1.0, 0.2, a=1.0, **common)
    assert fold(q, course.q) < 1.03
    assert fold(p, course.p) < 1.06
    assert fold(J, course.J_backward) < 1.03
    assert fold(K[:-1], course.K_backward[:-1]) < 1.12
    assert fold(P, meanfield.propagate(1.0, 0.2, a=1.0, output_gradient="pooled", **common).J_backward) < 1.06
    assert P[0] > 1.5 * course.J_backward[0]  # the head matters
    without = meanfield.propagate(1.0, 0.2, a=1.0, cross_token=False, **common)
    assert fold(J, without.J_backward) > 1.035  # dropping K
    assert J[0] / without.J_backward[0] > 1.08
    assert fold(p, meanfield.propagate(1.0, 0.2, a=1.0, **(common | {"n": math.inf})).p) > 1.04  # 1/n against 0


def test_the_mlp_factors_are_taken_at_the_half_blocks():
    """One block at a time: what attention adds to (q, p) is a change of q that the MLP does not explain."""
    sigmas, kernel = transformer.Sigmas(v=1.0, o=1.0, one=1.0, two=1.0), kernels.kernel_of("erf", 0.8)
    path = meanfield.propagate(1.0, 0.2, kernel=kernel, a=1.0, s=1.0, n=6, depth=5)
    J = 1.0
    for q, p, after in zip(path.q[-2::-1], path.p[-2::-1], path.q[:0:-1], strict=True):
        half = optimize.brentq(lambda x, p, y: x + kernel.moments(x, p).q_tilde / 2 - y, q, after, args=(p, after))
        J *= 1 + kernel.moments(half, p + half - q).q_hat / 2
    assert mlp_only(path, kernel, sigmas, 6)[0] == pytest.approx(J, rel=1e-10)


def test_each_theory_column_is_the_recurrence_it_is_named_after(rows):
    """With LayerNorm, at the input: what is dropped makes J smaller, a common gradient makes it larger."""
    table = rows[Networks]
    first = table[(table["b"] == 0) & (table["norm"] == "layernorm")].iloc[0]
    assert first["J_without_K"] < first["J_theory"] < first["pooled_theory"]
    assert 0 < first["K_theory"] < first["J_theory"]
    assert first["J_without_attention"] < first["J_without_K"]
    assert first["K_apart"] > first["K_theory"]
    last = table[table["b"] == table["b"].max()]
    assert (last["q_apart"] < last["q_theory"]).all()
    assert (last["p_apart"] < last["p_theory"]).all()
    assert (last[["J_theory", "pooled_theory"]] == 1).all(axis=None)
    assert (last["K_theory"] == 0).all()


def test_measured_columns_are_the_moments_they_are_named_after():
    """Means over 1000 probes against exact Jacobians, 10 % apart at most; J, K and pooled differ by more."""
    arguments = {"width": 8, "depth": 2, "norm": "erf", "sigmas": transformer.Sigmas(v=1.0, o=1.0, one=1.0, two=1.0)}
    model = transformer.RandomTransformer(**arguments, generator=stream(0, "measured"), dtype=torch.float64)
    x = transformer.equiangular_tokens(4, 8, 1.0, 0.3, batch=(1,), generator=stream(0, "x"), dtype=torch.float64)
    table = measure(model, x, probes=1000, generator=stream(0, "many"))
    alone, pooled = jacobian.apjn_exact(model, x), jacobian.apjn_exact(model, x, output_gradient="pooled")
    for name, exact in (("J", alone.J), ("K", alone.K), ("pooled", pooled.J)):
        np.testing.assert_allclose(table[name], exact[0], rtol=0.1, atol=0.1)
    assert (table["pooled"] > 1.2 * table["J"]).iloc[0]
    assert abs(pooled.J[0, 0] - pooled.K[0, 0]) > 0.2
    q, p, _ = transformer.token_moments(model(x))
    assert tuple(table[["q", "p"]].iloc[-1]) == pytest.approx((q.item(), p.item()), rel=1e-12)


def test_networks_have_the_variances_of_their_fields():
    """a = 4 and s = 0.25, where a deviation is not its square."""
    small = Networks(width=16, n=3, depth=2, a=4.0, s=0.25, inits=2, probes=1)
    rows = small.run({"norm": "erf", "heads": 1, "part": 0}, seed=0, device=torch.device("cpu"), dtype=torch.float32)
    course = meanfield.propagate(1.0, 0.2, kernel=kernels.ErfKernel(1.0), a=4.0, s=0.25, n=3, depth=2)
    np.testing.assert_allclose(rows["J_theory"][:3], course.J_backward, rtol=1e-12)


def networks(ratio: np.ndarray, norm: str = "erf", **columns) -> pd.DataFrame:
    """Rows whose J is a given multiple (inits, blocks) of a theory that doubles towards the input."""
    inits, blocks = ratio.shape
    theory = np.tile(2.0 ** np.arange(blocks - 1, -1, -1), (inits, 1))
    index = {"replicate": np.repeat(np.arange(inits), blocks), "b": np.tile(np.arange(blocks), inits)}
    table = pd.DataFrame({**index, "norm": norm, "heads": 1, "J": (ratio * theory).ravel(), "J_theory": theory.ravel()})
    return table.assign(**columns)


def noise(*shape: int) -> np.ndarray:
    return torch.randn(*shape, generator=stream(5, "noise", *shape), dtype=torch.float64).numpy()


def test_fold_error_is_of_the_mean_over_initialisations_and_leaves_out_the_trivial_block():
    ratio = np.array([[1.1, 1.2, 1.0], [1.3, 1.2, 1.0], [1.2, 1.2, 1.0]])
    estimate = FOLD(networks(ratio))
    assert estimate.value == pytest.approx(1.2, rel=1e-12)
    assert estimate.n == 3
    assert estimate.low < 1.2 < estimate.high


@pytest.mark.parametrize("shared", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("truth", [0.0, 0.003, 0.01])
def test_fold_error_interval_covers_however_blocks_are_correlated(shared, truth):
    """1000 tables of 48 initialisations: the true fold error is missed at most as often as the level says.

    A delta method or a jackknife misses far more: where signs are in doubt the errors of blocks seem to cancel.
    """
    draws, inits, blocks = 1000, 48, 8
    common, own = noise(draws, inits, 1), noise(draws, inits, blocks)
    table = np.exp(truth) * (1 + 0.05 * (shared**0.5 * common + (1 - shared) ** 0.5 * own))
    estimate = [measures.fold(one, np.ones(blocks), 0.95) for one in table]
    missed = np.mean([not one.low <= np.exp(truth) * (1 + 1e-12) <= one.high * (1 + 1e-12) for one in estimate])
    assert missed < 0.05 + 3 * (0.05 * 0.95 / draws) ** 0.5


def test_the_ratio_without_k_is_of_the_worst_case_and_only_of_the_input_block():
    low, high = (networks(np.array([[c, 9.0], [c + 0.2, 9.0], [c + 0.1, 9.0]]), n) for c, n in ((1.1, "a"), (2.0, "b")))
    low, high = (table.assign(J_without_K=table["J_theory"]) for table in (low, high))
    estimate = BY_ID["SP-4.a"].measure(pd.concat([low, high]))
    assert estimate.value == pytest.approx(1.2)
    assert estimate.n == 3
    assert estimate.low < BY_ID["SP-4.a"].measure(low).low  # the joint level of two cases


def sharp(ratio: float, sigma: float = 1.0, **columns) -> pd.DataFrame:
    """Twelve networks of one case whose J is about a multiple of the theory with the derivative of softmax."""
    J = 5 * ratio * np.linspace(0.99, 1.01, 12)
    theories = {"J_softmax": 5.0, "J_frozen": 5.0, "J_code": 5.0} | columns
    return pd.DataFrame({"replicate": range(12), "J": J, "norm": "erf", "n": 8, "heads": 1, "sigma": sigma, **theories})


def test_sharp_attention_is_judged_where_it_is_farthest_either_way():
    claim = BY_ID["SP-21"]
    for ratio, verdict in ((1.1, "holds"), (0.9, "holds"), (1.5, "fails"), (0.6, "fails")):
        assert claim.judge(claim.measure(pd.concat([sharp(1.0, 0.3), sharp(ratio, 3.0)])))[0] == verdict
    below = claim.measure(pd.concat([sharp(1.2, 0.3), sharp(0.82, 3.0)]))
    assert below.value == pytest.approx(0.82)  # its lower end is farther from one than the upper end of 1.2
    assert claim.judge(claim.control(sharp(1.0, J_frozen=3.0)))[0] == "fails"
    assert claim.comparison[1](sharp(1.0, J_code=4.0)).value == pytest.approx(1.25)


def test_theories_of_sharp_attention_are_those_of_their_names(rows):
    """The public code's weights conserve a gradient as any matrix with unit rows does; frozen is sigma = 0."""
    found = annealed(1.0, 0.2, 5.0, 1.5)
    assert pytest.approx(1) == found.JJ + 4 * found.KJ
    assert found.f > found.g > 1 / 5
    np.testing.assert_allclose(annealed(1.0, 0.2, 5.0, 0.0), [0.2, 0.2, 0.2, 0.8, 0.2, 0.8])
    table = rows[SharpAttention].groupby(["norm", "sigma", "heads"]).first()
    one = table.loc[("layernorm", 0.3, 1)]
    path = meanfield.propagate(1.0, 0.2, kernel=KERNELS["layernorm"], a=1.0, s=1.0, n=4, depth=2)
    assert one["J_frozen"] == pytest.approx(path.J_backward[0], rel=1e-12)
    assert (table["J_first"] > table["J_frozen"]).all()
    assert table.loc["erf"]["J"].nunique() == len(table.loc["erf"])
