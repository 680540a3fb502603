"""Topic theorem: logits that a pair moves, and their figure."""

import numpy as np
import pandas as pd
import torch

from derived.lab.experiment import run_condition
from derived.papers.in_place_ttt import theorem
from derived.papers.in_place_ttt.theorem import Logits

EXPERIMENTS = (Logits,)


def test_logits_move_about_their_expectation(rows):
    """`ipt-logits`, `ipt-margin`: the next token moves the right answer, reconstruction the token that asks."""
    table = rows[Logits]
    noise = table["delta"] - table["expected"]
    assert noise.abs().min() > 1e-6
    assert abs(noise.mean()) < 4 * noise.std() / len(noise) ** 0.5
    mean = table.groupby(["target", "token"])["expected"].mean()
    assert mean["next", "v"] > 2 * mean["next"].drop("v").abs().max()
    assert mean["reconstruction", "k"] > 2 * mean["reconstruction"].drop("k").abs().max()


def test_the_right_answer_is_expected_to_move_by_about_one(rows):
    """Embeddings and keys are of about unit length, and so is the product of their squares."""
    moves = rows[Logits].query("target == 'next' and token == 'v'")["expected"]
    assert abs(moves.mean() - 1) < 4 * moves.sem()


def test_rows_follow_the_seed():
    small = Logits.at("tiny")
    first, again, other = (run_condition(small, small.conditions()[0], seed, "cpu") for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again)
    assert not np.allclose(first["delta"], other["delta"])


def test_no_replicate_is_another(rows):
    assert torch.tensor(rows[Logits]["delta"].to_numpy()).unique().numel() == len(rows[Logits])


def test_the_figure_says_in_words_what_it_shows(rows):
    label = theorem.shifts(rows[Logits]).get_label()
    mean = rows[Logits].query("target == 'next' and token == 'v'")["delta"].mean()
    assert f"next token, right answer: {mean:.2f}" in label
