"""Six arms, the blur, three encoders and their causality: what the rows and the figures must say."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.nets import Draws
from derived.lab.rng import stream
from derived.papers.geometric_tax import fits, training
from derived.papers.geometric_tax.model import heads
from derived.papers.geometric_tax.model.encoders import (
    CausalConvolution,
    CausalTransformer,
    Size,
    StateSpace,
    causal_filter,
    modes,
    short_filter,
)
from derived.papers.geometric_tax.training import ARMS, Arms, Blur, Causality, Encoders, Heads, Judges, Order

EXPERIMENTS = (Arms, Heads, Judges, Order, Blur, Encoders, Causality)
KINDS = (CausalTransformer, StateSpace, CausalConvolution)


def encoder(kind, R=2, L=7, **facts):
    size = Size(codes=5, outputs=3, length=L, width=4, depth=2, heads=2)
    return kind(size, Draws(num_networks=R, dtype=torch.float64), **facts)


# Encoders -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_no_state_feels_a_later_token(kind):
    """The gradient of every state with respect to later token vectors is exactly 0."""
    model = encoder(kind)
    embedded = model.embed(torch.randint(5, (2, 1, 7), generator=stream(0, "tokens"))).detach().requires_grad_()
    h = model.hidden(embedded)
    for t in range(7):
        (slope,) = torch.autograd.grad(h[:, :, t].square().sum() + h[:, :, t, 0].sum(), embedded, retain_graph=True)
        assert slope[:, :, t + 1 :].abs().sum() == 0
        assert slope[:, :, t].abs().sum() > 0


def test_the_leak_is_one_token_wide_for_each_block():
    model = encoder(CausalConvolution, leak=True)
    embedded = model.embed(torch.randint(5, (2, 1, 7), generator=stream(0, "tokens"))).detach().requires_grad_()
    (slope,) = torch.autograd.grad(model.hidden(embedded)[:, :, 2, 0].sum(), embedded)
    assert (slope[:, :, 3].abs().sum(dim=-1) > 0).all()
    assert (slope[:, :, 4].abs().sum(dim=-1) > 0).all()  # two blocks
    assert slope[:, :, 5:].abs().sum() == 0


def test_the_modes_are_a_recurrence():
    """The filter against the state-space model's own recursion, step by step."""
    g = stream(0, "modes")
    decay, frequency, cosine, sine = (torch.rand(1, 2, 3, generator=g, dtype=torch.float64) for _ in range(4))
    u = torch.randn(1, 4, 9, 2, generator=g, dtype=torch.float64)
    y = causal_filter(u, modes(decay, frequency, cosine, sine, 9))
    state = torch.zeros(4, 2, 3, dtype=torch.complex128)
    for t in range(9):
        state = torch.exp(torch.complex(-decay, frequency)) * state + u[0, :, t, :, None]
        assert torch.allclose(y[0, :, t], (torch.complex(cosine, -sine) * state).real.sum(dim=-1), atol=1e-12)


def test_the_short_filter_is_a_convolution():
    g = stream(0, "short")
    u = torch.randn(1, 2, 6, 3, generator=g, dtype=torch.float64)
    taps = torch.randn(1, 3, 3, generator=g, dtype=torch.float64)
    for leak, ahead in ((False, 0), (True, 1)):
        there = torch.nn.functional.conv1d(
            torch.nn.functional.pad(u[0].mT, (2 - ahead, ahead)), taps[0].flip(-1).unsqueeze(1), groups=3
        )
        assert torch.allclose(short_filter(u, taps, leak)[0], there.mT, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_network_does_not_depend_on_those_beside_it(kind):
    tokens = torch.randint(5, (3, 2, 7), generator=stream(1, "tokens"))
    one, three = encoder(kind, R=1), encoder(kind, R=3)
    assert torch.allclose(one(tokens[:1]), three(tokens)[:1], atol=1e-12)


def test_a_single_token_is_a_sequence():
    for kind in KINDS:
        assert encoder(kind)(torch.zeros(2, 1, 1, dtype=torch.long)).shape == (2, 1, 1, 4)


def test_heads_that_do_not_divide_the_width_are_named():
    with pytest.raises(ValueError, match="heads = 3 do not divide width = 4"):
        Size(codes=5, outputs=1, length=4, width=4, heads=3)


# Heads ----------------------------------------------------------------------------------------------------------------


def test_blurred_labels_become_hard_and_know_the_order():
    centres = torch.arange(6.0, dtype=torch.float64).expand(1, 6) / 6
    assert torch.allclose(heads.blurred_labels(centres, 1e-3)[0], torch.eye(6, dtype=torch.float64), atol=1e-12)
    row = heads.blurred_labels(centres, 0.2)[0, 2]
    assert row.argmax() == 2
    assert row[1] > row[4] > row[5]
    assert abs(row[1] - row[3]) < 1e-12
    assert abs(row.sum() - 1) < 1e-12
    with pytest.raises(ValueError, match="blur = 0"):
        heads.blurred_labels(centres, 0.0)


def test_the_pooled_law_is_the_same_in_pieces(rows, monkeypatch):
    """Of its forty sequences seven are read at once."""
    monkeypatch.setattr(training, "AT_ONCE", 7)
    found = Order.at("ci").run({"arm": "ce"}, seed=0, device=torch.device("cpu"), dtype=torch.float32)
    whole = rows[Order].query("arm == 'ce'")
    for name in ("bias", "unbiased", "slope", "law"):
        assert found[name].dropna().to_numpy() == pytest.approx(whole[name].dropna().to_numpy(), rel=1e-3, abs=1e-5)


def test_smoothed_labels_are_as_soft_and_know_no_neighbour():
    blurred = heads.blurred_labels(torch.linspace(0, 1, 24).double().expand(2, -1), 0.06)
    smooth = heads.smoothed_labels(blurred)
    soft = [torch.special.entr(table).sum(dim=-1).mean(dim=-1) for table in (blurred, smooth)]
    assert torch.allclose(*soft, atol=1e-9)
    off = smooth[0][~torch.eye(24, dtype=torch.bool)]
    assert off.max() - off.min() < 1e-15
    assert torch.equal(heads.nearest_label(smooth.log(), smooth), torch.arange(24).expand(2, -1))
    assert torch.equal(heads.nearest_label(blurred.log(), blurred), torch.arange(24).expand(2, -1))


def test_the_arms_that_take_a_blur_apart(rows):
    """A sign drawn at random leaves no bias to be found."""
    table = rows[Order]
    ends = table[table["bias"].notna()]
    assert (ends["stage"] == "fit").all()
    assert ends.groupby("arm").size().eq(table["replicate"].nunique()).all()
    assert (ends["unbiased"].abs() < 0.2).all()
    flat = table.assign(valid=1.0, rmse=0.01, reconstruction=0.0)
    with pytest.raises(ValueError, match="not learned"):
        training.once_learned("smoothed", "blurred")(flat.assign(rmse=flat["arm"].map({"smoothed": 0.1}).fillna(0.01)))
    falling = flat.assign(valid=-flat["step"].astype(float))
    with pytest.raises(ValueError, match="plateau"):
        training.once_learned("smoothed", "blurred")(falling)


def test_the_blurred_loss_is_cross_entropy_when_labels_are_sharp():
    outputs = torch.randn(2, 3, 4, 5, generator=stream(0, "outputs"), dtype=torch.float64)
    labels = torch.randint(5, (2, 3, 4), generator=stream(0, "labels"))
    there = torch.nn.functional.cross_entropy(outputs[1].flatten(0, 1), labels[1].flatten())
    assert (
        abs(heads.blurred_loss(outputs, labels, torch.eye(5, dtype=torch.float64).expand(2, 5, 5))[1] - there) < 1e-12
    )


def test_each_code_is_its_own_nearest():
    codes = heads.random_codes(2, 7, 4, stream(0, "codes"))
    assert torch.equal(heads.nearest_code(codes, codes), torch.arange(7).expand(2, 7))


# Training and judging -------------------------------------------------------------------------------------------------


def test_shuffled_names_decode_to_the_same_values():
    values = torch.rand(2, 50, generator=stream(0, "values"), dtype=torch.float64)
    bins = fits.Bins.uniform(values, 6)
    order = torch.stack([torch.randperm(6, generator=stream(r, "order")) for r in range(2)])
    other = bins.relabelled(order)
    assert not torch.equal(bins.encode(values), other.encode(values))
    assert torch.equal(bins.decode(bins.encode(values)), other.decode(other.encode(values)))
    assert (bins.decode(bins.encode(values)) - values).abs().max() <= (values.max() - values.min()) / 12 + 1e-12


def test_a_probe_finds_a_linear_truth_and_no_other():
    g = stream(0, "probe")
    h = torch.randn(1, 40, 6, 5, generator=g, dtype=torch.float64)
    truth = h @ torch.randn(5, 2, generator=g, dtype=torch.float64) + 3
    assert torch.allclose(fits.probe(h, truth), torch.ones(1, 2, dtype=torch.float64), atol=1e-9)
    assert torch.allclose(fits.probe(h, 50 * truth), torch.ones(1, 2, dtype=torch.float64), atol=1e-9)
    assert (fits.probe(h, torch.randn(1, 40, 6, 2, generator=g, dtype=torch.float64)) < 0.1).all()


def test_each_network_is_judged_on_its_own_draw_which_its_pair_shares():
    """Other paths and another disturbance for each network, the same for every arm; a network's value is that of its
    own draw, and does not depend on the draws of the others."""
    facts = {"num": 6, "judged": 16, "length": 8, "noise": 0.0, "seed": 0, "role": "fit"}
    found, more = (fits.data("lorenz", networks=R, **facts) for R in (2, 3))
    for name in ("test", "states"):
        one, other = getattr(found, name), getattr(more, name)
        assert torch.equal(one, other[:2])
        assert not torch.isclose(one[0], one[1]).all(dim=-1).any()
    struck = (found.noisy - found.test[:, :, :-1]) != 0
    assert not torch.equal(struck[:, 0], struck[:, 1])
    assert torch.equal(found.noisy, more.noisy[:, :2])
    assert torch.allclose(found.states[..., 0], found.low + found.test * (found.high - found.low))
    options = {"seed": 0, "role": "fit", "device": torch.device("cpu"), "dtype": torch.float64}
    judged = fits.Arm(Arms.at("ci"), "ce", found.values, "attention", False, **options).judge(found)
    other = dataclasses.replace(
        found, test=found.test[[0, 0]], noisy=found.noisy[:, [0, 0]], states=found.states[[0, 0]]
    )
    again = fits.Arm(Arms.at("ci"), "ce", found.values, "attention", False, **options).judge(other)
    for name in ("distortion", "rmse", "hidden"):
        assert torch.isclose(judged[name][0], again[name][0])
        assert not torch.isclose(judged[name][1], again[name][1])
    shared = dataclasses.replace(found, states=found.states[[0, 0]])  # the truth of the first network's paths for both
    one = fits.Arm(Arms.at("ci"), "ce", found.values, "attention", False, **options).judge(shared)
    assert torch.equal(judged["distortion"], one["distortion"])
    assert torch.isclose(judged["hidden"], one["hidden"]).tolist() == [True, False]


def test_a_probe_is_judged_on_paths_that_it_was_not_fitted_on():
    """Five numbers fitted on twelve that have nothing to do with them explain much of these, and nothing of others."""
    g = stream(0, "unrelated")
    h, truth = (torch.randn(40, 4, 6, num, generator=g, dtype=torch.float64) for num in (5, 2))
    assert fits.probe(h, truth).mean() < 0


def test_hidden_is_the_mean_over_the_coordinates_that_no_model_saw(monkeypatch):
    found = fits.data("lorenz", networks=2, num=6, judged=16, length=8, noise=0.0, seed=0, role="fit")
    options = {"seed": 0, "role": "fit", "device": torch.device("cpu"), "dtype": torch.float64}
    one = fits.Arm(Arms.at("ci"), "ce", found.values, "attention", False, **options)
    monkeypatch.setattr(fits, "probe", lambda h, states: torch.tensor([[0.0, 2.0, 4.0], [3.0, 1.0, 2.0]]))
    judged = one.judge(found)
    assert judged["hidden"].tolist() == [3.0, 1.5]
    assert judged["probe"].tolist() == [2.0, 2.0]


def test_noise_strikes_the_published_shares_by_a_tenth_of_the_range():
    """Counts and deviations of 200,000 positions, to five of their standard errors."""
    found, num = fits.disturbed(torch.zeros(400, 500, dtype=torch.float64), stream(0, "struck")), 200_000
    for share, each in zip((0.01, 0.02, 0.05, 0.1), found, strict=True):
        struck = each[each != 0]
        assert abs(len(struck) - num * share) < 5 * (num * share) ** 0.5
        assert abs(struck.std() - 0.1) < 5 * 0.1 / (2 * num * share) ** 0.5


def test_an_arm_is_asked_for_what_comes_next():
    """Labels and values of the loss stand one place after the tokens read, in training, validation and judging; the
    scalar head is asked for the value itself, before it was rounded to a bin."""
    found = fits.data("lorenz", networks=2, num=6, judged=16, length=8, noise=0.0, seed=0, role="fit")
    options = {"seed": 0, "role": "fit", "device": torch.device("cpu"), "dtype": torch.float64}
    one, asked, read = fits.Arm(Arms.at("ci"), "scalar", found.values, "attention", False, **options), [], []
    after = found.test[..., 1:]
    assert one.losses((4 * (after - 0.5)).unsqueeze(-1), one.read(found.test)[..., 1:], after).max() < 1e-24
    assert torch.allclose(one.says((4 * (after - 0.5)).unsqueeze(-1)), after)
    losses = one.losses
    one.losses = lambda outputs, *given: asked.append(given) or losses(outputs, *given)
    one.model.register_forward_pre_hook(lambda _, given: read.append(given[0]))
    fits.fit(one, found, steps=2, batch=3, rates=torch.full((2,), 1e-3, dtype=torch.float64))
    one.valid(found)
    for tokens, (labels, values) in zip(read, asked, strict=True):
        assert torch.equal(tokens[..., 1:], labels[..., :-1])
        assert torch.equal(one.read(values), labels)
    one.says = lambda outputs: after
    assert one.judge(found)["rmse"].max() < 1e-12


def test_labels_in_groups_of_bins_are_asked_for_and_the_tokens_stay():
    """Of 24 bins four groups of six; what a label decodes to is the middle of its group."""
    size = dataclasses.replace(Order.at("ci"), codes=24)
    found = fits.data("lorenz", networks=2, num=6, judged=16, length=8, noise=0.0, seed=0, role="fit")
    options = {"seed": 0, "role": "fit", "device": torch.device("cpu"), "dtype": torch.float64}
    hard, four = (fits.Arm(size, arm, found.values, "attention", False, **options) for arm in ("ce", "coarser"))
    tokens = four.read(found.valid)
    assert torch.equal(tokens, hard.read(found.valid))
    assert tokens.max() > 4
    outputs = torch.randn(2, 5, 4, generator=stream(0, "outputs"), dtype=torch.float64)
    labels = torch.tensor([[0, 5, 6, 17, 23]]).expand(2, -1)
    wanted = [torch.nn.functional.cross_entropy(each, torch.tensor([0, 0, 1, 2, 3])) for each in outputs]
    assert torch.allclose(four.losses(outputs, labels, labels), torch.stack(wanted))
    assert torch.allclose(four.labels[:, 1], four.bins.centres[:, 6:12].mean(dim=-1))
    wide = {arm: one.judge(found)["reconstruction"].mean() for arm, one in {"ce": hard, "coarser": four}.items()}
    assert wide["coarser"] > 3 * wide["ce"]


def test_disordered_labels_are_the_blurred_ones_along_an_order_of_each_network():
    """Rows and columns are moved alike, so that each label is still the likeliest of its own row."""
    found = fits.data("lorenz", networks=2, num=6, judged=16, length=8, noise=0.0, seed=0, role="fit")
    options = {"seed": 0, "role": "fit", "device": torch.device("cpu"), "dtype": torch.float64}
    arms = (
        fits.Arm(Order.at("ci"), arm, found.values, "attention", False, **options) for arm in ("blurred", "disordered")
    )
    blurred, moved = (arm.table for arm in arms)
    assert moved.shape == blurred.shape
    assert torch.equal(moved.flatten(1).sort().values, blurred.flatten(1).sort().values)
    assert torch.equal(moved.argmax(dim=-1), torch.arange(moved.shape[-1]).expand(2, -1))
    assert not torch.allclose(moved, blurred)
    assert not torch.allclose(moved[0], moved[1])


def test_networks_side_by_side_learn_at_their_own_rates():
    """Two rates in one batch against each of them alone."""
    size = Arms.at("ci")
    found = fits.data("lorenz", networks=2, num=6, judged=16, length=8, noise=0.0, seed=0, role="fit")

    def weights(rates):
        options = {"seed": 0, "role": "fit", "device": torch.device("cpu"), "dtype": torch.float64}
        one = fits.Arm(size, "scalar", found.values, "attention", False, **options)
        fits.fit(one, found, steps=5, batch=3, rates=torch.tensor(rates, dtype=torch.float64))
        return [weight.detach() for weight in one.model.parameters()]

    both, slow, fast = weights([1e-3, 3e-2]), weights([1e-3, 1e-3]), weights([3e-2, 3e-2])
    for b, s, f in zip(both, slow, fast, strict=True):
        assert torch.allclose(b[0], s[0], atol=1e-12)
        assert torch.allclose(b[1], f[1], atol=1e-12)
    assert not torch.allclose(slow[0][1], fast[0][1])


def test_the_rate_warms_up_and_ends_near_zero(monkeypatch):
    monkeypatch.setattr(fits.training, "train", lambda loss, optimiser, *, steps, rate: [*map(rate, range(steps))])
    found = fits.data("lorenz", networks=2, num=6, judged=16, length=8, noise=0.0, seed=0, role="fit")
    options = {"seed": 0, "role": "fit", "device": torch.device("cpu"), "dtype": torch.float64}
    one = fits.Arm(Arms.at("ci"), "scalar", found.values, "attention", False, **options)
    rates = fits.fit(one, found, steps=100, batch=3, rates=torch.tensor([0.1, 0.4], dtype=torch.float64))
    assert [rates[0], rates[50]] == pytest.approx([0.04, 0.2])
    assert rates[9] == pytest.approx(max(rates)) == pytest.approx(0.4, rel=0.03)
    assert 0 < rates[99] < 2e-4


def test_more_networks_of_two_heads_share_no_draw_with_those_of_all_arms(rows):
    """And a claim about the two, on the three systems, finds its rows, those of its control too."""
    ends = ["system", "arm", "stage", "rate", "replicate"]
    old, new = (rows[one].groupby(ends)["distortion"].last() for one in (Arms, Heads))
    both = pd.concat([old, new], axis=1, join="inner", keys=["old", "new"])
    assert {*rows[Heads]["arm"]} == {"ce", "blurred", "scalar", "shuffled"}
    assert both.index.get_level_values("system").nunique() == 3
    assert (both["old"] != both["new"]).all()
    claim = next(claim for claim in training.CLAIMS if claim.id == "GT-7.a")
    flat = rows[Heads].assign(valid=1.0)
    assert np.isfinite([claim.measure(flat).value, claim.comparison[1](flat).value]).all()
    falling = flat.assign(valid=-flat["step"] * (flat["system"] == "waveforms").astype(float))
    for claim in (claim for claim in training.CLAIMS if claim.id in ("GT-7.a", "GT-7.d")):
        with pytest.raises(ValueError, match=r"waveforms.* not come to a plateau"):
            claim.measure(falling)


def test_a_claim_about_one_system_asks_that_one_for_a_plateau(rows):
    claim = next(claim for claim in training.CLAIMS if claim.id == "GT-7.h")
    table = rows[Heads]
    for system, refused in (("waveforms", False), ("lorenz", True)):
        falling = table.assign(valid=-table["step"] * (table["system"] == system).astype(float))
        if refused:
            with pytest.raises(ValueError, match=r"lorenz.* not come to a plateau"):
                claim.measure(falling)
        else:
            lorenz = table[table["system"] == "lorenz"]
            assert claim.measure(falling).value == pytest.approx(claim.measure(lorenz.assign(valid=1.0)).value)


@pytest.mark.parametrize("arm", ["blurred", "scalar"])
def test_blurred_labels_and_the_squared_error_are_compared_at_a_plateau(rows, arm):
    """On the two systems that can be foreseen, whatever hard labels and wave forms do."""
    claim = next(claim for claim in training.CLAIMS if claim.id == "GT-7b.c")
    table = rows[Heads].assign(valid=1.0, rmse=0.01)
    others = (table["system"] == "waveforms") | (table["arm"] == "ce")
    assert np.isfinite(claim.measure(table.assign(valid=-table["step"] * others.astype(float))).value)
    mine = (table["system"] == "oscillators") & (table["arm"] == arm)
    with pytest.raises(ValueError, match=rf"{arm}.*oscillators.* not come to a plateau"):
        claim.measure(table.assign(valid=-table["step"] * mine.astype(float)))
    with pytest.raises(ValueError, match=rf"{arm}.*oscillators.* has not learned"):
        claim.measure(table.assign(rmse=0.01 + mine, reconstruction=0.0))


@pytest.mark.parametrize("name", ["GT-7.f", "GT-7b.a"])
def test_blurred_and_hard_labels_are_compared_where_they_have_learned(rows, name):
    claim = next(claim for claim in training.CLAIMS if claim.id == name)
    flat = rows[Order].assign(valid=1.0, rmse=0.01, reconstruction=0.0)
    assert claim.experiment is Order
    assert np.isfinite([claim.measure(flat).value, claim.comparison[1](flat).value]).all()
    with pytest.raises(ValueError, match="'blurred' has not learned"):
        claim.measure(flat.assign(rmse=flat["arm"].map({"blurred": 0.1}).fillna(0.01)))
    with pytest.raises(ValueError, match="'smoothed' has not learned"):
        claim.comparison[1](flat.assign(rmse=flat["arm"].map({"smoothed": 0.1}).fillna(0.01)))
    for arm in ("ce", "blurred"):
        with pytest.raises(ValueError, match=f"{arm}.* not come to a plateau"):
            claim.measure(flat.assign(valid=-flat["step"] * (flat["arm"] == arm).astype(float)))


def test_the_rise_is_that_of_hard_labels_over_that_of_others():
    """Hard labels rise to six times, blurred ones to twice, so three times as much; smoothed ones as hard ones."""
    looks = {"ce": (1.0, 5.0, 6.0), "blurred": (1.0, 2.0, 2.0), "smoothed": (2.0, 11.0, 12.0)}
    learned = {"valid": 1.0, "rmse": 0.01, "reconstruction": 0.0}
    made = [
        {"stage": "fit", "arm": arm, "replicate": r, "step": step, "distortion": D, **learned}
        for arm, values in looks.items()
        for r in range(3)
        for step, D in zip((60, 540, 600), values, strict=True)
    ]
    assert training.rise(pd.DataFrame(made)).value == pytest.approx(3)
    assert training.rise(pd.DataFrame(made), "smoothed").value == pytest.approx(1)


def test_the_search_chooses_by_validation(rows):
    table = rows[Arms]
    for _, part in table[table["arm"] != "untrained"].groupby(["system", "arm"]):
        tried = part[part["stage"] == "search"].groupby("rate")["valid"].mean()
        assert set(part[part["stage"] == "fit"]["rate"]) == {tried.idxmin()}


def test_every_arm_starts_from_the_same_encoder():
    small = dataclasses.replace(Arms.at("ci"), looks=(0.0,))
    options = {"seed": 0, "device": torch.device("cpu"), "dtype": torch.float64}
    start = [
        small.run({"system": "lorenz", "arm": arm}, **options).query("stage == 'fit' and step == 0") for arm in ARMS
    ]
    found = np.stack(
        [part["distortion"].to_numpy() for arm, part in zip(ARMS, start, strict=True) if arm != "shuffled"]
    )
    assert np.ptp(found, axis=0).max() < 1e-9
    assert np.ptp(found, axis=1).min() > 1e-4  # and each network from its own


def test_only_the_leaking_encoder_feels_what_is_to_come(rows):
    table = rows[Causality]
    leaks = table["encoder"] == "leaking"
    assert (table[~leaks]["ahead"] <= table[~leaks]["bound"]).all()
    assert (table[leaks]["ahead"] > 1e-3).all()
    assert (table["at"] > 1e-3).all()


# Measures of the claims -----------------------------------------------------------------------------------------------


def test_a_ratio_is_taken_pair_by_pair(rows):
    table = rows[Arms].copy()
    table.loc[table["arm"] == "ce", "distortion"] = 0.3
    table.loc[table["arm"] == "scalar", "distortion"] = 0.1
    found = training.times(training.HARD, training.SCALAR, training.EACH)(table)
    assert abs(found.value - 3) < 1e-12
    assert abs(found.low - 3) < 1e-9


def test_other_judges_judge_the_networks_of_the_arms(monkeypatch):
    """At the rates of one tier, judged on the paths of its first network, that network scores what it scores there."""
    small = dataclasses.replace(Arms.at("ci"), rates=(0.03,), looks=())
    run = {"seed": 0, "device": torch.device("cpu"), "dtype": torch.float32}
    arms = small.run({"system": "lorenz", "arm": "scalar"}, **run).query("stage == 'fit'")["distortion"]
    found = fits.data("lorenz", **{"num": 12, "judged": 16, "length": 8, "noise": 0.0}, networks=2, seed=0, role="fit")

    def same(system, n, L, generator):
        assert (system, n, L) == ("lorenz", 16, 8)
        x = torch.zeros(16, 8, 3, dtype=found.test.dtype)
        x[..., 0] = found.low + (found.high - found.low) * found.test[0, :, :-1]
        return x

    monkeypatch.setattr(training, "paths", same)
    monkeypatch.setattr(training, "disturbed", lambda clean, generator: found.noisy[:, 0])
    judged = Judges.at("ci").run({"system": "lorenz", "arm": "scalar"}, **run)
    assert judged.query("draw == 0")["distortion"].iloc[0] == pytest.approx(arms.iloc[0], rel=1e-4)
    assert judged.query("draw == 0")["distortion"].iloc[1] != pytest.approx(arms.iloc[1], rel=1e-4)


def test_the_spread_between_judges_is_a_standard_deviation_over_an_error():
    """Normal numbers of known parts: between draws 0.3, between pairs 1; the error of eight pairs is 1 / sqrt 8."""
    normal = torch.randn(400 + 400 * 8, generator=stream(0, "judges"), dtype=torch.float64)
    moved, own = 0.3 * normal[:400], normal[400:].view(400, 8)
    logs = moved[:, None] + own[:1]  # the pairs keep their own values from draw to draw
    tables = [
        pd.DataFrame({"draw": range(400), "replicate": r, "system": system, "arm": arm, "distortion": value})
        for system in fits.GAPS
        for r in range(8)
        for arm, value in (("ce", logs[:, r].exp().numpy()), ("scalar", 1.0))
    ]
    found = training.other_judges(pd.concat(tables))
    assert found.value == pytest.approx(0.3 / (own[0].std().item() / 8**0.5), rel=0.15)
    assert found.low < found.value < found.high
    lacking = pd.concat(tables, ignore_index=True)
    lacking.loc[0, "distortion"] = np.nan
    with pytest.raises(ValueError, match=r"1 of 3200 ratios of .* are not finite"):
        training.other_judges(lacking)


def test_the_rise_of_hard_labels_is_judged_against_blurred_ones(rows):
    table = rows[Arms].copy()
    table["distortion"] = 1.0
    end = table["step"] == table["step"].max()
    table.loc[end & (table["arm"] == "ce"), "distortion"] = 3.0
    table.loc[end & (table["arm"] == "blurred"), "distortion"] = 2.0
    assert abs(training.rise(table).value - 1.5) < 1e-12


def test_equal_encoders_do_not_differ_by_the_scatter_of_their_networks(rows):
    """Max over min of three single networks would be above 1 here; the farthest pair of means may be 1."""
    table = rows[Encoders]
    one = table[(table["stage"] == "fit") & table["replicate"].eq(0)]
    one = one.assign(valid=1.0 + one["step"].eq(one["step"].min()))
    table = pd.concat([one.assign(replicate=r) for r in range(8)], ignore_index=True)
    scatter = np.exp(0.2 * np.random.default_rng(0).standard_normal(len(table)))
    equal = table.assign(distortion=scatter)
    for measure in (training.encoders_differ, training.labels_differ_more):
        found = measure(equal)
        assert found.low <= 1 <= found.high
    factor = np.where(table["arm"] == "ce", 6.0, 4.0)
    apart = equal.assign(distortion=scatter * np.where(table["encoder"] == "state", factor, 1.0))
    assert training.encoders_differ(apart).low > 1.3
    falling = apart["encoder"].eq("state") & apart["step"].eq(apart["step"].max())
    with pytest.raises(ValueError, match="'state' and arm == 'scalar' have not come to a plateau"):
        training.encoders_differ(apart.assign(valid=apart["valid"].mask(falling, 0.9)))
    assert (
        abs(
            training.labels_differ_more(
                table.assign(distortion=np.where(table["encoder"] == "state", factor, 1.0))
            ).value
            - 1.5
        )
        < 1e-9
    )
    factor = np.where(table["replicate"] % 2 == 0, 6.0, 4.0)
    halves = table.assign(distortion=np.where((table["encoder"] == "state") & (table["arm"] == "scalar"), factor, 1.0))
    assert training.halves_differ(halves).value == pytest.approx(1.5)


def test_the_law_of_hard_labels_does_not_fit_other_arms():
    keys = pd.MultiIndex.from_product([["ce", "blurred"], range(3)], names=["arm", "replicate"]).to_frame(index=False)
    table = keys.assign(distortion=keys["arm"].map({"ce": 0.8, "blurred": 0.2}), law=1.0)
    assert training.one_law(table).value == pytest.approx((1 + 0.25) / 2)


def test_the_figures_tell_what_they_show(rows, tells):
    tells(
        training.arms(rows[Arms]), "Distortion of six ways", "Lorenz: ", "hard labels 0.", "wave forms: ", "untrained"
    )
    tells(training.truth(rows[Arms]), "R squared of the unobserved", "oscillators: ", "random codes")
    tells(training.learning(rows[Arms]), "from a tenth of the training to its end", "blurred labels")
    tells(training.blur(rows[Blur]), "hard", "10 %")
    tells(training.encoders(rows[Encoders]), "transformer, hard labels", "with the leak, the value")
    times = rows[Encoders]["encoder"].map({"leaking": 4.0}).fillna(2.0)
    distortion = times.where(rows[Encoders]["arm"] == "ce", 1.0)
    title = training.encoders(rows[Encoders].assign(distortion=distortion)).axes[0].texts[0].get_text()
    assert title == "In each encoder hard labels distort\n2.0 to 4.0 times as much"
