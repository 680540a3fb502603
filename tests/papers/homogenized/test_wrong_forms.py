"""Each experiment is handed a wrong form of what it measures, and its claim must fail on the rows."""

import math

import pytest

from derived.lab.experiment import run_experiment
from derived.papers.homogenized import collapse, errata, noise, odds, slow
from derived.papers.homogenized.claims import CLAIMS

CLAIM = {claim.id: claim for claim in CLAIMS}

PRIVATE = ("simulate_gram", lambda right: lambda *given, **more: right(*given, **more | {"common": False}))
COMMON = ("simulate_gram", lambda right: lambda *given, **more: right(*given, **more | {"common": True}))
AVERAGED = ("post_norm_block", lambda right: lambda x, scale, H, **more: right(x, scale / math.sqrt(H), H, **more))
ORTHOGONAL = ("cloud_layer", lambda right: lambda R, h, d, factors, **more: right(R, h, d, 0, **more))
FREE = ("cloud_layer", lambda right: lambda R, h, d, factors, **more: right(R, h * d / 64, d, factors, **more))
NO_LAYER = ("layer_counts", lambda right: lambda *given: [0])
SLOW = ("time_to_overlap", lambda right: lambda n, s, **more: 1.0)


BLOCKS = odds.Odds(
    wide=(), paths=2, narrow=(8, 1, 1.0), widths=(512,), n=16, scales=(1.0,), heads=(8,), reused=1.0, replicates=12
)
HOT = odds.Odds(wide=(), paths=60, widths=(8,), n=2, scales=(1.0,), heads=(1,), replicates=2)
PATHS = slow.SlowPaths(d=16, h=0.1, replicates=400, factors=(2,))
SMALL = {
    "HT-5.a": (odds, odds.TwoTokens(heads=(1,), taus=(1.8,), replicates=12, batch=100), PRIVATE),
    "HT-6.a": (odds, odds.WeakError(cases=((0.8, 1), (0.4, 1)), replicates=12, batch=1000), PRIVATE),
    "HT-7": (odds, HOT, PRIVATE),
    "HT-25.b": (odds, BLOCKS, AVERAGED),
    "HT-25.c": (odds, odds.Deep(widths=(512,), n=16, scales=(1.0,), heads=(8,), replicates=12), AVERAGED),
    "HT-8.a": (collapse, collapse.Cold(widths=(4096,), h=0.04, points=3, replicates=20), PRIVATE),
    "HT-9.c": (collapse, collapse.Brakes(tokens=(8, 32), logit_stds=(0.0, 4.0)), SLOW),
    "HT-9.e": (collapse, collapse.Brakes(tokens=(8, 32), logit_stds=(0.0, 4.0)), SLOW),
    "HT-9.g": (slow, slow.Wide(widths=(64, 256)), FREE),
    "HT-13.e": (slow, slow.SlowSteps(d=16, steps=(0.2, 0.1, 0.05), replicates=150), ORTHOGONAL),
    "HT-17.b": (noise, noise.Prompts(tokens=(32, 128), h=0.1, parts=2, replicates=20), NO_LAYER),
    "HT-17.d": (noise, noise.PrivateNoise(gammas=(0.5,), points=2, replicates=40), COMMON),
}


@pytest.mark.parametrize("name", SMALL)
def test_a_claim_fails_on_rows_of_a_wrong_form(name, monkeypatch):
    claim, (topic, small, (part, wrong)) = CLAIM[name], SMALL[name]
    assert claim.judge(claim.measure(run_experiment(small, seed=0, device="cpu")))[0] != "fails"
    monkeypatch.setattr(topic, part, wrong(getattr(topic, part)))
    assert claim.judge(claim.measure(run_experiment(small, seed=0, device="cpu")))[0] == "fails"


def test_paths_of_one_form_are_refused_as_those_of_the_other(monkeypatch):
    """`ht-slow`: two Gaussian factors return too often for the transcribed equation, an orthogonal matrix does not."""
    claim = CLAIM["HT-13.a"]
    assert claim.judge(claim.measure(run_experiment(PATHS, seed=0, device="cpu")))[0] == "fails"
    monkeypatch.setattr(slow, "cloud_layer", ORTHOGONAL[1](slow.cloud_layer))
    assert claim.judge(claim.measure(run_experiment(PATHS, seed=0, device="cpu")))[0] != "fails"


RIGHT = {  # what each sentence of the transcription would need to be true
    "HT-4.a": ("simplex_drift", lambda right: lambda gamma, f, g, d=math.inf: right(gamma, f, g)),
    "HT-12.a": ("mean_cosine", lambda right: lambda r, d, factors: r),
    "HT-14.a": ("observed_order", lambda right: lambda steps, errors: 2.0),
    "HT-15.a": ("sphere_euler", lambda right: lambda *given, **more: right(*given, **more | {"projected": True})),
    "HT-20.a": ("fields", lambda right: lambda: (0.0, 0.01)),
    "HT-21.a": ("slow_bracket", lambda right: lambda u: 2 * errata.slow_drift(u, 0.0) / errata.np.tan(u + 1e-300)),
}


@pytest.fixture(scope="module")
def refuted():
    return run_experiment(errata.Errata(), seed=0, device="cpu")


@pytest.mark.parametrize("name", RIGHT)
def test_a_sentence_of_the_transcription_is_refuted_only_where_it_is_wrong(name, refuted, monkeypatch):
    claim, (part, right) = CLAIM[name], RIGHT[name]
    assert claim.judge(claim.measure(refuted))[0] == "fails"
    monkeypatch.setattr(errata, part, right(getattr(errata, part)))
    assert claim.judge(claim.measure(run_experiment(errata.Errata(), seed=0, device="cpu")))[0] != "fails"


def test_every_claim_with_an_experiment_is_among_them():
    assert {claim.id for claim in CLAIMS if claim.experiment} == SMALL.keys() | RIGHT.keys() | {"HT-13.a"}
