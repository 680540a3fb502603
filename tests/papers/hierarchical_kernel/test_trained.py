"""Trained models: shared weights, data and batches, the training loop, and what is measured of it."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.experiment import run_condition, run_experiment
from derived.lab.rng import stream
from derived.papers.hierarchical_kernel import trained, training
from derived.papers.hierarchical_kernel.claims import CLAIMS
from derived.papers.hierarchical_kernel.data.groups import by_last_letter, sample_groups
from derived.papers.hierarchical_kernel.data.listops import CODES, evaluate_tokens
from derived.papers.hierarchical_kernel.data.sequences import Data, stack
from derived.papers.hierarchical_kernel.leak import Leak
from derived.papers.hierarchical_kernel.measures import steps_to_enough
from derived.papers.hierarchical_kernel.model.pyramid import pyramid

CLAIM = {one.id: one for one in CLAIMS}


PLACES = {"device": torch.device("cpu"), "dtype": torch.float32}


def test_the_rate_rises_then_falls_to_zero():
    rates = np.array([training.rate(step, 100) for step in range(100)])
    assert rates.argmax() in (9, 10)
    assert rates.max() == 1
    assert rates[-1] < 1e-3
    assert training.rate(0, 1) == 1
    assert {training.rate(step, 100, 0.6) for step in range(10, 70)} == {1.0}
    assert training.rate(71, 100, 0.6) < 1
    assert training.rate(99, 100, 0.6) < 0.01


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


def test_operations_are_those_of_the_matrix_products():
    """By hand for plain attention: 6 per weight and symbol, and 12 T^2 width per block and item for S and A V."""
    one = small_tuned(width=8, depth=1, batch_size=2)
    model = one.model("plain", one.replicates, seed=0, device="cpu", dtype=torch.float32)
    data = stack([one.task(stream(0, "flop", r), 4) for r in range(one.replicates)])
    T, items = data.tokens.shape[-1], 2
    weights = 4 * 8 * 8 + 2 * 2 * 8 * 8
    by_hand = items * (6 * weights * T + 12 * T * T * 8 + 6 * 10 * 8)
    assert one._flop(model, data) == by_hand


def test_depth_1_evaluates_the_outermost_list_and_guesses_inside():
    """[MAX 9 [MIN 0 0 ] ] is decided outside; [MIN 9 [MAX 0 0 ] ] is not, and its likeliest value is wrong."""
    one = small_tuned()
    train = stack([one.task(stream(5, "lists"), 400)])
    texts = ("[MAX 9 [MIN 0 0 ] ]", "[MIN 9 [MAX 0 0 ] ]", "[MED 3 3 3 ]")
    tokens = torch.zeros(1, 3, 24, dtype=torch.uint8)
    for row, text in enumerate(texts):
        codes = torch.tensor([CODES[word] for word in text.split()])
        tokens[0, row, : len(codes)] = codes
    labels = torch.tensor([[9, 0, 3]])
    assert one.by_depth(1, train, Data(tokens, None, labels)).tolist() == [2 / 3]


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


# --- strings whose groups are the blocks of the levels ----------------------------------------------------------------


def judged(id: str, rows: pd.DataFrame) -> str:
    return CLAIM[id].judge(CLAIM[id].measure(rows))[0]


NOISE = torch.randn(8, generator=stream(7, "noise"), dtype=torch.float64).numpy()


@pytest.mark.parametrize("rival", ["plain", "wide", "hkt_average"])
def test_one_rival_that_keeps_up_is_enough_to_fail(rival):
    gains = 0.35 + 0.005 * NOISE
    assert judged("HKT-E6.a", arms(gains, trained.Trees)) == "holds"
    assert judged("HKT-E6.a", arms(gains, trained.Trees, **{rival: 0.97})) == "fails"


@pytest.mark.parametrize("tenth", [7, 10])
def test_an_arm_that_still_falls_decides_nothing(tenth):
    rows = arms(0.35 + 0.005 * NOISE, trained.Trees)
    falls = (rows["kind"] == "wide") & (rows["step"] >= 10 * tenth)
    rows.loc[falls, "loss"] -= 0.06
    with pytest.raises(ValueError, match=r"wide: a tenth of the steps takes 0\.060 nats"):
        CLAIM["HKT-E6.a"].measure(rows)
    rows.loc[falls, "loss"] += 0.06
    assert judged("HKT-E6.a", rows) == "holds"


def test_strings_grouped_like_the_levels_are_what_they_say():
    """Against a slow twin: read record by record."""
    drawn = sample_groups(300, stream(2, "trees"))
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


# --- equal operations, and steps to nine of ten -----------------------------------------------------------------------


def test_plain_attention_trains_longer_and_spends_what_hkt_spends():
    small = dataclasses.replace(trained.EqualWork.at("tiny"), steps=100, num_train=80)
    assert (small.steps_of("plain"), small.steps_of("hkt")) == (134, 100)
    full, spent = trained.EqualWork.at("cpu"), {}
    for kind in full.kinds:
        model = full.model(kind, full.replicates, seed=0, **PLACES)
        data = stack([full.task(stream(0, "work", r), 40) for r in range(full.replicates)])
        spent[kind] = full.steps_of(kind) * full._flop(model, data)
    assert spent["plain"] == pytest.approx(spent["hkt"], rel=0.01)


def test_equal_work_is_judged_at_the_end_of_each_kind():
    """HKT ends at step 100 and plain attention at 134; earlier checks do not count."""
    noise = 0.005 * torch.randn(12, generator=stream(7, "noise"), dtype=torch.float64).numpy()
    for lead, verdict in ((0.03, "holds"), (-0.03, "fails"), (0.0, "undecided")):
        rows = arms(lead + noise, trained.EqualWork)
        rows.loc[rows["kind"] == "plain", "step"] *= 1.34
        assert judged("HKT-E1.t", rows) == verdict
    control = CLAIM["HKT-E1.t"].control(rows)
    assert CLAIM["HKT-E1.t"].judge(control)[0] == "fails"


def test_kinds_spend_equal_operations_on_lists_of_512_symbols():
    full = dataclasses.replace(trained.LongLists.at("gpu"), replicates=1, batch_size=1)
    one = Data(torch.ones(1, 1, 512, dtype=torch.uint8), torch.full((1, 1), 512), torch.zeros(1, 1))
    models = {kind: full.model(kind, 1, seed=0, **PLACES) for kind in full.kinds}
    spent = [full.steps_of(kind) * full._flop(model, one) for kind, model in models.items()]
    assert spent == pytest.approx(3 * [spent[0]], rel=1e-3)


def test_a_condition_of_long_lists_has_one_rate_and_needs_no_other():
    """So a run that was stopped after any of them ends with the rows of one that was not."""
    facts = {"kinds": ("hkt",), "longer": (1.0,), "rates": (1e-3, 4e-3)}
    small = dataclasses.replace(trained.LongLists.at("tiny"), **facts)
    whole = run_experiment(small, seed=0, device="cpu")
    for condition in small.conditions()[::-1]:
        rows = whole[whole["rate"] == condition["rate"]]
        pd.testing.assert_frame_equal(run_condition(small, condition, 0, "cpu"), rows.reset_index(drop=True))
        assert len(rows[rows["stage"] == "validation"]) == small.tuning
    assert len(whole) == 2 * len(rows)


def test_long_lists_are_those_of_the_published_rules():
    data = trained.LongLists.at("gpu").task(stream(3, "long"), 200)
    assert 100 < data.lengths.min() < 150 < 450 < data.lengths.max() <= data.tokens.shape[-1] == 512
    assert (data.tokens == CODES["[SM"]).any(dim=-1).all()
    assert [evaluate_tokens(codes.long()) for codes in data.tokens] == data.labels.tolist()


@pytest.mark.parametrize("rival", ["plain", "conv_qk"])
def test_long_lists_are_judged_at_the_rate_that_validation_data_choose(rival):
    """Validation data choose 4e-3, where HKT leads or one rival does; at the other rate it is the other way round."""
    lead, decoy = (arms(by + 0.005 * NOISE, trained.LongLists) for by in (0.1, -0.1))
    decoy = decoy[decoy["stage"] == "test"].assign(rate=1e-3)
    rows = pd.concat([lead, decoy])
    assert judged("HKT-E1.u", rows) == "holds"
    assert CLAIM["HKT-E1.u"].judge(CLAIM["HKT-E1.u"].control(rows))[0] == "fails"
    lead = arms(0.1 + 0.005 * NOISE, trained.LongLists, **{rival: 0.75})
    assert (
        judged("HKT-E1.u", pd.concat([lead, decoy.assign(accuracy=decoy["accuracy"] + (decoy["kind"] == "hkt"))]))
        == "fails"
    )


def test_the_depth_2_rule_reads_one_list_deeper():
    one, rows = trained.EqualWork.at("tiny"), stack([small_tuned().task(stream(5, "lists"), 400)])
    shares = [float(one.by_depth(depth, rows, rows)[0]) for depth in (1, 2, 8)]
    assert shares[0] < shares[1] < shares[2] == 1
    found = {name: float(each[0]) for name, each in one.rules(rows, rows).items()}
    assert (found["rule"], found["deep"]) == (shares[0], shares[1])


def courses(**first: list[int]) -> pd.DataFrame:
    """Rows of ``Sooner``: kinds by the step at which each network is right in nine of ten; 999 for never."""
    tables, steps = [], np.arange(0, 501, 25)
    for kind, each in first.items():
        for replicate, enough in enumerate(each):
            facts = {"kind": kind.replace("_", "-"), "stage": "test", "replicate": replicate, "rate": 4e-3}
            tables.append(
                pd.DataFrame({"step": steps, "accuracy": np.where(steps >= enough, 0.95, 0.2)}).assign(**facts)
            )
    return pd.concat(tables, ignore_index=True)


def test_steps_to_nine_of_ten_are_the_first_check_and_one_beyond_the_last_if_never():
    found = steps_to_enough(courses(hkt=[100, 30, 999]))
    assert found["hkt"].tolist() == [100, 50, 525]


def test_steps_saved_are_paired_and_an_untrained_network_fails():
    rng = np.arange(12) % 3 * 25
    rows = courses(hkt=list(150 + rng), conv_qk=list(250 + rng), hkt_every=list(150 + rng[::-1]))
    assert judged("HKT-E6.d", rows) == "holds"
    assert judged("HKT-E6.e", rows) == "undecided"
    assert judged("HKT-E6.d", courses(hkt=list(250 + rng), conv_qk=list(150 + rng))) == "fails"
    for id in ("HKT-E6.d", "HKT-E6.e"):
        assert CLAIM[id].judge(CLAIM[id].control(rows))[0] == "fails"


def test_the_rate_is_the_one_at_which_networks_get_there_first(monkeypatch):
    small = dataclasses.replace(trained.Sooner.at("tiny"), rates=(1e-3, 4e-3), tuning=2, steps=10, checks=5)
    late = {1e-3: 8, 4e-3: 4}
    monkeypatch.setattr(
        training.Compared,
        "_course",
        lambda self, model, kind, sets, rate, generator: {
            step: (torch.zeros(2), torch.full((2,), 0.95 if step >= late[rate] else 0.1)) for step in range(0, 11, 2)
        },
    )
    found = run_condition(small, {"kind": "hkt"}, 0, "cpu")
    assert found.query("stage == 'validation'").groupby("rate")["reached"].first().to_dict() == {1e-3: 8, 4e-3: 4}
    assert set(found.query("stage == 'test'")["rate"]) == {4e-3}
