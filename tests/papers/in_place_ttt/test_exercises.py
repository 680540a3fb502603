"""The exercises of chapter 7: what is right by another route, right answers in odd forms, wrong ones refused."""

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
import sympy
import torch

from derived.lab.draws import normals
from derived.lab.exercises import judged
from derived.papers.in_place_ttt import exercises, read_mask
from derived.papers.in_place_ttt.model.baselines import gated_linear_attention

HAND, FADING = exercises.EXERCISES["ipt-ex-hand"], exercises.EXERCISES["ipt-ex-decay"]
MEAN, TWO = exercises.EXERCISES["ipt-ex-mean"], exercises.EXERCISES["ipt-ex-two"]
TAPS, PACKED = exercises.EXERCISES["ipt-ex-taps"], exercises.EXERCISES["ipt-ex-packed"]
drawn = normals(0)


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
    rhos = np.linspace(0.3, 0.995, 13_901)
    noise = np.sqrt(sum(rhos ** (2 * k) for k in range(4000)))
    assert FADING[1].right(m=m) == pytest.approx(rhos[(rhos**m / noise).argmax()], abs=1e-4)


def test_frequency_drowns_the_answer_where_two_simulated_means_cross():
    """Keys mu + noise and mu - noise in equal numbers: the mean over both is exact, with whole numbers of tokens."""
    c_align, mu2, f_v, f_w, tokens = 1.5, 0.25, 0.1, 0.5, 10
    mu, noise = torch.tensor([0.5, 0.0]).double(), drawn(tokens, 2, name="noise")
    one = torch.eye(3, dtype=torch.float64)  # v*, w and any other token
    values = one[[0] * 1 + [1] * 5 + [2] * 4]
    per_text = sum(values.mT @ (mu + sign * noise) @ (mu + other * noise[0]) for sign in (1, -1) for other in (1, -1))
    each = per_text / 4 / tokens  # what one more token adds to the three logits
    assert MEAN.right(c_align=c_align, mu2=mu2, f_v=f_v, f_w=f_w) == pytest.approx(
        (c_align / (each[1] - each[0])).item()
    )


def test_two_answers_by_simulation():
    """20,000 draws of keys, four standard errors. Values have entries of size d^(-1/2) and signs such that the squared
    products with e_v - e_w, 0 or 4/d in turn, have the mean 2/d of random directions exactly."""
    d, h, p, draws = 8, 12, 0.1, 20_000
    N = 2 * round(TWO.right(d=d, h=h, p=p) / 2)
    signs = torch.tensor([[1.0, 1.0], [1.0, -1.0]]).repeat(N // 2, 1).double()  # of the entries along v* and w
    keys, query = drawn(draws, N, h, name="keys") / h**0.5, torch.nn.functional.normalize(drawn(h, name="q"), dim=0)
    moved = torch.einsum("tw,rth,h->rw", signs / d**0.5, keys, query) + torch.tensor([1.0, 0.0])
    wrong = (moved[:, 1] > moved[:, 0]).double().mean().item()
    chance = NormalDist().cdf(NormalDist().inv_cdf(p) * (TWO.right(d=d, h=h, p=p) / N) ** 0.5)  # at a whole N
    assert abs(wrong - chance) < 4 * (chance * (1 - chance) / draws) ** 0.5


# Right answers in odd forms ------------------------------------------------------------------------------------------


def test_right_numbers_of_any_kind_are_right():
    right("ipt-ex-hand", HAND[0], lambda n, C: n // C * C - 1, lambda C, n: np.floor(n / C) * C - 1)
    right("ipt-ex-hand", HAND[0], lambda token, size: torch.tensor(token) // size * size - 1)
    right("ipt-ex-hand", HAND[1], lambda L, C: math.ceil(Fraction(L, C)) - 1, lambda L, C: np.int64((L - 1) // C))
    rho, i, j, m = sympy.symbols("rho i j m", positive=True)
    right("ipt-ex-decay", FADING[0], rho ** (i - 1 - j), lambda rho, i, j: rho**i / rho ** (j + 1))
    right("ipt-ex-decay", FADING[1], sympy.sqrt(m / (m + 1)), lambda m: round(math.sqrt(m / (m + 1)), 3))
    right("ipt-ex-decay", FADING[1], lambda m: torch.sqrt(m / (1.0 + m)), lambda age: (1 + 1 / age) ** -0.5)
    right("ipt-ex-mean", MEAN, lambda c_align, mu2, f_v, f_w: Fraction(c_align) / Fraction(mu2) / Fraction(f_w - f_v))
    right("ipt-ex-mean", MEAN, lambda f_w, f_v, mu2, c_align: np.float64(c_align) / (mu2 * f_w - mu2 * f_v))
    right("ipt-ex-two", TWO, lambda d, h, p: 0.5 * d * h / NormalDist().inv_cdf(1 - p) ** 2)
    right("ipt-ex-two", TWO, lambda d, h, p: float(f"{0.5 * d * h / NormalDist().inv_cdf(p) ** 2:.3g}"))


def test_no_answer_and_answers_of_a_wrong_kind_do_not_stop_the_page():
    for part, label in (
        (HAND[0], "ipt-ex-hand"),
        (MEAN, "ipt-ex-mean"),
        (TAPS, "ipt-ex-taps"),
        (PACKED, "ipt-ex-packed"),
    ):
        assert judged(label, part, ...) == "no answer yet"
        refused(label, part, 11, [], None, "rho", lambda: 1, lambda *given: 1 / 0)


def as_numpy(kernel):
    kernel = np.array(kernel)
    kernel[:, 4] = 0
    return kernel


def test_the_safe_kernel_in_any_form():
    right("ipt-ex-taps", TAPS, as_numpy, lambda w: torch.cat([w[:, :4], 0 * w[:, 4:]], dim=1))
    right("ipt-ex-taps", TAPS, lambda w: [[*row[:4], 0.0] for row in w.tolist()])
    refused("ipt-ex-taps", TAPS, lambda w: w[:, :4], lambda w: 0 * w, lambda w: w.mT)


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


def by_attention(keys, values, start, eta, chunk, starts):
    at, starts = torch.arange(len(keys)), torch.as_tensor(starts)
    document = (at.unsqueeze(1) >= starts).sum(dim=1) - 1
    place = (at - starts[document]) // chunk
    reads = (place < place.unsqueeze(1)) & (document == document.unsqueeze(1))
    return keys @ start.T + eta * (keys @ keys.T * reads) @ values


def test_packed_documents_in_any_form():
    right("ipt-ex-packed", PACKED, by_attention, by_loop)
    right("ipt-ex-packed", PACKED, lambda K, V, W, lr, C, first: by_loop(K, V, W, lr, C, first).tolist())


def test_a_wrong_packing_is_told_where_it_fails():
    said = judged("ipt-ex-packed", PACKED, PACKED.mistakes["no reset between documents"])
    assert "the first chunk of the document at" in said
    said = judged("ipt-ex-packed", PACKED, PACKED.mistakes["update first, then apply"])
    assert "with a single document" in said


def test_a_check_does_not_print_the_answer(capsys):
    exercises.check("ipt-ex-decay", lambda rho, i, j: 0.0, lambda m: 0.5)
    said = capsys.readouterr().out
    assert said.count("not right: at ") == 2
    assert "yours is 0" in said
    assert f"{FADING[1].right(m=1):.3f}" not in said
