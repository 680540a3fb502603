"""Real pictures and speeches: how they become tokens, who sees which, linear rules, and the rows. And the scores of
trained encoders, whose parts are those of `hkt-split`."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
import torch
from here import needs
from sklearn.linear_model import Ridge

from derived.lab.experiment import run_experiment
from derived.lab.real import models
from derived.lab.rng import stream
from derived.papers.hierarchical_kernel.data import real
from derived.papers.hierarchical_kernel.real import (
    ENCODERS,
    ON_REAL,
    Clothes,
    ScoreParts,
    Speeches,
    symmetric_share,
    what_is_read,
)


def test_grey_levels_are_means_of_fields_in_raster_order():
    pictures = torch.randint(256, (3, 28, 28), generator=stream(0, "pictures"), dtype=torch.uint8)
    found = real.as_tokens(pictures, 14)
    assert found.shape == (3, 196)
    for picture, tokens in zip(pictures.tolist(), found.tolist(), strict=True):
        for at in range(196):
            y, x = 2 * (at // 14), 2 * (at % 14)
            mean = sum(picture[y + i][x + j] for i in (0, 1) for j in (0, 1)) / 4
            assert tokens[at] == math.floor(mean / 16)
    assert real.as_tokens(torch.full((1, 28, 28), 255, dtype=torch.uint8), 7).tolist() == [[15] * 49]


def test_windows_lie_inside_a_text_of_their_group_and_can_begin_anywhere():
    letters = torch.arange(27, dtype=torch.uint8)
    texts = [[letters[:5], letters[5:9]], [letters[9:14], letters[14:27]]]
    drawn, labels = real.windows(texts, 2_000, 4, stream(1, "windows"))
    assert (drawn.diff(dim=1) == 1).all()  # consecutive letters of one text
    ends = [{range(0, 2), range(5, 6)}, {range(9, 11), range(14, 24)}]
    for label, spans in enumerate(ends):
        begins = set(drawn[labels == label, 0].tolist())
        assert begins == {each for span in spans for each in span}
    assert abs(float(labels.float().mean()) - 0.5) < 5 * 0.5 / 2_000**0.5


@pytest.mark.parametrize("run", [1, 2, 3])
def test_runs_are_counted_as_a_loop_counts_them(run):
    tokens = torch.randint(6, (20, 40), generator=stream(2, "runs"), dtype=torch.uint8)
    found = real.counts(tokens, 6, run)
    assert found.shape == (20, 6**run)
    for row, counts in zip(tokens.tolist(), found.tolist(), strict=True):
        seen = [0] * 6**run
        for at in range(40 - run + 1):
            seen[sum(code * 6 ** (run - 1 - i) for i, code in enumerate(row[at : at + run]))] += 1
        assert counts == seen


def test_runs_that_share_bins_are_all_counted_and_fill_them_evenly():
    tokens = torch.randint(27, (50, 128), generator=stream(3, "fives"), dtype=torch.uint8)
    found = real.counts(tokens, 27, run=5)
    assert found.shape == (50, 2048)
    assert (found.sum(dim=1) == 124).all()
    spread = float(found.sum(dim=0).var() / found.sum(dim=0).mean())  # 1 for bins at random
    assert 0.8 < spread < 1.25


@pytest.mark.parametrize("features", [6, 300])  # fewer than items, and more
def test_the_linear_rule_is_ridge_regression_at_the_penalty_that_a_fifth_chooses(features):
    generator = stream(4, "ridge")
    seen, asked = (torch.randn(num, features, generator=generator, dtype=torch.float64) for num in (200, 50))
    labels = (seen @ torch.randn(features, 3, generator=generator, dtype=torch.float64)).argmax(dim=-1)
    found = real.by_linear_rule(seen, labels, asked)
    middle, width = seen.mean(dim=0), seen.std(dim=0) + 1e-6
    x, z, y = ((seen - middle) / width).numpy(), ((asked - middle) / width).numpy(), np.eye(3)[labels.numpy()]

    def guesses(x, y, z, penalty):  # the intercept is the mean label, columns are not centred anew
        return (
            Ridge(penalty * len(x), fit_intercept=False).fit(x, y - y.mean(axis=0)).predict(z) + y.mean(axis=0)
        ).argmax(1)

    scores = [(guesses(x[40:], y[40:], x[:40], 10.0**p) == labels[:40].numpy()).sum() for p in range(-4, 3)]
    assert found.tolist() == guesses(x, y, z, 10.0 ** (int(np.argmax(scores)) - 4)).tolist()


@needs("fashion-mnist")
def test_no_picture_is_given_to_two_networks():
    """Networks of the search and of the test have one order of the pictures, each a piece of its own."""
    one = dataclasses.replace(Clothes.at("tiny"), tuning=2, replicates=3, num_train=30, num_test=12)
    tuned, tested = (one.sets(stage, networks, 5, "cpu") for stage, networks in (("validation", 2), ("test", 3)))
    for part, (early, late) in enumerate(zip(tuned, tested, strict=True)):
        rows = torch.cat([early.tokens, late.tokens]).flatten(0, 1)
        pictures, labels = real.clothes(("train", "t10k")[part])
        order = torch.randperm(len(labels), generator=stream(5, "clothes", ("train", "t10k")[part]))[: len(rows)]
        assert len(set(order.tolist())) == len(rows)
        assert torch.equal(rows, real.as_tokens(pictures[order], one.size))
        assert torch.equal(torch.cat([early.labels, late.labels]).flatten(), labels[order].to(torch.int16))


@needs("stdlib")
def test_a_network_is_judged_on_speeches_that_it_has_not_read():
    one = dataclasses.replace(Speeches.at("tiny"), length=40, num_train=60, num_test=60)
    train, judge = one.sets("test", 2, 6, "cpu")
    texts = [[bytes(each.tolist()) for each in era] for era in real.by_era()]
    assert sum(map(len, texts)) > 200
    assert min(map(len, texts)) >= 20

    def speeches(data, r):
        found = set()
        for window, label in zip(data.tokens[r], data.labels[r].tolist(), strict=True):
            places = [(label, i) for i, text in enumerate(texts[label]) if bytes(window.tolist()) in text]
            assert places
            if len(places) == 1:  # most windows of 40 letters are nowhere else
                found.add(places[0])
        return found

    for r in range(2):
        learned, judged = speeches(train, r), speeches(judge, r)
        assert len(learned) > 20
        assert len(judged) > 20
        assert not learned & judged


@needs("fashion-mnist")
@needs("stdlib")
@pytest.mark.parametrize(("experiment", "rules"), [(Clothes, ("pixels", "greys")), (Speeches, ("letters", "fives"))])
def test_rows_have_every_arm_at_the_end_and_the_rules_beside(experiment, rules):
    one, tables = experiment.at("tiny"), []
    for kind in ("plain", "hkt"):
        table = one.run({"kind": kind}, seed=0, device=torch.device("cpu"), dtype=one.dtype)
        tables.append(table.assign(kind=kind))
    rows = pd.concat(tables, ignore_index=True)
    test = rows[rows["stage"] == "test"]
    assert sorted(test["step"].unique()) == list(range(0, one.steps + 1, one.steps // one.checks))
    assert test.groupby("kind")["replicate"].nunique().tolist() == [one.replicates] * 2
    for name in rules:  # one number for each network's data, whatever the arm and the step
        assert test.groupby("replicate")[name].nunique().tolist() == [1] * one.replicates
        assert test[name].between(0, 1).all()


def rows_of(gain: float, falls: float = 0.0) -> pd.DataFrame:
    """Eight networks of each arm, 11 checks; HKT ahead by ``gain``; the last tenth takes ``falls`` nats off."""
    noise = 0.002 * torch.randn(8, generator=stream(7, "noise"), dtype=torch.float64).numpy()
    tables = []
    for kind in Clothes.kinds:
        for step in range(0, 110, 10):
            table = pd.DataFrame({"kind": kind, "stage": "test", "step": step, "replicate": np.arange(8), "rate": 4e-3})
            right = 0.6 + (gain + noise) * (kind == "hkt")
            tables.append(table.assign(accuracy=right, loss=1.0 - falls * (step == 100)))
        index = {"kind": kind, "stage": "validation", "rate": 4e-3, "replicate": range(2)}
        tables.append(pd.DataFrame(index).assign(accuracy=0.6))
    return pd.concat(tables, ignore_index=True)


@pytest.mark.parametrize("claim", ON_REAL, ids=lambda claim: claim.id)
def test_gains_on_real_data_are_judged_where_training_has_come_to_rest(claim):
    for gain, verdict in ((0.02, "holds"), (-0.02, "fails"), (0.0, "undecided")):
        assert claim.judge(claim.measure(rows_of(gain)))[0] == verdict
    with pytest.raises(ValueError, match=r"takes 0\.060 nats off its loss"):
        claim.measure(rows_of(0.02, falls=0.06))


def by_loops(queries: torch.Tensor, keys: torch.Tensor, heads: int) -> float:
    """The symmetric share by a double loop over pairs, from the table of each head, centred by rows and columns."""
    T, shares = len(queries), []
    for q, k in zip(queries.chunk(heads, dim=1), keys.chunk(heads, dim=1), strict=True):
        S = q @ k.mT
        S = S - S.mean(dim=0) - S.mean(dim=1, keepdim=True) + S.mean()
        pairs = [(float(S[i, j] + S[j, i]) ** 2, float(S[i, j] - S[j, i]) ** 2) for i in range(T) for j in range(i)]
        both, one_way = map(sum, zip(*pairs, strict=True))
        shares.append(both / (both + one_way))
    return sum(shares) / heads


def test_the_symmetric_share_is_that_of_the_centred_table_and_blind_to_what_softmax_does_not_see():
    queries, keys = torch.randn(2, 7, 6, generator=stream(8, "sides"), dtype=torch.float64)
    found = symmetric_share(queries, keys, 2)
    assert found == pytest.approx(by_loops(queries, keys, 2), abs=1e-12)
    assert symmetric_share(queries + 3.0, keys - 2.0, 2) == pytest.approx(found, abs=1e-12)
    assert symmetric_share(queries, queries, 2) == pytest.approx(1.0)
    turned = torch.stack([queries[:, 1], -queries[:, 0]], dim=1)  # a form whose symmetric part is zero
    assert symmetric_share(queries[:, :2], turned, 1) == pytest.approx(0.0)


@needs("sapiens", "rxnmapper")
@pytest.mark.parametrize(("name", "text"), [("sapiens-light", "DIQMTQSPSS"), ("rxnmapper", "CC(=O)Cl.NCC>>CCNC(C)=O")])
def test_scores_are_those_that_the_model_itself_attends_by(name, text):
    """Softmax of the scores is the attention that transformers reports, layer by layer, but for marks at both ends."""
    encoder = models.load(name)
    with torch.no_grad():
        read, queries, keys = what_is_read(encoder.model, encoder.tokens(text))
        attention = encoder.model(encoder.tokens(text), output_attentions=True).attentions
    assert len(read) == len(queries) == len(keys) == len(attention) == encoder.model.config.num_hidden_layers
    for x, q, k, A in zip(read, queries, keys, attention, strict=True):
        assert len(x) == A.shape[-1] - 2
        heads = A.shape[1]
        q, k = (each.unflatten(1, (heads, -1)).transpose(0, 1) for each in (q, k))
        expected = A[0, :, 1:-1, 1:-1] / A[0, :, 1:-1, 1:-1].sum(dim=-1, keepdim=True)
        assert torch.allclose((q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1), expected, atol=1e-5)


def test_scores_are_judged_by_the_model_that_is_least_symmetric():
    """`HKT-5.h`: the least of the models speaks for all, and heads drawn anew are judged alike and fail."""
    (claim,) = ENCODERS
    index = {"replicate": np.arange(20), "layer": 1}
    arms = {("a", "trained"): 0.7, ("b", "trained"): 0.65, ("a", "drawn"): 0.5, ("b", "drawn"): 0.51}
    rows = pd.concat(
        pd.DataFrame(index).assign(model=model, heads=heads, symmetric=share + 0.001 * (index["replicate"] % 5))
        for (model, heads), share in arms.items()
    )
    found = claim.measure(rows)
    assert (found.n, found.value) == (20, pytest.approx(0.652))
    assert claim.judge(found)[0] == "holds"
    assert claim.judge(claim.control(rows))[0] == "fails"
    worse = rows.assign(symmetric=rows["symmetric"].where(rows["model"] == "a", 0.4))
    assert claim.judge(claim.measure(worse))[0] == "fails"


@needs("sapiens", "anarci", "rxnmapper")
def test_trained_encoders_read_their_own_sequences_or_ones_own(tmp_path):
    one = ScoreParts.at("tiny")
    rows = run_experiment(one, seed=0, device="cpu")
    assert rows.groupby("model")["layer"].max().to_dict() == {"sapiens-heavy": 4, "sapiens-light": 4, "rxnmapper": 12}
    assert rows.groupby(["model", "heads"])["replicate"].nunique().tolist() == [one.sequences] * 6
    assert rows["symmetric"].between(0, 1).all()
    assert len(real.sequences("sapiens-light")) == 72
    (tmp_path / "a.txt").write_text("DIQMTQSPSS", "utf-8")
    own = ScoreParts(models=("sapiens-light",), folder=str(tmp_path))
    assert run_experiment(own, seed=0, device="cpu")["replicate"].unique().tolist() == [0]
