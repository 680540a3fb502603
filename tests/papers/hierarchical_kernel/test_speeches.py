"""Speeches: how they become letters, who reads which, linear rules, and the rows."""

import dataclasses

import numpy as np
import pytest
import torch
from here import needs
from sklearn.linear_model import Ridge

from derived.lab.rng import stream
from derived.papers.hierarchical_kernel.data import speeches
from derived.papers.hierarchical_kernel.trained import Speeches


def test_windows_lie_inside_a_text_of_their_group_and_can_begin_anywhere():
    letters = torch.arange(27, dtype=torch.uint8)
    texts = [[letters[:5], letters[5:9]], [letters[9:14], letters[14:27]]]
    drawn, labels = speeches.windows(texts, 2_000, 4, stream(1, "windows"))
    assert (drawn.diff(dim=1) == 1).all()  # consecutive letters of one text
    ends = [{range(0, 2), range(5, 6)}, {range(9, 11), range(14, 24)}]
    for label, spans in enumerate(ends):
        begins = set(drawn[labels == label, 0].tolist())
        assert begins == {each for span in spans for each in span}
    assert abs(float(labels.float().mean()) - 0.5) < 5 * 0.5 / 2_000**0.5


@pytest.mark.parametrize("run", [1, 2, 3])
def test_runs_are_counted_as_a_loop_counts_them(run):
    tokens = torch.randint(6, (20, 40), generator=stream(2, "runs"), dtype=torch.uint8)
    found = speeches.counts(tokens, 6, run)
    assert found.shape == (20, 6**run)
    for row, counts in zip(tokens.tolist(), found.tolist(), strict=True):
        seen = [0] * 6**run
        for at in range(40 - run + 1):
            seen[sum(code * 6 ** (run - 1 - i) for i, code in enumerate(row[at : at + run]))] += 1
        assert counts == seen


@pytest.mark.parametrize("features", [6, 300])  # fewer than items, and more
def test_the_linear_rule_is_ridge_regression_at_the_penalty_that_a_fifth_chooses(features):
    generator = stream(4, "ridge")
    seen, asked = (torch.randn(num, features, generator=generator, dtype=torch.float64) for num in (200, 50))
    labels = (seen @ torch.randn(features, 3, generator=generator, dtype=torch.float64)).argmax(dim=-1)
    found = speeches.by_linear_rule(seen, labels, asked)
    middle, width = seen.mean(dim=0), seen.std(dim=0) + 1e-6
    x, z, y = ((seen - middle) / width).numpy(), ((asked - middle) / width).numpy(), np.eye(3)[labels.numpy()]

    def guesses(x, y, z, penalty):  # the intercept is the mean label, columns are not centred again
        return (
            Ridge(penalty * len(x), fit_intercept=False).fit(x, y - y.mean(axis=0)).predict(z) + y.mean(axis=0)
        ).argmax(1)

    scores = [(guesses(x[40:], y[40:], x[:40], 10.0**p) == labels[:40].numpy()).sum() for p in range(-4, 3)]
    assert found.tolist() == guesses(x, y, z, 10.0 ** (int(np.argmax(scores)) - 4)).tolist()


@needs("stdlib")
def test_a_network_is_judged_on_speeches_that_it_has_not_read():
    one = dataclasses.replace(Speeches.at("tiny"), length=40, num_train=60, num_test=60)
    train, judge = one.sets("test", 2, 6, "cpu")
    texts = [[bytes(each.tolist()) for each in era] for era in speeches.by_era()]
    assert sum(map(len, texts)) > 200
    assert min(map(len, texts)) >= 20

    def read_by(data, r):
        found = set()
        for window, label in zip(data.tokens[r], data.labels[r].tolist(), strict=True):
            places = [(label, i) for i, text in enumerate(texts[label]) if bytes(window.tolist()) in text]
            assert places
            if len(places) == 1:  # most windows of 40 letters are nowhere else
                found.add(places[0])
        return found

    for r in range(2):
        learned, judged = read_by(train, r), read_by(judge, r)
        assert len(learned) > 20
        assert len(judged) > 20
        assert not learned & judged
