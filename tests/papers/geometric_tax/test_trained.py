"""Networks side by side: labels and losses, how they train and are judged, and what a blur is taken apart into."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.rng import stream
from derived.papers.geometric_tax import fits, measures, trained
from derived.papers.geometric_tax.losses import LOSSES
from derived.papers.geometric_tax.model import heads
from derived.papers.geometric_tax.trained import Heads, Order

EXPERIMENTS = (Order,)
FACTS = {"num": 6, "judged": 16, "length": 8, "noise": 0.0, "seed": 0, "role": "fit"}
OPTIONS = {"seed": 0, "role": "fit", "device": torch.device("cpu"), "dtype": torch.float64}
CLAIMS = {claim.id: claim for claim in trained.CLAIMS}


def arm(name, found, size=None):
    return fits.Arm(size or Heads.at("ci"), name, found.values, "attention", False, **OPTIONS)


# Labels and losses ----------------------------------------------------------------------------------------------------


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


def test_smoothed_labels_are_as_soft_and_know_no_neighbour():
    blurred = heads.blurred_labels(torch.linspace(0, 1, 24).double().expand(2, -1), 0.06)
    smooth = heads.smoothed_labels(blurred)
    soft = [torch.special.entr(table).sum(dim=-1).mean(dim=-1) for table in (blurred, smooth)]
    assert torch.allclose(*soft, atol=1e-9)
    off = smooth[0][~torch.eye(24, dtype=torch.bool)]
    assert off.max() - off.min() < 1e-15
    assert torch.equal(heads.nearest_label(smooth.log(), smooth), torch.arange(24).expand(2, -1))
    assert torch.equal(heads.nearest_label(blurred.log(), blurred), torch.arange(24).expand(2, -1))


def test_the_blurred_loss_is_cross_entropy_when_labels_are_sharp():
    outputs = torch.randn(2, 3, 4, 5, generator=stream(0, "outputs"), dtype=torch.float64)
    labels = torch.randint(5, (2, 3, 4), generator=stream(0, "labels"))
    there = torch.nn.functional.cross_entropy(outputs[1].flatten(0, 1), labels[1].flatten())
    assert (
        abs(heads.blurred_loss(outputs, labels, torch.eye(5, dtype=torch.float64).expand(2, 5, 5))[1] - there) < 1e-12
    )


def test_losses_that_know_distances_grow_with_the_distance_and_cross_entropy_does_not():
    """All probability on one bin of eight: the cumulative loss counts the bins between."""
    labels = torch.arange(8).view(1, 8)
    outputs = 50 * torch.eye(8, dtype=torch.float64)[2].expand(1, 8, 8)
    each = [heads.cumulative_loss(outputs[:, [k]], labels[:, [k]]).item() for k in range(8)]
    assert each == pytest.approx([abs(k - 2) for k in range(8)], abs=1e-9)
    flat = [-torch.log_softmax(outputs, -1)[0, 0, k].item() for k in (1, 7)]
    assert flat[0] == pytest.approx(flat[1])


@pytest.mark.parametrize("name", sorted({name for name, _ in LOSSES.values()}))
def test_every_loss_has_gradients_that_agree_with_differences(name):
    """Of two networks, on outputs that do not lie side by side in memory."""
    found = fits.data("lorenz", networks=2, **FACTS)
    one = arm(name, found)
    labels = one.read(found.test)[..., 1:]
    values = found.test[..., 1:]
    wide = 1 if name in fits.NUMBER else 8
    outputs = torch.randn(wide, 2, *labels.shape[1:], generator=stream(0, "outputs"), dtype=torch.float64)
    outputs = outputs.movedim(0, -1).requires_grad_()
    assert not outputs.is_contiguous() or wide == 1
    (slope,) = torch.autograd.grad(one.losses(outputs, labels, values).sum(), outputs)
    step = torch.zeros_like(outputs)
    step[1, 3, 2, 0] = 1e-6
    there = (one.losses(outputs + step, labels, values) - one.losses(outputs - step, labels, values)).sum() / 2e-6
    assert slope[1, 3, 2, 0].item() == pytest.approx(there.item(), rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("name", ["rounded", "scalar"])
def test_heads_of_one_number_say_the_value_that_they_are_asked_for(name):
    found = fits.data("lorenz", networks=2, **FACTS)
    one = arm(name, found)
    labels, values = one.read(found.test)[..., 1:], found.test[..., 1:].double()
    asked = values if name == "scalar" else one.bins.decode(labels)
    outputs = 4 * (asked - 0.5).unsqueeze(-1)
    assert one.losses(outputs, labels, values).max() < 1e-12
    assert torch.allclose(one.says(outputs), asked)


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
    found, more = (fits.data("lorenz", networks=R, **FACTS) for R in (2, 3))
    for name in ("test", "states"):
        one, other = getattr(found, name), getattr(more, name)
        assert torch.equal(one, other[:2])
        assert not torch.isclose(one[0], one[1]).all(dim=-1).any()
    struck = (found.noisy - found.test[:, :, :-1]) != 0
    assert not torch.equal(struck[:, 0], struck[:, 1])
    assert torch.equal(found.noisy, more.noisy[:, :2])
    assert torch.allclose(found.states[..., 0], found.low + found.test * (found.high - found.low))
    judged = arm("ce", found).judge(found)
    other = dataclasses.replace(
        found, test=found.test[[0, 0]], noisy=found.noisy[:, [0, 0]], states=found.states[[0, 0]]
    )
    again = arm("ce", found).judge(other)
    for name in ("distortion", "rmse", "hidden"):
        assert torch.isclose(judged[name][0], again[name][0])
        assert not torch.isclose(judged[name][1], again[name][1])
    shared = dataclasses.replace(found, states=found.states[[0, 0]])  # the truth of the first network's paths for both
    one = arm("ce", found).judge(shared)
    assert torch.equal(judged["distortion"], one["distortion"])
    assert torch.isclose(judged["hidden"], one["hidden"]).tolist() == [True, False]


def test_a_probe_is_judged_on_paths_that_it_was_not_fitted_on():
    """Five numbers fitted on twelve that have nothing to do with them explain much of these, and nothing of others."""
    g = stream(0, "unrelated")
    h, truth = (torch.randn(40, 4, 6, num, generator=g, dtype=torch.float64) for num in (5, 2))
    assert fits.probe(h, truth).mean() < 0


def test_hidden_is_the_mean_over_the_coordinates_that_no_model_saw(monkeypatch):
    found = fits.data("lorenz", networks=2, **FACTS)
    one = arm("ce", found)
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
    target of the scalar head is the value itself, before it was rounded to a bin."""
    found = fits.data("lorenz", networks=2, **FACTS)
    one, asked, read = arm("scalar", found), [], []
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
    found = fits.data("lorenz", networks=2, **FACTS)
    hard, four = (arm(name, found, size) for name in ("ce", "coarser"))
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
    found = fits.data("lorenz", networks=2, **FACTS)
    blurred, moved = (arm(name, found, Order.at("ci")).table for name in ("blurred", "disordered"))
    assert moved.shape == blurred.shape
    assert torch.equal(moved.flatten(1).sort().values, blurred.flatten(1).sort().values)
    assert torch.equal(moved.argmax(dim=-1), torch.arange(moved.shape[-1]).expand(2, -1))
    assert not torch.allclose(moved, blurred)
    assert not torch.allclose(moved[0], moved[1])


def test_networks_side_by_side_learn_at_their_own_rates():
    """Two rates in one batch against each of them alone."""
    found = fits.data("lorenz", networks=2, **FACTS)

    def weights(rates):
        one = arm("scalar", found)
        fits.fit(one, found, steps=5, batch=3, rates=torch.tensor(rates, dtype=torch.float64))
        return [weight.detach() for weight in one.model.parameters()]

    both, slow, fast = weights([1e-3, 3e-2]), weights([1e-3, 1e-3]), weights([3e-2, 3e-2])
    for b, s, f in zip(both, slow, fast, strict=True):
        assert torch.allclose(b[0], s[0], atol=1e-12)
        assert torch.allclose(b[1], f[1], atol=1e-12)
    assert not torch.allclose(slow[0][1], fast[0][1])


def test_the_arms_that_take_a_blur_apart(rows):
    """A sign drawn at random leaves no bias to be found."""
    table = rows[Order]
    ends = table[table["bias"].notna()]
    assert (ends["stage"] == "fit").all()
    assert ends.groupby("arm").size().eq(table["replicate"].nunique()).all()
    assert (ends["unbiased"].abs() < 0.2).all()
    flat = table.assign(valid=1.0, rmse=0.01, reconstruction=0.0)
    with pytest.raises(ValueError, match="not learned"):
        measures.once_learned("smoothed", "blurred")(flat.assign(rmse=flat["arm"].map({"smoothed": 0.1}).fillna(0.01)))
    falling = flat.assign(valid=-flat["step"].astype(float))
    with pytest.raises(ValueError, match="plateau"):
        measures.once_learned("smoothed", "blurred")(falling)


def test_what_four_bins_take_is_set_against_what_a_blur_takes():
    made = [
        {
            "arm": name,
            "replicate": r,
            "step": step,
            "stage": "fit",
            "distortion": D * (1 + 0.01 * np.sin(r)),
            "valid": 1.0,
        }
        | {"rmse": 0.01, "reconstruction": 0.0}
        for name, D in {"ce": 0.2, "coarser": 0.07, "blurred": 0.05, "smoothed": 0.21}.items()
        for r in range(8)
        for step in (1, 8, 9)
    ]
    rows = pd.DataFrame(made)
    claim = CLAIMS["GT-7c.d"]
    assert claim.measure(rows).value == pytest.approx(np.log(0.2 / 0.07) - np.log(4) / 2)
    assert claim.judge(claim.control(rows))[0] == "fails"
    with pytest.raises(ValueError, match="'coarser' has not learned"):
        claim.measure(rows.assign(rmse=rows["arm"].map({"coarser": 0.1}).fillna(0.01)))


def test_the_law_of_hard_labels_does_not_fit_other_kinds():
    keys = pd.MultiIndex.from_product([["ce", "blurred"], range(3)], names=["arm", "replicate"]).to_frame(index=False)
    table = keys.assign(distortion=keys["arm"].map({"ce": 0.8, "blurred": 0.2}), law=1.0)
    assert CLAIMS["GT-2.d"].measure(table).value == pytest.approx(1)
    assert CLAIMS["GT-2.d"].control(table).value == pytest.approx((1 + 0.25) / 2)
