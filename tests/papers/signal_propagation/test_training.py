"""Training side by side: the loop, the rows and the measures of SP-17 and SP-22."""

import itertools
import math
import re
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.rng import stream
from derived.lab.training import mean_cross_entropy
from derived.papers.signal_propagation import training as experiments
from derived.papers.signal_propagation.data.generated import LabelledImages, template_images
from derived.papers.signal_propagation.model.kernels import ErfKernel, LayerNormKernel
from derived.papers.signal_propagation.model.meanfield import propagate
from derived.papers.signal_propagation.model.vit import VisionTransformer
from derived.papers.signal_propagation.training import (
    MatchedGrowth,
    Trainability,
    best_rates,
    gain_by_chance,
    rank_correlation,
    train,
    warmup_gain,
)

EXPERIMENTS = (Trainability, MatchedGrowth)
NETWORK = {"image_size": 16, "patch": 4, "width": 24, "depth": 2, "num_heads": 2, "num_classes": 3}


def small(norm: str = "erf", **changes) -> VisionTransformer:
    return VisionTransformer(norm=norm, **NETWORK | {"num_networks": 2, "generator": stream(0, "vit")} | changes)


def pictures(num: int, name: str = "train", draws: int = 1) -> LabelledImages:
    """Draws of pictures, (draws, num, ...); all have the same classes."""
    kind = {"num_classes": 3, "size": 16, "shift": 1, "noise": 0.5}
    drawn = [
        template_images(num, classes=stream(0, "classes"), generator=stream(0, name, each), **kind)
        for each in range(draws)
    ]
    return LabelledImages(*(torch.stack(each) for each in zip(*drawn, strict=True)))


def test_a_diverged_network_leaves_the_other_alone():
    data, test = pictures(64), pictures(16, "test")
    arguments = {"steps": 4, "batch_size": 16, "lr": 1e-3}
    models = [small(), small()]
    with torch.no_grad():
        models[1].head[0] = math.nan
    runs = [train(model, data, test, generator=stream(0, "batches"), **arguments) for model in models]
    assert bool(torch.isnan(runs[1].losses[0]).all())
    torch.testing.assert_close(runs[1].losses[1], runs[0].losses[1], rtol=0, atol=0)


def test_training_learns_and_repeats():
    data, test = pictures(256), pictures(96, "test")
    arguments = {"steps": 60, "batch_size": 32, "lr": 3e-3, "warmup": 10}
    runs = [
        train(small(norm), data, test, generator=stream(0, "batches"), **arguments)
        for norm in ("erf", "erf", "layernorm")
    ]
    for run in runs:
        assert run.losses.shape == (2, 60)
        assert bool((run.losses[:, -10:].mean(dim=-1) < 0.6 * run.losses[:, 0]).all())
        assert bool((run.test_accuracy > 0.6).all())
    torch.testing.assert_close(runs[0].losses, runs[1].losses, rtol=0, atol=0)


def test_warm_up_scales_the_first_step():
    """AdamW's first step moves every coordinate by lr whatever the gradient, so its size reads the rate off."""
    data = pictures(32)
    moved = {}
    for warmup in (0, 10):
        model = small()
        before = model.blocks[0].norms[0].gain.detach().clone()
        train(model, data, data, steps=1, batch_size=8, lr=1e-3, warmup=warmup, generator=stream(0, "step"))
        moved[warmup] = float((model.blocks[0].norms[0].gain.detach() - before).abs().median())
    assert moved[0] == pytest.approx(1e-3, rel=1e-2)
    assert moved[10] == pytest.approx(1e-4, rel=1e-2)


@pytest.mark.parametrize(("options", "decay"), [({"weight_decay": 0.5}, 0.5), ({}, 0.05)], ids=["given", "usual"])
def test_weight_decay_shrinks_matrices_and_nothing_else(options, decay):
    """Past a head of zeros no gradient reaches the network, so one step of AdamW is the factor 1 - lr decay alone. By
    default 0.05, which is usual for vision transformers (DeiT)."""
    data = pictures(16)
    before, after = small(alpha=0.7), small(alpha=0.7)
    with torch.no_grad():
        after.head.zero_()
        after.head_bias.fill_(1.0)
    train(after, data, data, steps=1, batch_size=8, lr=0.1, generator=stream(0, "decay"), **options)
    trained = dict(after.named_parameters())
    for name, start in before.named_parameters():
        if name not in ("head", "head_bias") and "last_norm" not in name:
            factor = 1 - 0.1 * decay if "weights" in name or name == "embedding" else 1.0
            torch.testing.assert_close(trained[name], factor * start, rtol=1e-6, atol=0, msg=name)
    torch.testing.assert_close((after.head_bias - 1).abs(), torch.full_like(after.head_bias, 0.1), rtol=1e-3, atol=0)


def test_evaluation_is_the_mean_over_the_set():
    """The last batch of a set of 50 is smaller; the network is judged after its one step."""
    model, data, test = small(), pictures(16), pictures(50, "test")
    run = train(model, data, test, steps=1, batch_size=16, generator=stream(0, "one"))
    logits = model(test.images[0])
    torch.testing.assert_close(run.test_loss, mean_cross_entropy(logits, test.labels[0]).double(), rtol=1e-5, atol=0)
    torch.testing.assert_close(run.test_accuracy, (logits.argmax(dim=-1) == test.labels[0]).double().mean(dim=-1))


def test_each_network_trains_and_is_judged_on_its_own_draw():
    """Two networks of equal weights: with one draw they stay equal; with two, the second alone follows its pictures."""
    one, other = pictures(48, draws=2), pictures(48, draws=2)
    other.images[1], other.labels[1] = other.images[1].flip(0), other.labels[1].roll(5)
    runs = []
    for data in (pictures(48), one, other):
        model = small()
        with torch.no_grad():
            for weight in model.parameters():
                weight[1] = weight[0]
        runs.append(train(model, data, data, steps=3, batch_size=8, lr=1e-2, generator=stream(0, "own")))
    shared, apart, changed = (run.test_loss for run in runs)
    assert float((shared[0] - shared[1]).abs()) < 1e-5
    assert float((apart[0] - apart[1]).abs()) > 1e-3
    assert float((apart[0] - changed[0]).abs()) < 1e-5 < 1e-3 < float((apart[1] - changed[1]).abs())


def test_predicted_amplification_of_training_is_what_is_measured_and_of_the_input():
    """Sixteen networks of each alpha, each with pictures of its own: mean logarithms, in standard errors."""
    held = replace(Trainability.at("tiny"), replicates=16)
    tables = [held.run(each, seed=0, device="cpu", dtype=torch.float32) for each in held.conditions()[:2]]
    for table in tables:
        away = table["log_measured"] - table["log_pooled"]
        assert abs(away.mean()) < 4 * away.std() / 4
        assert table["log_pooled"].nunique() == 16
    first, second = (each["log_measured"] for each in tables)
    assert second.mean() - first.mean() > 4 * np.hypot(first.std(), second.std()) / 4


LOSSES = [1.0, 2.0, 3.0, 4.0]


def training(**changes) -> pd.DataFrame:
    """Two replicates of two depths and two alphas at one rate; the prediction rises along the rows."""
    grid = {"alpha": [0.5, 0.5, 1.0, 1.0], "depth": [3, 6, 3, 6], "log_pooled": np.arange(4.0), "test_loss": LOSSES}
    rows = pd.concat([pd.DataFrame(grid).assign(replicate=each) for each in (0, 1)], ignore_index=True)
    return rows.assign(**{"warmup": 0, "rate": 1e-3, "loss": rows["test_loss"]} | changes)


def test_trainability_is_one_when_losses_grow_with_the_prediction_and_nan_counts_as_worst():
    assert rank_correlation(training(test_loss=[1.0, 2.0, 3.0, np.nan] * 2)).value == pytest.approx(1.0)
    turned = training(test_loss=[np.inf, 3.0, 2.0, 1.0] * 2)
    assert rank_correlation(turned).value == pytest.approx(-1.0)
    assert rank_correlation(pd.concat([training(), turned.assign(warmup=100)])).value == pytest.approx(1.0)


def test_each_cell_is_judged_at_the_rate_of_the_lower_training_loss():
    worse = training(test_loss=LOSSES[::-1] * 2, rate=3e-3)
    assert rank_correlation(pd.concat([training(), worse.assign(loss=5.0)])).value == pytest.approx(1.0)
    assert rank_correlation(pd.concat([training(), worse.assign(loss=0.5)])).value == pytest.approx(-1.0)
    assert rank_correlation(pd.concat([training(), worse.assign(loss=np.nan)])).value == pytest.approx(1.0)


def test_each_depth_and_alpha_is_trained_around_its_own_rate(rows):
    held = replace(Trainability.at("tiny"), centres=((1e-3, 2e-3),), factors=(0.5, 1.0))
    table = pd.concat(
        [held.run(each, seed=0, device="cpu", dtype=torch.float32).assign(**each) for each in held.conditions()]
    )
    found = table.groupby(["alpha", "warmup"])["rate"].unique().map(list).to_dict()
    assert found == {(0.5, 0): [5e-4, 1e-3], (1.5, 0): [1e-3, 2e-3], (1.5, 2): [1e-3, 2e-3]}
    again = table[(table["alpha"] == 0.5) & (table["rate"] == 1e-3)]["test_loss"].to_numpy()
    assert again == pytest.approx(rows[Trainability].query("alpha == 0.5")["test_loss"].to_numpy())


def test_networks_of_each_depth_and_alpha_are_draws_of_their_own(monkeypatch):
    """And those of one depth and alpha are the same at every rate and with warm-up."""
    held, seeds = replace(Trainability.at("tiny"), factors=(0.5, 1.0), steps=1), {}

    def noted(**options) -> VisionTransformer:
        drawn = seeds.setdefault((options["depth"], options["alpha"]), [])
        drawn.append(options["generator"].initial_seed())
        return VisionTransformer(**options)

    monkeypatch.setattr(experiments, "VisionTransformer", noted)
    for each in held.conditions():
        held.run(each, seed=0, device="cpu", dtype=torch.float32)
    assert [len(drawn) for drawn in seeds.values()] == [2, 4], "two rates each, and the last with warm-up"
    assert [len({*drawn}) for drawn in seeds.values()] == [1, 1]
    assert len({seed for drawn in seeds.values() for seed in drawn}) == 2


@pytest.mark.parametrize(("draws", "cover"), [(8, True), (1, False)])
def test_intervals_cover_where_each_replicate_has_its_own_draw(draws, cover):
    """300 made-up studies: what warm-up gains differs between draws of pictures ten times as much as between networks.

    Of 99.9 % intervals more than four of 300 miss once in ten thousand times; with one draw for all, most do.
    """
    random, missed = np.random.default_rng(0), 0
    for _ in range(300):
        of_draw, level = random.standard_normal((2, draws)).repeat(8 // draws, axis=1)
        gain = 0.2 + of_draw + 0.1 * random.standard_normal(8)
        arms = {0: level, 50: level + gain}
        rows = [
            pd.DataFrame({"warmup": arm, "test_accuracy": each, "replicate": range(8)}) for arm, each in arms.items()
        ]
        estimate = warmup_gain(pd.concat(rows).assign(depth=6, alpha=1.0, rate=1e-3, loss=1.0))
        missed += not estimate.low <= 0.2 <= estimate.high
    assert (missed <= 4) is cover


MISSING = {
    "a prediction": lambda rows: rows.assign(log_pooled=rows["log_pooled"].where(rows.index != 1)),
    "the name of a replicate": lambda rows: rows.assign(replicate=rows["replicate"].where(rows.index != 1)),
    "a network": lambda rows: rows.drop(index=1),
}


@pytest.mark.parametrize("lost", MISSING)
def test_what_is_missing_leaves_trainability_undecided(lost):
    with pytest.raises(ValueError, match=r"no number|networks; each needs"):
        rank_correlation(MISSING[lost](training()))


def test_warm_up_gain_is_with_less_without_where_amplification_is_largest():
    rows = [
        (depth, alpha, warmup, replicate, accuracy + 0.01 * replicate)
        for depth, alpha, warmup, accuracy in (
            *((6, 1.6, 0, 0.9), (6, 1.6, 100, 0.1), (36, 0.3, 0, 0.9), (36, 0.3, 100, 0.1)),
            *((36, 1.6, 0, 0.2), (36, 1.6, 100, 0.5)),
        )
        for replicate in range(3)
    ]
    table = pd.DataFrame(rows, columns=["depth", "alpha", "warmup", "replicate", "test_accuracy"])
    worse = table.assign(rate=3e-3, loss=2.0, test_accuracy=0.0)
    estimate = warmup_gain(pd.concat([table.assign(rate=1e-3, loss=1.0), worse]))
    assert estimate.value == pytest.approx(0.3)
    assert estimate.n == 3


def test_the_gain_by_chance_takes_halves_of_any_number_of_networks():
    """Of accuracies 0, 1, 4, 9, 16 the last is left out: 4 + 9 less 0 + 1, in the mean 6."""
    for networks in (4, 5):
        rows = pd.DataFrame({"replicate": range(networks), "test_accuracy": np.arange(float(networks)) ** 2})
        estimate = gain_by_chance(rows.assign(depth=6, alpha=1.0, rate=1e-3, loss=1.0, warmup=0))
        assert (estimate.value, estimate.n) == (6.0, 2)


G = torch.Generator()
BAD = [
    (lambda: train(small(), pictures(4), pictures(4), steps=0, generator=G), "steps = 0"),
    (lambda: train(small(), pictures(4), pictures(4), steps=1, lr=0.0, generator=G), "lr = 0"),
    (lambda: train(small(), pictures(4), pictures(4), steps=1, warmup=-1, generator=G), "warmup = -1"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_the_figure_of_best_rates_says_each_cell():
    cells = itertools.product((0.4, 1.6), (3, 12), range(3))
    rows = pd.DataFrame(cells, columns=["alpha", "depth", "replicate"])
    rows = rows.assign(warmup=0, recorded=False, tier="ci", rate=0.01 / rows["depth"], log_pooled=np.log(rows["depth"]))
    rows["test_accuracy"] = 0.5 - 0.02 * rows["depth"] * rows["alpha"] + 0.01 * (rows["replicate"] - 1)
    figure = best_rates(rows)
    words = [text.get_text() for ax in figure.axes for text in ax.texts]
    assert words[-1] == r"Accuracy over depth: −0.07 at $\alpha=0.4$, −0.29 at $\alpha=1.6$"
    assert "depth 12, alpha 1.6: 0.12 at rate 0.00083, predicted growth ×12.0" in figure.get_label()
    plt.close(figure)


def matched(apart: float, large: float, scatter: float = 0.01) -> pd.DataFrame:
    """Eight pairs of replicates at one depth: test losses of three arms."""
    noise = scatter * np.sin(np.arange(8.0))
    losses = {"LayerNorm": 2.0 + 0 * noise, "matched": 2.0 + apart + noise, "large": 2.0 + large + noise}
    rows = [pd.DataFrame({"arm": arm, "replicate": range(8), "test_loss": loss}) for arm, loss in losses.items()]
    return pd.concat(rows, ignore_index=True).assign(depth=12, stage="judged")


def test_equal_growth_is_judged_in_pairs_and_the_pilots_do_not_count():
    claim = next(one for one in experiments.CLAIMS if one.id == "SP-22")
    for apart, verdict in ((0.05, "holds"), (-0.05, "holds"), (0.2, "fails")):
        rows = pd.concat([matched(apart, 0.4), matched(5.0, 5.0).assign(stage="pilot", replicate=0)])
        assert claim.judge(claim.measure(rows))[0] == verdict
    assert claim.judge(claim.control(matched(0.0, 0.4)))[0] == "fails"


def test_the_matched_alpha_has_the_growth_of_layernorm(rows, by_hand):
    alpha = experiments.matched_alpha(0.9, 0.3, 16, 6)
    net = {"a": 0.0943718, "s": 0.3774874, "n": 16, "depth": 6, "output_gradient": "pooled"}
    J = [propagate(0.9, 0.3, kernel=kernel, **net).J_backward[0] for kernel in (LayerNormKernel(), ErfKernel(alpha))]
    assert J[0] == pytest.approx(J[1], rel=1e-5)
    table = rows[MatchedGrowth].query("stage == 'judged'").set_index(["arm", "replicate"])
    assert table.loc["matched", "log_pooled"].mean() == pytest.approx(
        table.loc["LayerNorm", "log_pooled"].mean(), rel=0.1
    )
    assert table.loc["large", "log_pooled"].mean() > 1.2 * table.loc["matched", "log_pooled"].mean()
