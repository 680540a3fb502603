"""Topic real: keys and matrices of a trained model, on small models with a known answer and on the model itself."""

import math
from itertools import product

import pandas as pd
import pytest
import torch
from here import needs
from torch import nn
from torch.nn.functional import cosine_similarity, cross_entropy
from transformers import BertConfig, BertModel, Gemma3ForCausalLM, Gemma3TextConfig, Qwen3Config, Qwen3Model

from derived.lab.experiment import run_experiment
from derived.lab.real import texts
from derived.lab.rng import stream
from derived.papers.in_place_ttt.model.convert import memories
from derived.papers.in_place_ttt.model.forms import depthwise_target
from derived.papers.in_place_ttt.model.module import InPlaceTTTMLP
from derived.papers.in_place_ttt.real import (
    CLAIMS,
    GatedKeys,
    NewParts,
    RawWrites,
    Rewritten,
    TrainedKeys,
    cosines,
    cost,
    down_projections,
    fresh_on_other_texts,
    gain,
    growth,
    halfway,
    keys,
    keys_of,
    losses,
    moved_by_another_draw,
    moved_by_training,
    own_size,
    split,
)


def test_cosines_are_those_of_pairs_of_unlike_tokens():
    own, ids = torch.randn(9, 5, generator=stream(0, "keys")).double() + 1, torch.tensor([0, 1, 2] * 3)
    pairs = [(i, j) for i in range(9) for j in range(9) if ids[i] != ids[j]]
    for found, each in zip(cosines(own, ids), (own, own - own.mean(dim=0)), strict=True):
        assert found == pytest.approx(
            sum(float(cosine_similarity(each[i], each[j], dim=0)) for i, j in pairs) / len(pairs)
        )


def test_the_matrices_are_the_last_ones_of_the_mlps_and_their_keys_what_they_multiply():
    sizes = {"vocab_size": 9, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2}
    bert = BertModel(BertConfig(**sizes, num_attention_heads=2)).eval()
    qwen = Qwen3Model(Qwen3Config(**sizes, num_attention_heads=2, num_key_value_heads=1, head_dim=4)).eval()
    for model in (bert, qwen):
        layers = down_projections(model)
        assert [tuple(each.weight.shape) for each in layers] == [(8, 12)] * 2
        with torch.no_grad(), keys_of(layers) as seen:
            model(torch.arange(5).unsqueeze(0))
            model(torch.arange(3).unsqueeze(0))
        assert [[tuple(key.shape) for key in each] for each in seen] == [[(1, 5, 12)] * 2, [(1, 3, 12)] * 2]
        assert not layers[0]._forward_pre_hooks


def test_a_write_is_counted_as_theory_says():
    weight = 0.02 * torch.randn(300, 1000, generator=stream(0, "weight"))
    weight[0] = 0
    std, changed, by_more, theory, zero = TrainedKeys(tau=1e-3).written(weight, stream(0, "write"))
    assert std == pytest.approx(0.02, rel=0.01)
    assert changed == pytest.approx(theory, abs=4 * math.sqrt(theory / 300_000))
    assert by_more > 0.9
    assert zero == pytest.approx(1 / 300)


def test_any_write_changes_a_weight_that_is_zero():
    weight = torch.zeros(20, 50).bfloat16()
    write = 1e-5 / weight.numel() ** 0.5 * torch.randn(20, 50, generator=stream(0, "write"), dtype=torch.float64)
    assert ((weight.double() + write).bfloat16() != weight).all()


def gated(d: int = 5, h: int = 7) -> nn.Module:
    mlp = nn.Module()
    mlp.gate_proj, mlp.up_proj, mlp.down_proj = nn.Linear(d, h), nn.Linear(d, h), nn.Linear(h, d)
    mlp.act_fn = nn.SiLU()
    return mlp.requires_grad_(False)


@torch.no_grad()
def test_an_arm_writes_what_it_says():
    """Slow twin: each token of an earlier chunk adds the input at the next one of its chunk under its own key."""
    experiment = RawWrites(length=12, chunk=4, block=4)
    layer = InPlaceTTTMLP.from_mlp(gated(), chunk=4, projection=False)
    x = torch.randn(1, 12, 5, generator=stream(0, "inputs"))
    keys = layer.act_fn(layer.gate_proj(x)) * layer.up_proj(x)

    def added(arm: str) -> torch.Tensor:
        experiment.prepare(layer, arm, 0.3, stream(0, "order"))
        return layer(x) - layer.down_proj(keys)

    assert added("start").abs().max() == 0
    for arm in ("raw", "shuffled"):
        found, sources = added(arm)[0], x[0, layer.order]
        for n in range(12):
            W = torch.zeros(5, 7)
            for t in range(n // 4 * 4):
                if (t + 1) % 4:
                    W += 0.3 * torch.outer(sources[t + 1], keys[0, t])
            assert torch.allclose(found[n], W @ keys[0, n], atol=1e-5)
        assert torch.allclose(layer.ratio, found.norm(dim=-1) / layer.down_proj(keys)[0].norm(dim=-1), atol=1e-5)
        assert (layer.order // 4 == torch.arange(12) // 4).all()
        assert torch.equal(layer.order.sort().values, torch.arange(12))
        assert torch.equal(layer.order, torch.arange(12)) == (arm == "raw")
    assert 0 < added("clipped").norm() < 1e-3
    assert layer.tau == experiment.tau


@needs("austen", "stdlib")
def test_pieces_are_of_different_speeches():
    pieces = RawWrites(pieces=16, length=64).read("speeches", 0)
    assert {len(piece) for piece in pieces} == {8 * 64}
    assert len(set(pieces)) == 16
    whole = RawWrites(length=64).long_speeches(8 * 64)
    assert len({next(i for i, text in enumerate(whole) if piece in text) for piece in pieces}) == 16


@needs("gemma", "austen", "stdlib")
def test_rows_of_a_language_model():
    rows = run_experiment(RawWrites.at("tiny"), seed=0, device="cpu").assign(tier="ci", recorded=False)
    assert rows.groupby(["texts", "arm", "replicate"]).ngroups == 2 * 4 * 2
    assert (rows[rows["arm"] == "start"]["moved"] == 0).all()
    assert rows["base"].between(2, 6).all()  # nats per token of English text after little context
    by_id = {claim.id: claim for claim in CLAIMS}
    for name in ("IPT-17.d", "IPT-17.e"):
        assert math.isfinite(by_id[name].measure(rows).value)
        assert math.isfinite(by_id[name].control(rows).value)


def test_a_write_is_judged_at_the_size_of_what_the_layer_gives():
    """Not at the step whose sum of ratios is nearest to 1: 0.4 is a factor of 2.5 away, and 1.8 one of 1.8."""
    sizes = {1e-6: (0.01, 0.04), 1e-5: (0.2, 0.4), 3e-5: (0.7, 1.8), 0.3: (2.0, 2e4)}  # cost, memory over the layer
    kinds = {"novels": 0.0, "speeches": 0.1}
    rows = pd.DataFrame([
        {"texts": kind, "arm": "raw", "step": step, "loss": 3 + more + harm + r / 99, "base": 3, "ratio": ratio}
        for (kind, more), (step, (harm, ratio)), r in product(kinds.items(), sizes.items(), range(4))
    ])  # fmt: skip
    assert own_size(rows) == 3e-5
    assert cost("raw")(rows).value == pytest.approx(0.7 + 1.5 / 99)
    assert cost("raw", lambda rows: rows["step"].max())(rows).value == pytest.approx(2 + 1.5 / 99)


@torch.no_grad()
def test_a_memory_holds_what_its_arm_says_was_written():
    """Slow twin: each token of an earlier chunk adds its value, or the other text's, or another one of its chunk."""
    layer = InPlaceTTTMLP.from_mlp(gated(), chunk=4, lr=0.3)
    layer.ttt_kernel.normal_(generator=stream(0, "taps"))
    x = torch.randn(2, 12, 5, generator=stream(0, "inputs"))
    keys = layer.act_fn(layer.gate_proj(x)) * layer.up_proj(x)
    values, usual = depthwise_target(x, layer.ttt_kernel, layer.ttt_projection, chunk=4), layer(x)
    layer.__class__, layer.order = Rewritten, torch.tensor([2, 0, 3, 1, 5, 7, 4, 6, 8, 9, 10, 11])
    found = {}
    for layer.arm in ("own", "other", "shuffled"):
        found[layer.arm] = layer(x)
        for b, n in ((0, 3), (0, 5), (1, 11)):
            text, W = b if layer.arm != "other" else 1 - b, layer.down_proj.weight.clone()
            for t in range(n // 4 * 4):
                W += 0.3 * torch.outer(values[text, layer.order[t] if layer.arm == "shuffled" else t], keys[text, t])
            assert torch.allclose(found[layer.arm][b, n], W @ keys[b, n] + layer.down_proj.bias, atol=1e-5)
    assert torch.allclose(found["own"], usual, atol=1e-5)
    assert min((found[arm] - usual)[:, 4:].abs().max() for arm in ("other", "shuffled")) > 1e-3


def small_gemma() -> Gemma3ForCausalLM:
    sizes = {"vocab_size": 23, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 4, "head_dim": 4}
    kinds = ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "query_pre_attn_scalar": 4, "sliding_window": 5}
    model, draw = Gemma3ForCausalLM(Gemma3TextConfig(**sizes, **heads, layer_types=kinds)).eval(), stream(0, "weights")
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.5 if weight.ndim > 1 else 0, generator=draw)
    return model


@torch.no_grad()
def test_two_parts_of_a_model_are_the_model():
    whole, places = small_gemma(), torch.tensor([3, 9, 16])
    below, above = split(whole, 1)
    ids = torch.randint(23, (2, 17), generator=stream(0, "ids"))
    states = below(input_ids=ids, use_cache=False).last_hidden_state
    logits = whole(ids, use_cache=False).logits
    assert torch.allclose(above(inputs_embeds=states, use_cache=False).logits, logits, atol=1e-5)
    each = cross_entropy(logits[:, places - 1].mT, ids[:, places], reduction="none")
    assert torch.allclose(losses(above, halfway(below, ids), ids, places), each, atol=0.1)  # products in bf16
    assert whole.config.num_hidden_layers == 4
    assert len(whole.model.layers) == 4


def test_training_moves_the_new_parts_alone_and_lowers_their_loss():
    experiment = NewParts(layers=(1, 2), chunk=4, rate=0.05, updates=60, length=24, read=20, contexts=(8,), block=4)
    below, above = split(small_gemma(), 1)
    ids = torch.randint(3, (2, 24), generator=stream(0, "ids"))
    before = {name: weight.clone() for name, weight in above.named_parameters()}
    states = halfway(below, ids)
    model = experiment.fitted(above, 0.1, states, ids, 0)
    after = dict(model.named_parameters())
    assert {name for name in after if name not in before} == {
        f"model.layers.{i}.mlp.ttt_{part}" for i in (0, 1) for part in ("kernel", "projection")
    }
    assert all(torch.equal(after[name], weight) for name, weight in before.items())
    assert min(memory.ttt_kernel.abs().max() for memory in memories(model)) > 1e-3
    assert (experiment.judge(model, states, ids, (8, 16)) < experiment.judge(above, states, ids, (8, 16)) - 0.01).all()


@needs("austen", "stdlib")
def test_pieces_to_train_on_are_none_of_those_that_choose_or_judge():
    experiment = NewParts(trained=10, pieces=10, length=16, contexts=(8, 24), block=8)
    read = {which: [] for which in ("train", "valid", "novel", "speeches")}
    for which, found in read.items():
        ids = experiment.read_pieces(which, lambda text: torch.tensor([[ord(letter) for letter in text]]), 0)
        found += ["".join(chr(each) for each in piece) for piece in ids.tolist()]
    assert {which: {len(piece) for piece in found} for which, found in read.items()} == {
        "train": {16}, "valid": {16}, "novel": {32}, "speeches": {32}
    }  # fmt: skip
    novels = [*texts.austen().values()]
    parts = {"train": [each[: 9 * len(each) // 10] for each in novels[:5]], "novel": novels[5:]}
    parts |= {"valid": [each[9 * len(each) // 10 :] for each in novels[:5]]}
    for which, whole in parts.items():
        assert all(any(piece in text for text in whole) for piece in read[which])
    assert len({next(each.year for each in texts.speeches() if piece in each.text) for piece in read["speeches"]}) > 5


def judged(own: float, other: float, shuffled: float, growing: float = 0.0) -> pd.DataFrame:
    """Losses of arms, a little apart by piece, and ``growing`` lower for its own text after the longer context."""
    arms, made = {"own": own, "other": other, "shuffled": shuffled}, []
    for kind, (i, arm), r, context in product(("novel", "speeches"), enumerate(arms), range(6), (512, 2048)):
        apart = r / 9 + 1e-3 * ((r * (i + 2) + i * (context > 512)) % 5 - 2)
        loss = arms[arm] + apart - growing * (arm == "own") * (context > 512)
        made.append({"texts": kind, "arm": arm, "replicate": r, "context": context, "base": 3 + r / 9, "loss": loss})
    return pd.DataFrame(made)


def test_a_gain_is_of_the_own_text_or_it_is_none():
    claim = {each.id: each for each in CLAIMS}["IPT-17.f"]
    content, adapter, harm = judged(2.9, 2.96, 2.96), judged(2.9, 2.9, 2.9), judged(2.9, 2.9, 2.9)
    harm.loc[harm["texts"] == "speeches", "loss"] += 0.2
    assert claim.measure(content).value == pytest.approx(0.06, abs=2e-3)
    assert claim.judge(claim.measure(content))[0] == "holds"
    assert claim.judge(claim.control(content))[0] != "holds"
    assert claim.judge(claim.measure(adapter))[0] != "holds"  # as much off the loss, whoever wrote
    assert gain("own", "base")(adapter).value == pytest.approx(0.1, abs=2e-3)
    assert gain("own", "base")(harm).value == pytest.approx(-0.1, abs=2e-3)
    assert claim.judge(claim.measure(harm))[0] == "fails"


def test_a_gain_grows_only_where_the_own_text_does_better():
    claim = {each.id: each for each in CLAIMS}["IPT-17.h"]
    assert growth("own", "other")(judged(2.9, 2.9, 2.9, 0.03)).value == pytest.approx(0.03, abs=2e-3)
    assert claim.judge(claim.measure(judged(2.9, 2.9, 2.9, 0.03)))[0] == "holds"
    assert claim.judge(claim.control(judged(2.9, 2.9, 2.9, 0.03)))[0] != "holds"
    assert claim.judge(claim.measure(judged(2.8, 2.9, 2.9, -0.03)))[0] == "fails"
    whoever = judged(2.9, 2.9, 2.9)
    whoever.loc[whoever["context"] > 512, "loss"] -= 0.03  # a gain that grows, whoever wrote
    assert claim.judge(claim.measure(whoever))[0] != "holds"


@needs("gemma", "austen", "stdlib")
def test_rows_of_a_trained_memory():
    rows = run_experiment(NewParts.at("tiny"), seed=0, device="cpu").assign(tier="ci", recorded=False)
    assert "failure" not in rows
    assert rows.groupby("texts")["arm"].unique().map(list).to_dict() == {
        "novel": ["own", "other", "shuffled"], "speeches": ["own", "other", "shuffled"], "valid": ["own"]
    }  # fmt: skip
    assert len(rows) == 2 + 2 * 3 * 2 * 2
    assert rows["base"].between(2, 6).all()  # nats per token of English text after little context
    assert (rows.groupby(["texts", "replicate", "context"])["base"].nunique() == 1).all()
    assert (rows["loss"] - rows["base"]).abs().between(1e-6, 0.5).all()
    for claim in CLAIMS:
        if claim.experiment is NewParts:
            assert math.isfinite(claim.measure(rows).value)


@needs("minilm", "austen")
def test_rows_of_the_model_itself():
    rows = run_experiment(TrainedKeys.at("tiny"), seed=0, device="cpu").assign(tier="ci", recorded=False)
    assert rows.groupby(["weights", "replicate", "layer"]).ngroups == 3 * 4 * 6
    assert rows[["cosine", "centred"]].stack().between(-1, 1).all()
    trained, fresh = (rows[rows["weights"] == weights]["std"].mean() for weights in ("trained", "fresh"))
    assert trained > 1.5 * fresh  # the start of BERT is 0.02
    for claim in CLAIMS:
        if issubclass(claim.experiment, TrainedKeys):
            assert math.isfinite(claim.measure(rows).value)
            assert math.isfinite(claim.control(rows).value)
    assert GatedKeys.at("tiny").model == "gemma"


def test_the_figure_says_in_words_what_it_shows(tells):
    rows = pd.DataFrame(
        {"weights": weights, "layer": layer, "replicate": r, "cosine": cosine + layer / 10, "centred": -0.01}
        for weights, cosine in (("fresh", 0.4), ("trained", 0.1))
        for layer in (0, 1)
        for r in range(3)
    )
    words = ("before training 0.40 to 0.50", "trained 0.10 to 0.20", "mean subtracted -0.01")
    tells(keys(rows.assign(recorded=True, tier="cpu")), *words)


def test_training_is_compared_with_two_draws_of_fresh_weights_on_the_same_texts():
    cosine = {"trained": 0.3, "fresh": 0.1, "again": 0.15}
    table = pd.DataFrame(
        {"weights": weights, "replicate": r, "layer": layer, "cosine": value + 0.01 * r + 0.1 * layer}
        for weights, value in cosine.items()
        for r in range(6)
        for layer in range(2)
    )
    assert moved_by_training(1, "fresh")(table).value == pytest.approx(0.2)
    assert moved_by_training(1, "fresh", "again")(table).value == pytest.approx(0.15)
    assert moved_by_training(-1, "fresh", "again")(table).value == pytest.approx(-0.2)
    null = moved_by_another_draw(table)
    assert (null.n, null.value) == (6, pytest.approx(0.05))
    assert moved_by_another_draw(table.assign(cosine=-table["cosine"])).value == pytest.approx(0.05)
    null = fresh_on_other_texts(table)
    assert (null.n, null.value) == (3, pytest.approx(-0.01))
