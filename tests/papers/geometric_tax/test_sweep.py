"""The codebook from coarse to fine: what its rows, its measures and its figure must say."""

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.rng import stream
from derived.papers.geometric_tax import fits, sweep
from derived.papers.geometric_tax.sweep import Longer

EXPERIMENTS = (Longer,)


def test_finer_codebooks_reconstruct_better(rows):
    table = rows[Longer]
    missed = table[(table["arm"] == "ce") & (table["stage"] == "fit") & (table["noise"] == 0)]
    missed = missed[missed["step"] == missed["step"].max()]
    for _, part in missed.groupby("replicate"):
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


def test_noise_on_labels_lies_on_what_is_asked_for_and_nowhere_else():
    facts = {"networks": 2, "num": 4, "judged": 40, "length": 16, "seed": 0, "role": "fit"}
    quiet = fits.data("lorenz", noise=0.0, **facts)
    noisy, both = (fits.data("lorenz", noise=0.05, on=on, **facts) for on in ("labels", "values"))
    for name in ("values", "valid", "test", "noisy"):
        assert torch.equal(getattr(noisy, name), getattr(quiet, name)), name
    for name in ("labels", "valid_labels"):
        assert torch.equal(getattr(noisy, name), getattr(both, name)), name


def invented(peak: dict[int, float], scalar: float = 0.05, noisy: float = 0.05) -> pd.DataFrame:
    """Rows as ``Longer`` has them, with a chosen curve D(K), and the same under noise but flat."""
    loud = [(0.03, on) for on in ("values", "labels")]
    cases = [("ce", K, 0.0, "values", D) for K, D in peak.items()]
    cases += [("ce", K, *case, noisy) for K in peak for case in loud]
    cases += [("scalar", 64, *case, scalar) for case in ((0.0, "values"), *loud)]
    made = [
        {"arm": arm, "K": K, "noise": noise, "num": 2000, "on": on, "stage": stage, "rate": 0.01, "step": 9}
        | {"replicate": r, "distortion": D * (1 + 0.01 * np.sin(7 * r + K)), "rmse": 0.02}
        for arm, K, noise, on, D in cases
        for stage, replicates in (("search", 1), ("fit", 8))
        for r in range(replicates)
    ]
    return pd.DataFrame(made)


def test_a_maximum_is_seen_and_a_minimum_is_not():
    risen = invented({8: 0.08, 32: 0.2, 512: 0.1})
    assert sweep.highest_inner(risen, sweep.QUIET) == 32
    assert sweep.inner_over_ends(risen).low > 1.5
    assert sweep.inner_over_ends(invented({8: 0.2, 32: 0.1, 512: 0.2})).high < 1


def test_codebooks_that_have_not_learned_decide_nothing():
    """A coarse codebook need not say more than its bins let it; a finer one must."""
    risen = invented({8: 0.08, 32: 0.2, 512: 0.1})
    for K, missed in ((512, 0.041), (32, 0.041)):
        with pytest.raises(ValueError, match=f"{K} codes have not learned"):
            sweep.inner_over_ends(risen.assign(rmse=risen["rmse"].mask(risen["K"] == K, missed)))
    for K, missed in ((512, 0.039), (8, 0.1)):
        assert sweep.inner_over_ends(risen.assign(rmse=risen["rmse"].mask(risen["K"] == K, missed))).low > 1.5


def test_codebooks_that_still_learn_decide_nothing():
    """The last tenth of the steps may take two hundredths off what the loss fell from the first look on."""
    ends = invented({8: 0.08, 32: 0.2, 512: 0.1})
    for before, flat in ((1.019, True), (1.021, False)):
        rows = pd.concat([ends.assign(step=step, valid=loss) for step, loss in ((1, 2.0), (8, before), (9, 1.0))])
        if flat:
            assert sweep.inner_over_ends(rows).low > 1.5
        else:
            with pytest.raises(ValueError, match="not come to a plateau"):
                sweep.inner_over_ends(rows)


def test_a_network_without_a_number_chooses_nothing():
    risen = invented({8: 0.08, 32: 0.2, 512: 0.1})
    searched = (risen["stage"] == "search") & (risen["arm"] == "ce") & (risen["K"] == 32)
    with pytest.raises(ValueError, match="no number"):
        sweep.inner_over_ends(risen.assign(distortion=risen["distortion"].mask(searched)))


def test_the_tax_under_noise_can_stay_and_can_go():
    curve = {8: 0.08, 32: 0.2, 512: 0.1}
    for on in ("values", "labels"):
        halved = sweep.tax_halved(f"noise > 0 and on == '{on}'")
        assert halved(invented(curve)).low > 0
        assert halved(invented(curve, noisy=0.15)).high < 0
        other = invented(curve).assign(distortion=lambda t, on=on: t["distortion"].mask(t["on"] == on, 9.0))
        assert halved(other.query(f"noise == 0 or on == '{on}'")).n == 8
    assert sweep.tax_halved(sweep.QUIET)(invented(curve)).high < 0  # no noise takes nothing away
    late = invented(curve)
    late = pd.concat([late.assign(step=step, valid=loss) for step, loss in ((1, 2.0), (8, 1.0), (9, 1.0))])
    slow = late["valid"].mask((late["arm"] == "scalar") & (late["noise"] > 0) & (late["step"] == 8), 1.1)
    with pytest.raises(ValueError, match=r"scalar.* not come to a plateau"):
        sweep.tax_halved("noise > 0 and on == 'labels'")(late.assign(valid=slow))
