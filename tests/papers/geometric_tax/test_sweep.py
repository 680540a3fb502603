"""The codebook from coarse to fine: what its rows, its measures and its figure must say."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.rng import stream
from derived.papers.geometric_tax import fits, sweep
from derived.papers.geometric_tax.sweep import Longer, Sweep

EXPERIMENTS = (Sweep, Longer)


def test_finer_codebooks_reconstruct_better(rows):
    table = rows[Sweep]
    missed = table[(table["arm"] == "ce") & (table["stage"] == "fit") & (table["noise"] == 0)]
    for _, part in missed.groupby(["num", "replicate"]):
        assert (part.sort_values("K")["reconstruction"].diff().dropna() < 0).all()


def test_learned_bins_are_nearest_means():
    """k-means on the line against every value's nearest centre."""
    values = torch.randn(2, 300, generator=stream(0, "values"), dtype=torch.float64)
    bins = fits.Bins.means(values, 5)
    nearest = (values.unsqueeze(-1) - bins.centres.unsqueeze(1)).abs().argmin(dim=-1)
    assert torch.equal(bins.encode(values), nearest)
    for r in range(2):
        for k in range(5):
            assert torch.isclose(values[r][nearest[r] == k].mean(), bins.centres[r, k], atol=1e-9)


def test_noise_lies_on_what_is_read_not_on_the_truth():
    facts = {"networks": 1, "num": 4, "judged": 40, "length": 16, "seed": 0, "role": "fit"}
    quiet, noisy = (fits.data("lorenz", noise=noise, **facts) for noise in (0.0, 0.05))
    assert torch.equal(quiet.states, noisy.states)
    for one, other in ((quiet.values, noisy.values), (quiet.test, noisy.test), (quiet.valid, noisy.valid)):
        assert 0.04 < float((other - one).std()) < 0.06
    assert torch.equal(noisy.values, noisy.labels)
    assert torch.equal(noisy.valid, noisy.valid_labels)


def test_noise_on_labels_lies_on_what_is_asked_for_and_nowhere_else(monkeypatch):
    facts = {"networks": 2, "num": 4, "judged": 40, "length": 16, "seed": 0, "role": "fit"}
    quiet = fits.data("lorenz", noise=0.0, **facts)
    noisy, both = (fits.data("lorenz", noise=0.05, on=on, **facts) for on in ("labels", "values"))
    for name in ("values", "valid", "test", "noisy"):
        assert torch.equal(getattr(noisy, name), getattr(quiet, name)), name
    assert torch.equal(noisy.labels, both.labels)
    assert torch.equal(noisy.valid_labels, both.valid_labels)
    read, asked, cpu = [], [], {"device": torch.device("cpu"), "dtype": torch.float64}
    size = fits.Fits(**{**fits.CI, "length": 16})
    one = fits.Arm(size, "ce", noisy.values, "attention", True, seed=0, role="fit", **cpu)
    says, loss = one.model.forward, one.losses
    monkeypatch.setattr(one.model, "forward", lambda tokens: says(read.append(tokens) or tokens))
    monkeypatch.setattr(one, "losses", lambda outputs, *labels: loss(outputs, *(asked.append(labels) or labels)))
    fits.fit(one, noisy, steps=1, batch=3, rates=torch.full((2,), 1e-3, dtype=torch.float64))
    one.valid(noisy)
    picked = torch.randint(4, (2, 3), generator=stream(0, "batches"))
    seen = (torch.arange(2).unsqueeze(-1), picked)
    paths = [noisy.values[seen], noisy.labels[seen]], [noisy.valid.expand(2, -1, -1), noisy.valid_labels]
    for tokens, (labels, values), (known, told) in zip(read, asked, paths, strict=True):
        assert torch.equal(tokens, one.bins.encode(known)[..., :-1])
        assert torch.equal(labels, one.bins.encode(told.expand(known.shape))[..., 1:])
        assert torch.equal(values, told[..., 1:])


def invented(peak: dict[int, float], scalar: float = 0.05, noisy: float = 0.05) -> pd.DataFrame:
    """Rows as ``Sweep`` has them, with a curve D(K) of our own and the same under noise but flat."""
    loud = [(0.03, 2000, on) for on in ("values", "labels")]
    quiet = [(0.0, num, "values") for num in (2000, 125)]
    cases = [("ce", K, *case, D) for K, D in peak.items() for case in quiet]
    cases += [("ce", K, *case, noisy) for K in peak for case in loud]
    cases += [("scalar", 64, *case, scalar) for case in (*quiet, *loud)]
    made = [
        {"arm": arm, "K": K, "noise": noise, "num": num, "on": on, "stage": stage, "rate": 0.01, "step": 9}
        | {"replicate": r, "distortion": D * (1 + 0.01 * np.sin(7 * r + K)), "rmse": 0.02}
        for arm, K, noise, num, on, D in cases
        for stage, replicates in (("search", 1), ("fit", 8))
        for r in range(replicates)
    ]
    return pd.DataFrame(made)


def test_a_maximum_is_seen_and_a_minimum_is_not():
    risen = invented({8: 0.08, 32: 0.2, 512: 0.1})
    assert sweep.highest_inner(risen, sweep.numbers(risen, True)) == 32
    for many in (True, False):
        assert sweep.inner_over_ends(many)(risen).low > 1.5
        assert sweep.inner_over_ends(many)(invented({8: 0.2, 32: 0.1, 512: 0.2})).high < 1


def test_codebooks_that_have_not_learned_decide_nothing():
    risen = invented({8: 0.08, 32: 0.2, 512: 0.1})
    poor = (risen["K"] == 512) & (risen["num"] == 125)
    missed = risen.assign(rmse=risen["rmse"].mask(poor, 0.041))
    with pytest.raises(ValueError, match="512 codes have not learned"):
        sweep.inner_over_ends(False)(missed)
    assert sweep.inner_over_ends(True)(missed).low > 1.5
    assert sweep.inner_over_ends(False)(risen.assign(rmse=risen["rmse"].mask(poor, 0.039))).low > 1.5


def test_a_coarse_codebook_need_not_say_more_than_its_bins_let_it():
    """It may miss the next value by more than twice what finer ones miss it by, not by twice what coarser ones do."""
    risen = invented({8: 0.08, 32: 0.2, 512: 0.1})
    wide = risen.assign(rmse=risen["rmse"].mask(risen["K"] == 8, 0.1))
    assert sweep.inner_over_ends(True)(wide).low > 1.5
    with pytest.raises(ValueError, match=r"32 codes have not learned: .* those of 8 codes"):
        sweep.inner_over_ends(True)(risen.assign(rmse=risen["rmse"].mask(risen["K"] == 32, 0.041)))


def test_codebooks_that_still_learn_decide_nothing():
    """The last tenth of the steps may take two hundredths off what the loss fell from the first look on."""
    ends = invented({8: 0.08, 32: 0.2, 512: 0.1})
    for before, flat in ((1.019, True), (1.021, False)):
        rows = pd.concat([ends.assign(step=step, valid=loss) for step, loss in ((1, 2.0), (8, before), (9, 1.0))])
        if flat:
            assert sweep.inner_over_ends(True)(rows).low > 1.5
        else:
            with pytest.raises(ValueError, match="not come to a plateau"):
                sweep.inner_over_ends(True)(rows)


def test_a_longer_run_has_draws_of_its_own_and_is_looked_at_before_its_end(rows):
    assert len(rows[Longer].query("stage == 'fit'")["step"].unique()) == 3
    case = ["noise", "num", "arm", "K", "stage", "rate", "replicate"]
    one, other = (rows[each].groupby(case)["distortion"].last() for each in (Sweep, Longer))
    both = pd.concat([one, other], axis=1, join="inner", keys=["one", "other"])
    assert len(both)
    assert (both["one"] != both["other"]).all()
    hard = rows[Longer].query("arm == 'ce'")
    assert set(hard.query("noise == 0")["K"]) == set(rows[Sweep]["K"])
    assert set(hard.query("noise > 0")["K"]) == {6}  # the inner one
    assert set(zip(rows[Longer]["noise"] > 0, rows[Longer]["on"], strict=True)) == {
        (False, "values"),
        (True, "values"),
        (True, "labels"),
    }


def test_one_codebook_under_all_names_has_no_maximum():
    risen = invented({8: 0.08, 32: 0.2, 64: 0.15, 512: 0.1})
    for many in (True, False):
        found, null = sweep.inner_over_ends(many)(risen), sweep.one_codebook(many)(risen)
        assert null.low < 1
        assert null.high < found.low


def test_a_network_without_a_number_chooses_nothing():
    risen = invented({8: 0.08, 32: 0.2, 512: 0.1})
    searched = (risen["stage"] == "search") & (risen["arm"] == "ce") & (risen["K"] == 32)
    with pytest.raises(ValueError, match="no number"):
        sweep.inner_over_ends(True)(risen.assign(distortion=risen["distortion"].mask(searched)))


def test_the_tax_under_noise_can_stay_and_can_go():
    curve = {8: 0.08, 32: 0.2, 512: 0.1}
    for on in ("values", "labels"):
        halved = sweep.tax_halved(f"noise > 0 and on == '{on}'")
        assert halved(invented(curve)).low > 0
        assert halved(invented(curve, noisy=0.15)).high < 0
        other = invented(curve).assign(distortion=lambda t, on=on: t["distortion"].mask(t["on"] == on, 9.0))
        assert halved(other.query(f"noise == 0 or on == '{on}'")).n == 8
    assert sweep.tax_halved("noise == 0 and num == 2000")(invented(curve)).high < 0  # no noise takes nothing away
    late = invented(curve)
    late = pd.concat([late.assign(step=step, valid=loss) for step, loss in ((1, 2.0), (8, 1.0), (9, 1.0))])
    slow = late["valid"].mask((late["arm"] == "scalar") & (late["noise"] > 0) & (late["step"] == 8), 1.1)
    with pytest.raises(ValueError, match="the value have not come to a plateau"):
        sweep.tax_halved("noise > 0 and on == 'labels'")(late.assign(valid=slow))


def test_the_largest_tax_is_at_the_codebook_that_other_networks_found_highest():
    """0.2 over 0.05 at 32 codes; at 64, where the judged networks alone are higher, it would be more."""
    risen = invented({8: 0.08, 32: 0.2, 64: 0.15, 512: 0.1})
    assert sweep.largest_tax(risen).value == pytest.approx(4, rel=0.02)
    judged = (risen["stage"] == "fit") & (risen["arm"] == "ce") & (risen["K"] == 64)
    lucky = risen.assign(distortion=risen["distortion"].mask(judged, 0.4))
    assert sweep.largest_tax(lucky).value == pytest.approx(4, rel=0.02)
    assert sweep.largest_tax(risen.query("noise == 0")).n == 8
    with pytest.raises(ValueError, match="32 codes have not learned"):
        sweep.largest_tax(risen.assign(rmse=risen["rmse"].mask(risen["K"] == 32, 0.041)))


def test_too_many_codes_are_refused():
    with pytest.raises(ValueError, match="codes"):
        fits.Bins.means(torch.rand(1, 5, dtype=torch.float64), 9)


def test_the_figure_tells_what_it_shows(rows, tells):
    tells(
        sweep.sweep(rows[Sweep], rows[Longer]),
        "against the number of codes",
        "noise 10 %",
        "6 paths",
        "times the steps: 4 ",
    )


def test_the_figure_is_in_units_of_the_value_and_of_the_last_step():
    """Hard labels distort 2, 4 and 3 times as much as the value, after more steps 5 at most; before their end 9."""
    cells = itertools.product((0.0, 0.1), (2000, 125), (8, 64, 512), range(2))
    rows = pd.DataFrame(cells, columns=["noise", "num", "K", "replicate"])
    rows = pd.concat([rows.assign(arm="ce"), rows[rows["K"] == 64].assign(arm="scalar")])
    rows["distortion"] = rows["K"].map({8: 0.2, 64: 0.4, 512: 0.3}).where(rows["arm"] == "ce", 0.1)
    rows = rows.assign(stage="fit", step=500, recorded=False, tier="ci", reconstruction=1 / rows["K"], rmse=0.1)
    later = rows[(rows["noise"] == 0) & (rows["num"] == 2000)]
    later = pd.concat([later.assign(step=200, distortion=later["distortion"] * 9), later.assign(step=2000)])
    figure = sweep.sweep(rows, later.assign(distortion=later["distortion"].mask(later["distortion"].eq(0.4), 0.5)))
    words = [text.get_text() for ax in figure.axes for text in ax.texts]
    assert "Without noise, hard labels distort up to 5.0 times as much" in words
    assert "no noise, 4 times the steps" in words
    assert "Codes miss 64 times less, networks least with 8" in words
    figure.canvas.draw()
    heights = sorted(tuple(text.get_window_extent().intervaly) for text in figure.axes[0].texts if text.xy[0] == 512)
    assert len(heights) == 5
    assert all(below[1] < above[0] for below, above in itertools.pairwise(heights))
    plt.close(figure)
