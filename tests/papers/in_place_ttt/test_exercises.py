"""The exercises of chapter 7: what is right by another route, right answers in odd forms, wrong ones refused."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from derived.lab.exercises import judged
from derived.papers.in_place_ttt import InPlaceTTTMLP, exercises, read_mask
from derived.papers.in_place_ttt.model.baselines import gated_linear_attention

HAND, FADING = exercises.EXERCISES["ipt-ex-hand"], exercises.EXERCISES["ipt-ex-decay"]
PACKED = exercises.EXERCISES["ipt-ex-packed"]


def right(label, part, *answers):
    for answer in answers:
        assert judged(label, part, answer) == "right"


def refused(label, part, *answers):
    for answer in answers:
        assert judged(label, part, answer).startswith("not right: ")


# What is right, by another route -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "C"), [(13, 6), (12, 6), (9, 2), (60, 9)])
def test_the_last_token_read_is_the_last_one_that_moves_the_output(n, C):
    reads = read_mask(n + 1, C)[n].nonzero().flatten()
    assert HAND[0].right(n=n, C=C) == reads.max().item()


@pytest.mark.parametrize(("L", "C", "pairs"), [(20, 6, 3), (18, 6, 2), (19, 6, 3), (5, 9, 0)])
def test_pairs_across_edges_by_listing_them(L, C, pairs):
    assert pairs == sum(t // C != (t + 1) // C for t in range(L - 1)) == HAND[1].right(L=L, C=C)


def test_the_weight_of_a_write_is_what_gated_linear_attention_reads():
    """Tokens in place of chunks: a key and value of one at j, a gate rho, and a query one token later."""
    one, rho = torch.ones(1, 9, 1, dtype=torch.float64), 0.7
    at = (torch.arange(9) == 2).view(1, 9, 1).double()
    read = gated_linear_attention(one, at, at, rho * one).flatten()  # the state after token t
    for i in range(3, 9):
        assert read[i - 1].item() == pytest.approx(FADING[0].right(rho=rho, i=i, j=2))


@pytest.mark.parametrize("m", [1, 2, 7])
def test_the_clearest_fading_by_a_grid_of_running_sums(m):
    rhos = np.linspace(0.3, 0.97, 6701)
    noise = np.sqrt(sum(rhos ** (2 * k) for k in range(400)))
    assert FADING[1].right(m=m) == pytest.approx(rhos[(rhos**m / noise).argmax()], abs=1e-4)


# Right answers in odd forms ------------------------------------------------------------------------------------------


def test_right_numbers_of_any_kind_are_right():
    right("ipt-ex-hand", HAND[0], lambda n, C: n // C * C - 1, lambda C, n: np.floor(n / C) * C - 1)
    right("ipt-ex-hand", HAND[0], lambda token, size: torch.tensor(token) // size * size - 1)
    right("ipt-ex-hand", HAND[1], lambda L, C: math.ceil(Fraction(L, C)) - 1, lambda L, C: np.int64((L - 1) // C))
    right("ipt-ex-decay", FADING[0], lambda rho, i, j: rho**i / rho ** (j + 1))
    right("ipt-ex-decay", FADING[1], lambda m: round(math.sqrt(m / (m + 1)), 3))
    right("ipt-ex-decay", FADING[1], lambda age: (1 + 1 / age) ** -0.5)


def by_loop(keys, values, start, eta, chunk, starts):
    """Document by document and chunk by chunk, in NumPy."""
    keys, values, start = (np.asarray(each, dtype=float) for each in (keys, values, start))
    outputs, ends = np.zeros(values.shape), [*map(int, starts[1:]), len(keys)]
    for begin, end in zip(map(int, starts), ends, strict=True):
        state = start.copy()
        for at in range(begin, end, int(chunk)):
            part = slice(at, min(at + int(chunk), end))
            outputs[part] = keys[part] @ state.T
            state += eta * values[part].T @ keys[part]
    return outputs


def test_packed_documents_in_any_form():
    right("ipt-ex-packed", PACKED, by_loop, lambda K, V, W, lr, C, first: by_loop(K, V, W, lr, C, first).tolist())


def test_a_wrong_packing_is_told_where_it_fails():
    for mistake in PACKED.mistakes.values():
        assert "in the document at" in judged("ipt-ex-packed", PACKED, mistake)


class Keeps(torch.nn.Module):
    """A block whose memory answers what it once read: a table of what followed, kept in what the memory adds."""

    def __init__(self, taps=(2,), uses=True):
        super().__init__()
        mlp = torch.nn.Module()
        mlp.gate_proj, mlp.up_proj, mlp.down_proj = (torch.nn.Linear(40, 40) for _ in range(3))
        mlp.act_fn = torch.nn.SiLU()
        self.mlp, self.uses = InPlaceTTTMLP.from_mlp(mlp), uses
        with torch.no_grad():
            self.mlp.ttt_kernel[:, list(taps)] = 1

    def forward(self, ids):
        scores = torch.zeros(*ids.shape, 40)
        if self.uses and self.mlp.memory_off:
            return scores
        for row, text in enumerate(ids.tolist()):
            for at in range(48, 64):
                if text[at] < 16:
                    scores[row, at, text[text.index(text[at]) + 1]] = 1
        return scores


def test_a_block_is_judged_by_what_it_writes_and_by_the_switch():
    """A perfect reader whose answers go with the memory is right; with two taps, or answers that stay, it is not."""
    gate = exercises.EXERCISES["ipt-ex-gate"]
    right("ipt-ex-gate", gate, Keeps())
    assert "more than the token itself" in judged("ipt-ex-gate", gate, Keeps(taps=(2, 3)))
    assert "1.00 of its answers are right, 1.00 with the memory off" in judged("ipt-ex-gate", gate, Keeps(uses=False))
