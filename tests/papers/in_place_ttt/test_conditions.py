"""The four conditions: a whole model meets all, a broken one fails its own, and the first where the future enters."""

from functools import partial

import pytest
import torch

from derived.lab.rng import stream
from derived.papers.in_place_ttt.conditions import BREAKS, Text, reader, self_tests, share_right

IDS = torch.randint(5, (14,), generator=stream(0, "conditions"))
CONDITIONS = {"causal", "normalised", "scored before updated", "one pass"}
FAILS = {
    "": set(),
    "taps cross by two": {"causal"},
    "not normalised": {"normalised"},
    "written first": {"causal", "scored before updated"},
    "read twice": {"causal", "scored before updated", "one pass"},
}


@pytest.mark.parametrize("broken", BREAKS)
def test_each_break_fails_its_own_condition(broken):
    """`ipt-causal`, `ipt-cross`."""
    found = self_tests(reader(vocabulary=5, chunk=3, broken=broken), IDS, 5)
    assert {*found} == CONDITIONS
    assert {name for name, kept in found.items() if not kept} == FAILS[broken]


def test_a_model_of_another_shape_or_with_negative_scores_is_not_normalised():
    whole = reader(vocabulary=5, chunk=3)
    for model in (lambda text: whole(text)[:, :4], lambda text: 2 * whole(text) - 0.2):
        assert not self_tests(model, IDS, 5)["normalised"]


def test_reading_ahead_or_leaving_out_is_not_one_pass():
    for spans in (((3, 6), (0, 3), (6, 14)), ((0, 14), (3, 4)), ((0, 13),)):

        def model(text: Text, spans=spans) -> torch.Tensor:
            for span in spans:
                text.read(*span)
            return torch.full((14, 5), 0.2)

        assert self_tests(model, IDS, 5) == dict.fromkeys(CONDITIONS, True) | {"one pass": False}


def test_one_bit_of_the_future_is_not_causal():
    def whispers(text: Text) -> torch.Tensor:
        later = text.ids.flip(0).cumsum(0).flip(0).unsqueeze(-1).double()
        return reader(vocabulary=5, chunk=3)(text) * (1 + later % 7 * 2**-51)

    found = self_tests(whispers, IDS, 5)
    assert found == dict.fromkeys(CONDITIONS, True) | {"causal": False}


def test_impossible_data_catch_a_leak_and_a_repetition_an_idle_model():
    random, repeated = torch.randint(1000, (64,), generator=stream(0, "impossible")), torch.arange(16).repeat(4)
    whole, leak = (partial(reader, chunk=3, broken=broken) for broken in ("", "written first"))
    assert share_right(whole(vocabulary=1000), random) < 0.1 < 0.5 < share_right(leak(vocabulary=1000), random)
    assert share_right(whole(vocabulary=16), repeated) == 1

    def idle(text: Text) -> torch.Tensor:
        return torch.full((len(text.read(0, len(text.ids))), 16), 1 / 16)

    assert all(self_tests(idle, repeated, 16).values())
    assert share_right(idle, repeated) < 0.1


def test_the_reader_is_the_layer_without_a_lag_of_its_own():
    """Against the package's layer: embeddings as keys, next tokens as values, one tap that crosses the edge."""
    from derived.papers.in_place_ttt import depthwise_target, in_place_ttt

    one = torch.eye(5, dtype=torch.float64)[IDS]
    values = depthwise_target(one, torch.tensor([[0.0, 0.0, 1.0]]).double().expand(5, 3), chunk=3)
    scores = in_place_ttt(one, values, torch.zeros(5, 5).double(), 2.0, 3).softmax(dim=-1)
    assert torch.allclose(reader(vocabulary=5, chunk=3)(Text(IDS)), scores, atol=1e-12)
