"""Topic trained: generated data, the loss of couplings, arms that differ in the normaliser alone, and the measures."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from derived.lab.nets import Draws
from derived.lab.rng import stream
from derived.papers.sinkhorn import trained as claims
from derived.papers.sinkhorn.data.points import coupling_problems, matching
from derived.papers.sinkhorn.model.attention import CouplingTransformer, SinkhornTransformer
from derived.papers.sinkhorn.model.backward import sinkhorn_plan
from derived.papers.sinkhorn.model.plan import sinkhorn
from derived.papers.sinkhorn.trained import Arms, EqualSeconds, LearnedCouplings, coupling_loss

EXPERIMENTS = (LearnedCouplings, Arms, EqualSeconds)


def test_partners_stand_near_each_other_and_queries_carry_no_class():
    features, labels = matching(200, 8, stream(0, "matching"), noise=0.1)
    keys, queries = features[:, :8], features[:, 8:]
    assert (keys[..., :2] - queries[..., :2]).std() == pytest.approx(0.1, rel=0.05)
    assert torch.equal(keys[..., 2:6].argmax(dim=-1), labels)
    assert not queries[..., 2:6].any()
    assert (keys[..., 6] == 0).all()
    assert (queries[..., 6] == 1).all()


def test_the_loss_of_couplings_is_kl_with_the_derivative_of_the_whole_iteration():
    problem = coupling_problems("comonotone", 3, 5, stream(0, "loss"))
    scores = torch.randn(1, 3, 5, 5, generator=stream(0, "scores"), dtype=torch.float64, requires_grad=True)
    loss = coupling_loss(scores, problem, "sinkhorn", 2000)
    plan = sinkhorn_plan(scores, problem.a, problem.b, tol=1e-13, max_iterations=5000)
    target = problem.target
    kl = (torch.xlogy(target, target) - torch.xlogy(target, plan)).sum(dim=(-2, -1)).mean(dim=-1)
    found, whole = (torch.autograd.grad(each.sum(), scores, retain_graph=True)[0] for each in (loss, kl))
    assert abs(float((loss - kl).detach())) < 1e-3
    assert (found - whole).abs().max() < 2e-4  # the loss stops Sinkhorn at a residual of 1e-4


def test_arms_have_equal_parameters_and_starts():
    nets = [SinkhornTransformer(5, 3, num_half_steps=num, draws=Draws(num_networks=2)) for num in (1, 3, 5, None)]
    first = dict(nets[0].named_parameters())
    for net in nets[1:]:
        weights = dict(net.named_parameters())
        assert weights.keys() == first.keys()
        assert all(torch.equal(weights[name], first[name]) for name in first)
    x = torch.randn(1, 2, 6, 5, generator=stream(0, "x"))
    outputs = [net(x) for net in nets]
    assert not torch.allclose(outputs[0], outputs[1])
    with pytest.raises(ValueError, match="odd number"):
        SinkhornTransformer(5, 3, num_half_steps=2)


@pytest.mark.parametrize("num", [1, 3, None])
def test_a_transformer_is_a_function_of_weighted_sets(num):
    net = SinkhornTransformer(3, 2, num_half_steps=num, width=8, draws=Draws(dtype=torch.float64))
    x = torch.randn(1, 1, 5, 3, generator=stream(0, "sets"), dtype=torch.float64)
    order = torch.tensor([4, 2, 0, 1, 3])
    weights = torch.tensor([[[0.1, 0.2, 0.3, 0.4, 0.0]]], dtype=torch.float64)
    out = net(x, weights)
    assert (net(x[:, :, order], weights[:, :, order]) - out[:, :, order]).abs().max() < 1e-7
    assert (net(x[:, :, :4], weights[:, :, :4]) - out[:, :, :4]).abs().max() < 1e-7
    twice, halves = torch.cat([x, x], dim=2), torch.cat([weights, weights], dim=2) / 2
    assert (net(twice, halves)[:, :, :4] - out[:, :, :4]).abs().max() < 1e-7


def test_a_learned_relation_keeps_the_texts_apart():
    net = CouplingTransformer(rank=4, width=8, depth=1, draws=Draws(num_networks=2))
    drawn = coupling_problems("crossed", 3, 5, stream(0, "texts"))
    x, y, a, b = (each.float().unsqueeze(0) for each in drawn[:4])
    scores = net(x, y, a, b)
    assert scores.shape == (2, 3, 5, 5)
    assert not torch.allclose(scores, net(y, x, b, a).mT)
    order = torch.tensor([3, 0, 4, 1, 2])
    moved = net(x[..., order], y, a[..., order], b)
    assert torch.allclose(moved, scores[..., order, :], atol=1e-5)


@pytest.mark.parametrize("num", [1, None])
def test_a_forward_pass_by_hand(num):
    net = SinkhornTransformer(3, 2, num_half_steps=num, width=8, depth=1, draws=Draws(dtype=torch.float64))
    x = torch.randn(5, 3, generator=stream(0, "by hand"), dtype=torch.float64)
    enter, leave = net.enter[0], net.leave[0]
    qkv, out, up, down = (net.layers[0][name][0] for name in ("qkv", "out", "up", "down"))

    def norm(h):
        return (h - h.mean(dim=1, keepdim=True)) / (h.var(dim=1, keepdim=True, unbiased=False) + 1e-5).sqrt()

    h = x @ enter.T
    q, k, v = (norm(h) @ qkv.T).split(8, dim=1)
    heads = []
    for head in (slice(0, 4), slice(4, 8)):
        scores = q[:, head] @ k[:, head].T / 2
        A = scores.softmax(dim=1) if num else 5 * sinkhorn(scores, tol=1e-12, max_iterations=5000).plan
        heads.append(A @ v[:, head])
    h = h + torch.cat(heads, dim=1) @ out.T
    h = h + torch.nn.functional.gelu(norm(h) @ up.T) @ down.T
    assert (net(x.view(1, 1, 5, 3))[0, 0] - norm(h) @ leave.T).abs().max() < 1e-6


@pytest.mark.parametrize("normaliser", ["softmax", "sinkhorn"])
def test_each_network_has_its_own_distances(monkeypatch, normaliser):
    """One network knows nothing, the other one has the target for its table."""
    held = LearnedCouplings.at("tiny")

    def scores(self, model, problem):
        _, _, _, b, target = problem
        known = target.clamp(min=1e-12).log() - b.log().unsqueeze(-2)
        return torch.stack([torch.zeros_like(known[0]), known[1]])

    monkeypatch.setattr(LearnedCouplings, "_scores", scores)
    rows = held._tested(None, "comonotone", normaliser, 16, 0).set_index("model")
    assert rows.loc[0, "ratio"] == pytest.approx(1)
    assert rows.loc[1, "ratio"] < 1e-3
    assert rows["missed"].max() < 1e-4


def test_every_row_is_there_once(rows):
    table = rows[LearnedCouplings]
    assert (table.query("stage == 'final'").groupby(["target", "normaliser", "n"]).size() == 2).all()
    tuned = table.query("stage in ('search', 'run-off')").groupby(["target", "normaliser", "stage", "rate"]).size()
    assert (tuned == 2).all()
    assert tuned.groupby("stage").size().to_dict() == {"search": 12, "run-off": 6}  # of two rates one is a finalist
    assert (table.query("stage == 'curve'").groupby(["target", "normaliser", "tenth"]).size() == 2).all()
    final = rows[Arms].query("stage == 'final'")
    assert (final.groupby(["num_half_steps", "steps", "rate"]).size() == 2).all()
    assert sorted(final["steps"].unique()) == [2, 6]
    assert rows[Arms]["chosen"].all()  # one rate at this tier


def test_the_rate_is_the_best_of_a_run_off_among_the_best_of_the_search():
    sized = replace(LearnedCouplings.at("tiny"), rates=(1e-3, 1e-2, 1.0), finalists=2, steps=3)
    condition = {"target": "crossed", "normaliser": "softmax"}
    table = sized.run(condition, seed=0, device="cpu", dtype=torch.float32)
    means = table.groupby(["stage", "rate"])["validation"].mean()
    assert set(means["run-off"].index) == set(means["search"].nsmallest(2).index)
    assert table.query("stage == 'final'")["rate"].unique().tolist() == [means["run-off"].idxmin()]


def test_operations_are_those_that_torch_counts():
    """Matrix products by torch's own counter; half-steps are five for each score and head."""
    for depth, width, tokens in ((1, 8, 5), (2, 32, 32)):
        nets = [SinkhornTransformer(3, 2, num_half_steps=num, width=width, depth=depth) for num in (1, 4 + 1)]
        with FlopCounterMode(display=False) as counter:
            nets[0](torch.zeros(1, 1, tokens, 3))
        softmax, five = (net.operations(tokens) for net in nets)
        steps = 5 * 2 * depth * tokens**2
        assert softmax == counter.get_total_flops() + steps
        assert five == softmax + 4 * steps
    with pytest.raises(ValueError, match="give num_half_steps"):
        SinkhornTransformer(3, 2, num_half_steps=None).operations(4)


def relations(values: dict[str, float], falls: dict[int, float] | None = None) -> pd.DataFrame:
    """Rows of LearnedCouplings in which each normaliser has one distance, and one share of mass in wrong columns; after
    the tenths of ``falls`` the loss of one arm is lower by so much."""
    arms = [(target, name) for target in ("comonotone", "crossed") for name in values]
    cells = [
        {"target": target, "normaliser": name, "stage": stage, "n": n, "model": m}
        | {"ratio": values[name] + shift + 0.001 * m, "missed": values[name] / 2 + 0.001 * m}
        for stage, n, shift in (("final", 64, 0.0), ("final", 8, 0.8), ("search", np.nan, 0.0))
        for target, name in arms
        for m in range(8)
    ]
    for target, name in arms:
        fallen = falls if falls and (target, name) == arms[-1] else {}
        losses = 1 - np.array([fallen.get(tenth, 0.0) for tenth in range(10)]).cumsum()
        facts = {"target": target, "normaliser": name, "stage": "curve"}
        cells += [facts | {"tenth": t + 1, "loss": loss, "model": m} for t, loss in enumerate(losses) for m in range(8)]
    return pd.DataFrame(cells)


def judged(id: str, rows: pd.DataFrame) -> str:
    claim = next(each for each in claims.CLAIMS if each.id == id)
    return claim.judge(claim.measure(rows))[0]


def test_a_learned_relation_is_judged_at_the_longest_texts():
    for id in ("SK-8.f", "SK-8.g"):
        assert judged(id, relations({"sinkhorn": 0.1, "softmax": 0.2})) == "holds"
    assert judged("SK-8.f", relations({"sinkhorn": 0.2, "softmax": 0.1})) == "fails"
    assert judged("SK-8.g", relations({"sinkhorn": 0.1, "softmax": 0.01})) == "fails"


@pytest.mark.parametrize("id", [claim.id for claim in claims.CLAIMS if claim.id in ("SK-8.f", "SK-8.g")])
@pytest.mark.parametrize("tenth", [4, 9])
def test_a_relation_whose_loss_still_falls_is_not_judged(id, tenth):
    """At the full rate, or at the end, in one arm alone; what falls before that, or by less, decides nothing."""
    values = {"sinkhorn": 0.1, "softmax": 0.2}
    with pytest.raises(ValueError, match=r"crossed, softmax: a tenth of the steps takes 0.030 nats"):
        judged(id, relations(values, {tenth: 0.03}))
    assert judged(id, relations(values, {3: 0.5, 6: 0.5, tenth: 0.01})) == "holds"


def timed(gain: dict[int, float], seconds: dict[int, float], models: int = 8) -> pd.DataFrame:
    """Rows of EqualSeconds: arms of 1, 3 and 5 half-steps with known accuracies and seconds of the whole run; half-way
    and at a rate that was not chosen the seconds say nothing."""
    cells = []
    for arm, each in gain.items():
        facts = {"num_half_steps": arm, "placebo": False, "steps": 600, "task": "matching"}
        noise = np.random.default_rng(arm).normal(scale=0.001, size=models)
        for m in range(models):
            mine = facts | {"model": m, "chosen": True}
            cells.append(mine | {"stage": "final", "accuracy": 0.8 + 0.01 * m + each + noise[m]})
            cells.append(mine | {"stage": "curve", "step": 600, "seconds": 9.0 * (arm + 1), "chosen": False})
            cells += [mine | {"stage": "curve", "step": s, "seconds": s / 600 * seconds[arm]} for s in (300, 600)]
    return pd.DataFrame(cells)


EVEN = {1: 20.0, 3: 19.0, 5: 20.5}


def test_at_equal_seconds_the_gain_is_paired_and_the_lower_arm_decides():
    table = timed({1: 0.0, 3: 0.05, 5: 0.02}, EVEN)
    assert claims.whole_seconds(table).to_dict() == EVEN
    found = claims.gain_at_equal_seconds(table)
    assert found.value == pytest.approx(0.02, abs=2e-3)
    assert found.high - found.low < 0.02  # pairing takes the spread between models away
    assert judged("SK-18.e", table) == "holds"


@pytest.mark.parametrize(("arm", "seconds"), [(1, 19.0), (3, 22.0), (5, 22.0)])
def test_fewer_seconds_of_softmax_decide_nothing(arm, seconds):
    with pytest.raises(ValueError, match="seconds"):
        claims.gain_at_equal_seconds(timed({1: 0.0, 3: 0.0, 5: 0.0}, EVEN | {arm: seconds}))


def test_arms_at_equal_seconds_have_steps_and_draws_of_their_own(rows):
    table = rows[EqualSeconds]
    assert table.groupby("num_half_steps")["steps"].first().to_dict() == {1: 4, 3: 2, 5: 2}
    assert (claims.whole_seconds(table) > 0).all()
    assert [each["steps"] for each in EqualSeconds.at("cpu").conditions()] == [1140, 690, 600]
    first = rows[Arms].query("stage == 'curve' and num_half_steps == 5 and step == 1")["loss"]
    assert not np.isin(table.query("stage == 'curve' and step == 1")["loss"], first).any()
