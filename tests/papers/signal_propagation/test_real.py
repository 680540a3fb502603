"""Real pictures: the reader, rows and measures of SP-16.b."""

import numpy as np
import pandas as pd
import torch
from here import needs

from derived.lab.rng import stream
from derived.papers.signal_propagation.data import real
from derived.papers.signal_propagation.model.asymptotics import vit_variances
from derived.papers.signal_propagation.model.vit import embed
from derived.papers.signal_propagation.real import CLAIMS, Clothes

CLAIM = {claim.id: claim for claim in CLAIMS}


def run(**condition) -> pd.DataFrame:
    table = Clothes.at("tiny").run(condition, seed=0, device=torch.device("cpu"), dtype=Clothes.dtype)
    return table.assign(**condition).reset_index(drop=True)


@needs("fashion-mnist")
def test_pictures_of_clothes_are_different_ones_and_networks_see_their_own(by_hand):
    pictures = real.clothes(6, generator=stream(0, "clothes"))
    assert pictures.shape == (6, 3, 28, 28)
    assert len({picture.sum().item() for picture in pictures}) == 6
    table, tiny = run(norm="erf", alpha=0.5), Clothes.at("tiny")
    assert table.groupby(["replicate", "picture"])["q"].first().nunique() == tiny.inits * tiny.pictures
    one = table.query("replicate == 1 and picture == 0 and start == 4")
    q, p = one[["q", "p"]].iloc[0]
    a, s = vit_variances()
    exact = by_hand("erf", 0.5, q, p, a=a, s=s, n=49, depth=tiny.depth - 4)["J"]
    np.testing.assert_allclose(one["J_theory"], exact, rtol=1e-10)
    alone = by_hand("erf", 0.5, q, 0.0, a=a, s=s, n=49, depth=tiny.depth - 4)["J"]
    np.testing.assert_allclose(one["J_null"], alone, rtol=1e-10)
    draws = stream(0, "clothes pictures", 1)
    x = embed(real.clothes(2, generator=draws), width=24, patch=4, generator=draws)
    squares = [sum(float(each) ** 2 for each in token) for token in x[0, 0]]
    spread = sum(squares) * sum(1 / each for each in squares) / 49**2
    at_entry = table.query("replicate == 1 and picture == 0 and start == 0")
    np.testing.assert_allclose(at_entry["norms"], spread, rtol=1e-5)


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
