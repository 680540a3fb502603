"""Trained models: shared weights, data and batches, the training loop, and what is measured of it."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from derived.lab.experiment import run_condition
from derived.lab.nets import layer_norm
from derived.lab.rng import stream
from derived.lab.training import mean_cross_entropy
from derived.papers.hierarchical_kernel import trained, training
from derived.papers.hierarchical_kernel.claims import CLAIMS
from derived.papers.hierarchical_kernel.data.listops import CODES, evaluate_tokens
from derived.papers.hierarchical_kernel.data.sequences import Data, stack
from derived.papers.hierarchical_kernel.data.trees import by_last_letter, sample_trees
from derived.papers.hierarchical_kernel.leak import Leak
from derived.papers.hierarchical_kernel.measures import at_an_end, coarse_weight, gain_at_equal_work, visible, work
from derived.papers.hierarchical_kernel.model.classifier import SequenceClassifier
from derived.papers.hierarchical_kernel.model.pyramid import pyramid
from derived.papers.hierarchical_kernel.trained import trees, tuned

CLAIM = {one.id: one for one in CLAIMS}


PLACES = {"device": torch.device("cpu"), "dtype": torch.float32}


def test_arms_share_the_weights_they_have_in_common():
    small = trained.Trees.at("tiny")
    models = {kind: small.model(kind, 2, seed=4, **PLACES) for kind in small.kinds}
    plain, hkt = (models[kind].blocks[0].attention for kind in ("plain", "hkt"))
    assert torch.equal(plain.W_Q, hkt.scores.W_Q[0])
    assert torch.equal(plain.W_V, models["wide"].blocks[0].attention.W_V)
    assert torch.equal(models["plain"].E, models["hkt-average"].E)


def test_replicates_have_data_and_seeds_have_weights_of_their_own(monkeypatch):
    small, seeds, model = trained.Trees.at("tiny"), [], training.Compared.model

    def noted(self, kind, networks, *, seed, **places):
        seeds.append(seed)
        return model(self, kind, networks, seed=seed, **places)

    monkeypatch.setattr(training.Compared, "model", noted)
    tables = [run_condition(small, {"kind": "plain"}, seed, "cpu").query("stage == 'test'") for seed in (0, 1)]
    assert len(set(seeds)) == 4  # of the search and of the test, at two seeds
    for table in tables:
        assert table["last"].nunique() == 2  # the rule's accuracy depends on the data alone


def test_replicates_do_not_depend_on_how_many_stand_beside_them():
    """Losses of separate networks are summed, so their gradients never mix."""
    small, tables = trained.TunedListOps.at("tiny"), {}
    for count in (1, 2):
        data = stack([small.task(stream(0, "train", 0, r), 8) for r in range(count)])
        model = small.model("hkt", count, seed=0, device=torch.device("cpu"), dtype=torch.float64)
        order = torch.arange(8).expand(count, -1)
        for _ in range(2):
            batch = data.take(order)
            mean_cross_entropy(model(batch.tokens, batch.lengths), batch.labels).sum().backward()
        tables[count] = model.blocks[0].attention.scores.W_Q[1].grad[0]
    assert torch.allclose(tables[1], tables[2], rtol=1e-9, atol=1e-12)


def test_training_learns_a_task_that_one_symbol_decides():
    tokens = torch.randint(1, 4, (2, 64, 5), generator=stream(1, "easy"))
    data = Data(tokens, torch.full((2, 64), 5), tokens[:, :, 0] - 1)
    facts = {"vocabulary": 4, "classes": 3, "max_length": 5, "width": 16, "depth": 1, "num_networks": 2}
    model = SequenceClassifier(**facts, attention="hkt", levels=2)
    losses = training.train(model, data, steps=120, batch_size=16, lr=5e-3, generator=stream(1, "batches"))
    loss, accuracy = training.evaluate(model, data)
    assert losses.shape == (2, 120)
    assert (accuracy > 0.95).all()
    assert (loss < losses[:, 0] / 4).all()


def test_the_rate_rises_then_falls_to_zero():
    rates = np.array([training.rate(step, 100) for step in range(100)])
    assert rates.argmax() in (9, 10)
    assert rates.max() == 1
    assert rates[-1] < 1e-3
    assert training.rate(0, 1) == 1
    assert {training.rate(step, 100, 0.6) for step in range(10, 70)} == {1.0}
    assert training.rate(71, 100, 0.6) < 1
    assert training.rate(99, 100, 0.6) < 0.01


def test_weight_decay_spares_the_logits_of_the_levels():
    """One step with and without decay from one start: only what decays differs, and the logits do not."""
    tokens = torch.randint(1, 4, (1, 16, 5), generator=stream(1, "decay"))
    data, found = Data(tokens, torch.full((1, 16), 5), tokens[:, :, 0] - 1), []
    for decay in (0.0, 0.5):
        facts = {"vocabulary": 4, "classes": 3, "max_length": 5, "width": 8, "depth": 1, "alpha0": 0.7}
        model = SequenceClassifier(**facts, attention="hkt", levels=2)
        order = {"steps": 1, "batch_size": 4, "lr": 0.1, "generator": stream(1, "one step")}
        training.train(model, data, **order, weight_decay=decay)
        found.append(dict(model.named_parameters()))
    for name in found[0]:
        assert torch.equal(found[0][name], found[1][name]) == name.endswith(".a"), name


def test_the_logits_of_the_levels_learn_at_their_own_rate_and_nothing_else_does():
    """Adam's first step is the learning rate, whatever the gradient: the logits move ten times as far."""
    tokens = torch.randint(1, 4, (1, 16, 5), generator=stream(1, "hasten"))
    data, moves = Data(tokens, torch.full((1, 16), 5), tokens[:, :, 0] - 1), {}
    for factor in (1.0, 10.0):
        facts = {"vocabulary": 4, "classes": 3, "max_length": 5, "width": 8, "depth": 1, "alpha0": 0.7}
        model = trained_on(data, facts, factor, before := {})
        moves[factor] = {
            name: (weight - before[name]).detach().abs().max().item() for name, weight in model.named_parameters()
        }
    for name, move in moves[1.0].items():
        assert moves[10.0][name] == pytest.approx(move * (10 if name.endswith(".a") else 1), rel=1e-3), name


def trained_on(data: Data, facts: dict, factor: float, before: dict) -> SequenceClassifier:
    """A classifier one step after ``before``, into which its start is written."""
    model = SequenceClassifier(**facts, attention="hkt", levels=2)
    before |= {name: weight.detach().clone() for name, weight in model.named_parameters()}
    order = {"steps": 1, "batch_size": 4, "lr": 0.01, "generator": stream(1, "one step"), "weight_decay": 1e-9}
    training.train(model, data, **order, alpha_rate=factor)
    return model


def test_levels_are_measured_from_one_row_per_sequence():
    small = dataclasses.replace(trained.TunedListOps.at("tiny"), alpha0=1 / 3)
    data = stack([small.task(stream(0, "test", 0, r), 70) for r in range(2)])
    model = small.model("hkt", 2, seed=0, **PLACES)
    found = training.levels_of(model, data)
    assert len(found) == 2 * 2 * 3
    sums = found.groupby(["replicate", "block"])["alpha"].sum()
    assert np.allclose(sums, 1)
    z = layer_norm(model.embed(data.tokens.long())).detach()
    for level, features in enumerate(model.blocks[0].attention.scores.pyramid(z)):
        for r in range(2):
            places = [int(n) // 2 >> level for n in data.lengths[r]]
            at = np.stack([features[r, item, place].detach().double().numpy() for item, place in enumerate(places)])
            row = found.query("replicate == @r and block == 0 and level == @level").iloc[0]
            assert row["kurtosis"] == pytest.approx(stats.kurtosis(at, axis=0).mean(axis=0), rel=1e-6)
            assert row["variance"] == pytest.approx(at.var(axis=0, ddof=1).mean(axis=0), rel=1e-6)
            assert np.abs(at.sum(axis=1)).max() < 1e-5  # so that seven of eight features say all
            centred = at[:, :7] - at[:, :7].mean(axis=0)
            distances = 70 * np.square(np.linalg.svd(centred, full_matrices=False)[0]).sum(axis=1)
            z_score = ((distances**2).mean(axis=0) - 63 * 69 / 71) / np.sqrt(8 * 63 / 70)  # p (p + 2) = 63
            assert row["mardia"] == pytest.approx(z_score, rel=1e-4)
            assert row["alpha"] == pytest.approx(1 / 3, rel=1e-6)


def test_the_levels_of_a_second_block_are_those_of_all_items_at_once():
    """More items than one batch, to rounding."""
    small = trained.Trees.at("tiny")
    data = stack([small.task(stream(8, "many", r), 300) for r in range(2)])
    model = dataclasses.replace(small, depth=2).model("hkt", 2, seed=4, **PLACES)
    with torch.no_grad():
        z = layer_norm(model.blocks[0](model.embed(data.tokens.long())))
        features = model.blocks[1].attention.scores.pyramid(z)[0]
    middle = data.lengths.long() // 2
    for r, row in training.levels_of(model, data).query("block == 1 and level == 0").set_index("replicate").iterrows():
        at = features[r, torch.arange(300), middle[r]].double()
        assert row["variance"] == pytest.approx(float(at.var(dim=0).mean()), rel=1e-4)


SEEDED = (trained.TunedListOps, trained.Trees, Leak)


@pytest.mark.parametrize("experiment", SEEDED)
def test_rows_follow_the_seed(experiment):
    small = experiment.at("tiny")
    condition = small.conditions()[0]
    first, again, other = (run_condition(small, condition, seed, "cpu") for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again)
    assert not np.allclose(first["loss"].dropna(), other["loss"].dropna())


# --- each arm at its own learning rate --------------------------------------------------------------------------------


def small_tuned(**sizes) -> trained.TunedListOps:
    return dataclasses.replace(trained.TunedListOps.at("tiny"), **sizes)


def test_the_tuned_task_has_no_sums_and_the_right_answers():
    data = small_tuned().task(stream(3, "nested"), 300)
    assert len(data.labels) == len(data.tokens) == 300
    assert (data.tokens != CODES["[SM"]).all()
    assert [evaluate_tokens(codes.long()) for codes in data.tokens] == data.labels.tolist()
    assert data.lengths.min() > 8
    assert data.lengths.max() < 25


def test_arms_of_the_comparison_have_equal_parameters_where_they_are_said_to():
    places = {"seed": 0, "device": "cpu", "dtype": torch.float32}
    rivals = ("wide", "conv-qk", "hkt-average")
    models = {kind: trained.TunedListOps().model(kind, 1, **places) for kind in ("plain", "hkt", *rivals)}
    numbers = {kind: model.num_parameters() for kind, model in models.items()}
    levels = 2 * 2 * 3  # the logits of the levels, two blocks of two heads
    assert {numbers["hkt"] - numbers[kind] for kind in rivals} <= {0, levels}
    assert numbers["hkt"] > 1.5 * numbers["plain"]
    assert torch.equal(models["conv-qk"].blocks[1].attention.W_Q, models["plain"].blocks[1].attention.W_Q)
    assert torch.allclose(models["hkt"].alphas()[..., 0], torch.tensor(0.9))


def test_the_rate_is_chosen_on_validation_data_and_every_arm_has_the_same_budget(monkeypatch):
    """The rate with the best validation accuracy, made to be the second; test data and batches do not see the arm."""
    small, calls = small_tuned(rates=(1e-3, 4e-3, 1e-2), tuning=2), []
    train, evaluate = training.train, training.evaluate

    def noted(model, data, *, steps, lr, generator, **facts):
        calls.append((lr, steps, data.tokens.clone(), generator.get_state()))
        return train(model, data, steps=steps, lr=lr, generator=generator, **facts)

    def judged(model, data):
        loss, accuracy = evaluate(model, data)
        return loss, accuracy + (calls[-1][0] == 4e-3)

    monkeypatch.setattr(training, "train", noted)
    monkeypatch.setattr(training, "evaluate", judged)
    tables = [run_condition(small, {"kind": kind}, 0, "cpu") for kind in ("plain", "hkt")]
    assert [lr for lr, *_ in calls] == 2 * [1e-3, 4e-3, 1e-2, 4e-3]
    assert {steps for _, steps, *_ in calls} == {10}
    for first, second in zip(calls[:4], calls[4:], strict=True):
        assert torch.equal(first[2], second[2])
        assert torch.equal(first[3], second[3])
    validation, test = ({bytes(row.numpy()) for row in calls[at][2].flatten(0, 1)} for at in (0, 3))
    assert not validation & test
    for table in tables:
        assert set(table.loc[table["stage"] == "test", "rate"]) == {4e-3}
        assert table["stage"].value_counts()["validation"] == 6


def test_the_curve_is_watched_at_equal_distances_and_ends_with_the_last_step():
    found = run_condition(small_tuned(rates=(1e-2,), checks=2), {"kind": "conv-qk"}, 0, "cpu").query("stage == 'test'")
    assert sorted(found["step"].unique()) == [0, 5, 10]
    assert np.allclose(10 * found["flop"], found["step"] * found["flop"].max())
    assert (found.groupby("replicate")["rule"].nunique() == 1).all()


def test_operations_are_those_of_the_matrix_products():
    """By hand for plain attention: 6 per weight and symbol, and 12 T^2 width per block and item for S and A V."""
    one = small_tuned(width=8, depth=1, batch_size=2)
    model = one.model("plain", one.replicates, seed=0, device="cpu", dtype=torch.float32)
    data = stack([one.task(stream(0, "flop", r), 4) for r in range(one.replicates)])
    T, items = data.tokens.shape[-1], 2
    weights = 4 * 8 * 8 + 2 * 2 * 8 * 8
    by_hand = items * (6 * weights * T + 12 * T * T * 8 + 6 * 10 * 8)
    assert one._flop(model, data) == by_hand


def test_known_counts_test_strings_that_stand_in_training():
    codes = torch.tensor([[[1, 2], [3, 4], [5, 6]]], dtype=torch.uint8)
    seen = Data(codes, None, None)
    assert trained.known(seen, Data(torch.tensor([[[3, 4], [7, 8]]], dtype=torch.uint8), None, None)).tolist() == [0.5]


def test_depth_1_evaluates_the_outermost_list_and_guesses_inside():
    """[MAX 9 [MIN 0 0 ] ] is decided outside; [MIN 9 [MAX 0 0 ] ] is not, and its likeliest value is wrong."""
    one = small_tuned()
    train = stack([one.task(stream(5, "law"), 400)])
    texts = ("[MAX 9 [MIN 0 0 ] ]", "[MIN 9 [MAX 0 0 ] ]", "[MED 3 3 3 ]")
    tokens = torch.zeros(1, 3, 24, dtype=torch.uint8)
    for row, text in enumerate(texts):
        codes = torch.tensor([CODES[word] for word in text.split()])
        tokens[0, row, : len(codes)] = codes
    labels = torch.tensor([[9, 0, 3]])
    assert one.depth_1(train, Data(tokens, None, labels)).tolist() == [2 / 3]


def arms(gains: np.ndarray, experiment: type[training.Compared] = trained.TunedListOps, **ends: float) -> pd.DataFrame:
    """Rows of a comparison: HKT ends ``gains`` above every other arm, and earlier checks must not count.

    ``ends`` names arms (conv_qk, …) that end elsewhere. Losses fall until three tenths before the end.
    """
    tables, steps = [], range(0, 101, 10)
    for kind in experiment.kinds:
        for step in steps:
            table = pd.DataFrame({"kind": kind, "stage": "test", "step": step, "replicate": np.arange(len(gains))})
            right = ends.get(kind.replace("-", "_"), 0.6) + gains * (kind == "hkt") if step == 100 else 0.1
            facts = {"rule": 0.55, "last": 0.55, "pixels": 0.55, "counts": 0.2, "rate": 4e-3, "flop": 1e9 * step}
            tables.append(table.assign(accuracy=right, loss=max(2 - step / 30, 0), **facts))
        for rate, right in ((1e-3, 0.5), (4e-3, 0.6)):
            right += (kind == "hkt") * (0.02 if rate == 4e-3 else -0.03)
            table = pd.DataFrame({"kind": kind, "stage": "validation", "rate": rate, "replicate": [0, 1]})
            tables.append(table.assign(accuracy=right))
    return pd.concat(tables, ignore_index=True)


def test_tuned_gains_are_paired_and_taken_at_the_end():
    rows = arms(np.array([0.01, 0.02, 0.03, 0.02]))
    for id in "op":
        assert CLAIM[f"HKT-E1.{id}"].measure(rows).value == pytest.approx(0.02)
    assert CLAIM["HKT-E1.s"].measure(arms(np.full(4, 0.02))).value == pytest.approx(0.05)  # of all arms the lowest


def test_tuned_rows_fail_where_hkt_is_behind_and_do_not_decide_on_noise():
    noise = torch.randn(12, generator=stream(7, "noise"), dtype=torch.float64).numpy()
    for id in "op":
        claim = CLAIM[f"HKT-E1.{id}"]
        for gains, verdict in ((0.03, "holds"), (-0.03, "fails"), (0.0, "undecided")):
            assert claim.judge(claim.measure(arms(gains + 0.005 * noise)))[0] == verdict
    below = CLAIM["HKT-E1.s"]
    assert below.judge(below.measure(arms(-0.1 + 0.005 * noise)))[0] == "fails"


@pytest.mark.parametrize("rival", ["wide", "conv_qk", "hkt_average"])
def test_one_rival_of_three_that_is_ahead_is_enough(rival):
    claim, gains = CLAIM["HKT-E1.p"], 0.03 + 0.001 * (np.arange(12) % 3)
    assert claim.judge(claim.measure(arms(gains)))[0] == "holds"
    assert claim.judge(claim.measure(arms(gains, **{rival: 0.7})))[0] == "fails"


def test_the_weight_of_coarse_levels_is_that_of_hkt_alone():
    index = pd.MultiIndex.from_product([range(3), range(2), range(3)], names=["replicate", "block", "level"])
    table = index.to_frame(index=False).assign(stage="level")
    table["alpha"] = table["level"].map({0: 0.5, 1: 0.3, 2: 0.2})
    both = pd.concat([table.assign(kind="hkt"), table.assign(kind="hkt-average", alpha=0.0)])
    assert coarse_weight(both).value == pytest.approx(0.5)
    assert coarse_weight(both.assign(alpha=0.2)).value == pytest.approx(0.8)


def test_an_arm_is_cut_off_at_its_last_check_within_the_work_of_another():
    """HKT does twice the work of plain attention here, so it is judged half-way, where both are right as often."""
    index = pd.MultiIndex.from_product([["hkt", "plain"], range(2), range(3)], names=["kind", "replicate", "step"])
    rows = index.to_frame(index=False).assign(stage="test", rate=0.01)
    rows["flop"] = rows["step"] * rows["kind"].map({"hkt": 2.0, "plain": 1.0})
    rows["accuracy"] = np.where(rows["kind"] == "hkt", 0.4 * rows["step"], 0.2 * rows["step"]) + 0.1 * rows["replicate"]
    assert work(rows) == 2
    assert gain_at_equal_work("plain")(rows).value == pytest.approx(0.0)
    assert gain_at_equal_work("hkt", "plain")(rows).value == pytest.approx(-0.4)


def test_arms_at_an_end_of_their_rates_are_named():
    rows = pd.DataFrame({"stage": "validation", "kind": "hkt", "rate": [0.01, 0.02, 0.04]})
    at = [("hkt", 0.01), ("plain", 0.02), ("wide", 0.04)]
    best = pd.DataFrame([{"stage": "test", "kind": kind, "rate": rate} for kind, rate in at])
    assert at_an_end(pd.concat([rows, best])) == "HKT, wide attention"
    assert at_an_end(pd.concat([rows, best.query("kind == 'plain'")])) == "none"


def test_the_smallest_visible_gain_is_seen_four_times_in_five():
    """By simulation: eight networks whose true gain is that much, judged at 99.9 %."""
    draws = torch.randn(20_000, 8, generator=stream(6, "power"), dtype=torch.float64).numpy()
    error = 0.02 / np.sqrt(8)
    gains = 0.02 * (draws[0] - draws[0].mean()) / draws[0].std(ddof=1)
    smallest = visible("plain")(arms(gains)).value
    assert smallest == pytest.approx((stats.t.ppf(0.9995, 7) + stats.t.ppf(0.8, 7)) * error)
    true = smallest + 0.02 * draws
    low = true.mean(axis=1) - stats.t.ppf(0.9995, 7) * true.std(axis=1, ddof=1) / np.sqrt(8)
    assert (low > 0).mean() == pytest.approx(0.8, abs=0.1)


def test_the_figure_of_tuned_arms_says_rates_and_ends(words_of):
    rows = arms(np.array([0.01, 0.02, 0.03, 0.02])).assign(tier="ci", recorded=False)
    assert "HKT 62.0 % at rate 0.004" in words_of(tuned(rows))


# --- strings whose groups are the blocks of the levels ----------------------------------------------------------------


def judged(id: str, rows: pd.DataFrame) -> str:
    return CLAIM[id].judge(CLAIM[id].measure(rows))[0]


NOISE = torch.randn(8, generator=stream(7, "noise"), dtype=torch.float64).numpy()


@pytest.mark.parametrize(("id", "rival"), [("a", "plain"), ("a", "wide"), ("a", "hkt_average"), ("b", "conv_qk")])
def test_one_rival_that_keeps_up_is_enough_to_fail(id, rival):
    gains = 0.35 + 0.005 * NOISE
    assert judged(f"HKT-E6.{id}", arms(gains, trained.Trees)) == "holds"
    assert judged(f"HKT-E6.{id}", arms(gains, trained.Trees, **{rival: 0.97})) == "fails"


def test_averages_must_end_where_the_last_letter_ends():
    rows = arms(0.35 + 0.005 * NOISE, trained.Trees, hkt_average=0.56)
    assert judged("HKT-E6.c", rows) == "holds"
    for far in (0.45, 0.65):
        assert judged("HKT-E6.c", arms(0.005 * NOISE, trained.Trees, hkt_average=far)) == "fails"


@pytest.mark.parametrize("tenth", [7, 10])
def test_an_arm_that_still_falls_decides_nothing(tenth):
    rows = arms(0.35 + 0.005 * NOISE, trained.Trees)
    falls = (rows["kind"] == "wide") & (rows["step"] >= 10 * tenth)
    rows.loc[falls, "loss"] -= 0.06
    for id in "ab":
        with pytest.raises(ValueError, match=r"wide: a tenth of the steps takes 0\.060 nats"):
            CLAIM[f"HKT-E6.{id}"].measure(rows)
    rows.loc[falls, "loss"] += 0.06
    assert judged("HKT-E6.a", rows) == "holds"


def test_strings_grouped_like_the_levels_are_what_they_say():
    """Against a slow twin: read record by record."""
    drawn = sample_trees(300, stream(2, "trees"))
    for codes, label in zip(drawn.tokens.tolist(), drawn.labels.tolist(), strict=True):
        records = [codes[1 + 4 * g : 5 + 4 * g] for g in range(7)]
        assert codes[0] == 0
        assert len(codes) == 29
        assert len({tuple(letters) for *letters, _ in records[:6]}) == 6
        assert len({frozenset(letters) for *letters, _ in records}) == 1
        assert len({value for *_, value in records[:6]}) == 6
        (found,) = (value for *letters, value in records[:6] if letters == records[6][:3])
        assert found - 9 == label
        assert records[6][3] == 17
    first = next(v for *_, c, v in records if c == records[6][2])
    assert by_last_letter(drawn.tokens)[-1] == first - 9


def test_a_record_is_a_window_of_level_2_and_its_last_leaf_reads_it():
    """The summary that the last leaf of record g reads depends on the leaves of that record and on no other token."""
    x = torch.zeros(1, 29, 1, dtype=torch.float64, requires_grad=True)
    coarse = pyramid(x, 3, "average")[2]
    for g in range(7):
        (seen,) = torch.autograd.grad(coarse[0, (4 * g + 4) >> 2, 0], x, retain_graph=True)
        assert seen.flatten().nonzero().flatten().tolist() == [4 * g + 1, 4 * g + 2, 4 * g + 3, 4 * g + 4]


def test_arms_of_the_control_have_equal_parameters_where_they_are_said_to():
    numbers = {kind: trained.Trees().model(kind, 1, seed=0, **PLACES).num_parameters() for kind in trained.Trees.kinds}
    assert numbers["wide"] == numbers["conv-qk"] == numbers["hkt"] - 6 == numbers["hkt-average"] - 6  # logits of levels
    assert numbers["plain"] < numbers["hkt"]


def test_the_figure_of_the_control_says_its_rule(words_of):
    rows = arms(np.array([0.01, 0.02, 0.03, 0.02]), trained.Trees).assign(tier="ci", recorded=False)
    assert "last letter 55.0 %" in words_of(trees(rows))
