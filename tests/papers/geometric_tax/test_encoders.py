"""Three causal encoders and one that peeks: the mixers, causality, and what their claims measure."""

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.nets import Draws
from derived.lab.rng import stream
from derived.papers.geometric_tax import CausalConvolution, CausalTransformer, Size, StateSpace, encoders
from derived.papers.geometric_tax.encoders import Causality, Encoders
from derived.papers.geometric_tax.model.encoders import causal_filter, modes, short_filter

EXPERIMENTS = (Encoders, Causality)
KINDS = (CausalTransformer, StateSpace, CausalConvolution)


def encoder(kind, R=2, L=7, **facts):
    size = Size(codes=5, outputs=3, length=L, width=4, depth=2, heads=2)
    return kind(size, Draws(num_networks=R, dtype=torch.float64), **facts)


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


def test_a_token_of_no_network_is_named():
    with pytest.raises(ValueError, match=r"tokens\[0, 1, 0\] = 99; give a number from 0 to"):
        encoder(KINDS[0])(torch.tensor([[[0], [99]], [[0], [0]]]))


def test_heads_that_do_not_divide_the_width_are_named():
    with pytest.raises(ValueError, match="heads = 3 do not divide width = 4"):
        Size(codes=5, outputs=1, length=4, width=4, heads=3)


def test_only_the_leaking_encoder_feels_what_is_to_come(rows):
    table = rows[Causality]
    leaks = table["encoder"] == "leaking"
    assert (table[~leaks]["ahead"] <= table[~leaks]["bound"]).all()
    assert (table[leaks]["ahead"] > 1e-3).all()
    assert (table["at"] > 1e-3).all()


def test_equal_encoders_do_not_differ_by_the_scatter_of_their_networks(rows):
    """Max over min of three single networks would be above 1 here; the farthest pair of means may be 1."""
    table = rows[Encoders]
    one = table[(table["stage"] == "fit") & table["replicate"].eq(0)]
    one = one.assign(valid=1.0 + one["step"].eq(one["step"].min()))
    table = pd.concat([one.assign(replicate=r) for r in range(8)], ignore_index=True)
    scatter = np.exp(0.2 * np.random.default_rng(0).standard_normal(len(table)))
    equal = table.assign(distortion=scatter)
    for measure in (encoders.encoders_differ, encoders.labels_differ_more):
        found = measure(equal)
        assert found.low <= 1 <= found.high
    factor = np.where(table["arm"] == "ce", 6.0, 4.0)
    apart = equal.assign(distortion=scatter * np.where(table["encoder"] == "state", factor, 1.0))
    assert encoders.encoders_differ(apart).low > 1.3
    falling = apart["encoder"].eq("state") & apart["step"].eq(apart["step"].max())
    with pytest.raises(ValueError, match="'state' and arm == 'scalar' have not come to a plateau"):
        encoders.encoders_differ(apart.assign(valid=apart["valid"].mask(falling, 0.9)))
    assert (
        abs(
            encoders.labels_differ_more(
                table.assign(distortion=np.where(table["encoder"] == "state", factor, 1.0))
            ).value
            - 1.5
        )
        < 1e-9
    )
