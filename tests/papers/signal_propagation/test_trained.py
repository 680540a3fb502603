"""SP-22: arms that differ in their normaliser alone, an alpha that matches, the choice of a rate, the measure."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn.functional import layer_norm

from derived.lab.rng import stream
from derived.papers.signal_propagation import reference, trained
from derived.papers.signal_propagation.data.generated import pictures, smooth
from derived.papers.signal_propagation.model.asymptotics import vit_variances
from derived.papers.signal_propagation.model.transformer import RandomTransformer
from derived.papers.signal_propagation.model.vit import Vision
from derived.papers.signal_propagation.trained import CLAIMS, Trained

EXPERIMENTS = (Trained,)
(CLAIM,) = CLAIMS


def vision(norm: str, seed: int = 0) -> Vision:
    shape = {"width": 8, "depth": 2, "num_heads": 2, "num_networks": 2, "alpha": 0.7}
    return Vision(12, RandomTransformer(norm=norm, **shape, generator=stream(seed, "blocks")), stream(seed, "head"))


def test_arms_share_pictures_and_initial_weights(monkeypatch):
    seen = []

    class Seen(Vision):
        def embed(self, patches):
            if patches is not None and not hasattr(self, "start"):
                self.start = {name: weight.detach().clone() for name, weight in self.named_parameters()}
                self.batches = []
                seen.append(self)
            self.batches.append(patches)
            return super().embed(patches)

    monkeypatch.setattr(trained, "Vision", Seen)
    tiny = Trained.at("tiny")
    for condition in tiny.conditions():
        tiny.run(condition, seed=0, device=torch.device("cpu"), dtype=torch.float32)
    first, *others = (seen[arm * 3 : arm * 3 + 3] for arm in range(4))  # two rates, then the judged networks
    for arm in others:
        for one, other in zip(first, arm, strict=True):
            assert len(one.batches) == tiny.steps + 2
            assert all(torch.equal(*pair) for pair in zip(one.batches, other.batches, strict=True))
            assert all(torch.equal(weight, other.start[name]) for name, weight in one.start.items())
    assert not torch.equal(first[0].batches[0][0], first[2].batches[0][0])  # the judged see other pictures
    assert not torch.equal(first[2].batches[0][0], first[2].batches[0][1])  # and each its own


def test_the_matched_alpha_has_the_growth_of_layer_norm(rows):
    table = rows[Trained].set_index(["arm", "stage", "rate", "replicate"]).sort_index()
    for key, plain in table.loc["LayerNorm", "growth"].groupby(["stage", "replicate"]):
        found = table.loc["matched", "growth"].xs(key, level=["stage", "replicate"])
        np.testing.assert_allclose(found, plain.iloc[0], rtol=1e-9)
    a, s = vit_variances()
    (alpha,) = trained.matched(np.array([1.1]), np.array([0.3]), 6)
    arms = (reference.layer_norm, reference.erf(float(alpha)))
    plain, derf = (reference.growth(phi, a, s, 16, 6, q=1.1, p=0.3, pooled=True) for phi in arms)
    assert derf == pytest.approx(plain, rel=1e-9)


def test_the_last_normaliser_is_common():
    """Where the branches are silent the arms are one network: LayerNorm of the mean token, then the head."""
    patches = torch.randn(2, 3, 16, 12, generator=stream(0, "patches"))
    found = []
    for norm in ("layernorm", "erf"):
        model = vision(norm)
        for block in model.blocks.weights:
            block.W_O.data.zero_()
            block.W_2.data.zero_()
        found.append(model(patches))
    tokens = torch.einsum("rntf,rdf->rntd", patches, model.embedding) + model.positions
    wanted = torch.einsum("rnd,rcd->rnc", layer_norm(tokens.mean(dim=2), (8,)), model.head)
    for logits in found:
        torch.testing.assert_close(logits, wanted)
    assert (vision("layernorm")(patches) - vision("erf")(patches)).abs().max() > 0.01


def test_every_weight_of_a_network_learns():
    model = vision("erf")
    model(torch.randn(2, 3, 16, 12, generator=stream(0, "patches"))).square().sum().backward()
    assert len([*model.parameters()]) == 3 + 2 * 6
    assert all(weight.grad.abs().max() > 0 for weight in model.parameters())


def test_the_judged_rate_is_that_of_the_least_pilot_loss_and_a_diverged_one_is_never_chosen(monkeypatch):
    losses = {1e-3: [2.0, 1.0], 2e-3: [1.0, np.nan], 4e-3: [1.2, 1.4], 8e-3: [np.inf, 0.1]}

    def found(self, stage, count, rate, seed, depth, arm):
        return pd.DataFrame({"stage": stage, "rate": rate, "loss": losses[rate]})

    monkeypatch.setattr(Trained, "_trained", found)
    table = Trained(rates=tuple(losses)).run({"depth": 3, "arm": "small"}, seed=0, device=None, dtype=None)
    assert table.query("stage == 'judged'")["rate"].unique().tolist() == [4e-3]


def made(apart: float, factor: float) -> pd.DataFrame:
    noise = np.random.default_rng(0).normal(0, 0.01, 12)
    arms = {"LayerNorm": (0.0, 1.0), "matched": (apart, factor), "large": (0.5, 1.0), "small": (0.0, 1.0)}
    cells = [(depth, arm, *of) for depth in (3, 12) for arm, of in arms.items()]
    tables = [
        pd.DataFrame({"replicate": range(12), "test_loss": 2 + more + noise * (1 + (arm == "matched"))}).assign(
            depth=depth, arm=arm, stage="judged", rate=1e-3 * times
        )
        for depth, arm, more, times in cells
    ]
    return pd.concat([*tables, tables[0].assign(stage="pilot", test_loss=9.0)], ignore_index=True)


@pytest.mark.parametrize(
    ("apart", "factor", "verdict"),
    [(0.03, 1.6, "holds"), (-0.03, 1 / 1.6, "holds"), (0.2, 1.0, "fails"), (-0.2, 1.0, "fails"), (0.03, 2.5, "fails")],
)
def test_equal_training_is_a_loss_within_a_tenth_and_a_rate_within_a_step(apart, factor, verdict):
    rows = made(apart, factor)
    assert CLAIM.judge(CLAIM.measure(rows))[0] == verdict
    assert CLAIM.judge(CLAIM.control(rows))[0] == "fails"
    if factor < 2:
        assert CLAIM.measure(rows).value == pytest.approx(apart, abs=0.01)


def test_a_picture_is_its_template_moved_under_as_much_noise():
    templates = smooth(4, 1.0, 4.0, stream(0, "templates"))
    images, labels = pictures(60, templates, stream(0, "pictures"))
    assert float(images.var()) == pytest.approx(1, abs=0.1)
    spectra = [torch.fft.fft2(each) for each in (images, templates)]
    match = torch.fft.ifft2(spectra[0][:, None] * spectra[1].conj()).real.sum(dim=2).amax(dim=(-2, -1))
    assert float((match.argmax(dim=1) == labels).float().mean()) > 0.9
    assert len(labels.unique()) == 4
