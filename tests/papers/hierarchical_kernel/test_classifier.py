"""The small transformer with its choice of attention: causality, padding, an independent twin, shared weights."""

import pytest
import torch
from random_tensors import F64, TOLERANCE, dependence, shaken
from torch.nn.functional import layer_norm, scaled_dot_product_attention

from derived.lab.rng import stream
from derived.papers.hierarchical_kernel.model.classifier import ATTENTIONS, SequenceClassifier

SMALL = {"vocabulary": 16, "classes": 10, "max_length": 20, "width": 8, "heads": 2, "num_networks": 2}


def tokens(T: int = 17, batch: int = 3) -> torch.Tensor:
    return torch.randint(1, 16, (2, batch, T), generator=stream(0, "tokens", T))


@pytest.mark.parametrize("kind", ATTENTIONS)
def test_transformer_is_causal_unless_it_pools_blocks(kind):
    """`hkt-leak` through the whole model: embeddings of later tokens move the stream only with block pooling."""
    model = shaken(SequenceClassifier(attention=kind, **SMALL, **F64))
    h = model.embed(tokens(12, 1))[:1].detach()
    solo = SequenceClassifier(attention=kind, **(SMALL | {"num_networks": 1}), **F64)
    with torch.no_grad():
        for mine, theirs in zip(solo.parameters(), model.parameters(), strict=True):
            mine.copy_(theirs[:1])
    leak = float(dependence(lambda z: solo.stream(z[None, None])[0, 0], h[0, 0]).triu(1).max())
    assert leak > 1e-3 if kind == "hkt-block" else leak == 0


@pytest.mark.parametrize("kind", ATTENTIONS)
@pytest.mark.parametrize("read_out", ["mean", "every"])
def test_transformer_ignores_padding(kind, read_out):
    model, s = SequenceClassifier(attention=kind, read_out=read_out, **SMALL, **F64), tokens()
    n = torch.tensor([[9, 17, 8], [16, 12, 17]])
    s = s * (torch.arange(17) < n.unsqueeze(-1))
    found = model(s, n)
    assert found.shape == ((2, 3, 10) if read_out == "mean" else (2, 3, 17, 10))
    if kind != "hkt-block":
        short = model(s[:, 2:, :12], n[:, 2:].clamp(max=12))
        whole = model(
            torch.cat([s[:, 2:, :12], torch.zeros(2, 1, 8, dtype=torch.long)], dim=-1), n[:, 2:].clamp(max=12)
        )
        torch.testing.assert_close(short, whole if read_out == "mean" else whole[:, :, :12], rtol=0, atol=TOLERANCE)
    if read_out == "mean":
        every = SequenceClassifier(attention=kind, read_out="every", **SMALL, **F64)(s, n)
        for r in range(2):
            for b in range(3):
                mean = every[r, b, : n[r, b]].mean(dim=0)
                torch.testing.assert_close(found[r, b], mean, rtol=0, atol=TOLERANCE)


def test_transformer_against_an_independent_implementation():
    model = SequenceClassifier(attention="plain", depth=2, **SMALL, **F64)
    s, n = tokens(6, 1), torch.full((2, 1), 6)
    for r in range(2):
        h = model.E[r][s[r, 0]] + model.P[r, :6]
        for block in model.blocks:
            x, heads, W = layer_norm(h, (8,)), [], block.attention
            for part in (slice(0, 4), slice(4, 8)):
                q, k, v = (x @ M[r, part].T for M in (W.W_Q, W.W_K, W.W_V))
                heads.append(scaled_dot_product_attention(q, k, v, is_causal=True))
            h = h + torch.cat(heads, dim=-1) @ W.W_O[r].T
            h = h + torch.nn.functional.gelu(layer_norm(h, (8,)) @ block.W_1[r].T) @ block.W_2[r].T
        logits = layer_norm(h, (8,)).mean(dim=0) @ model.W[r].T
        torch.testing.assert_close(model(s, n)[r, 0], logits, rtol=0, atol=TOLERANCE)


def test_variants_share_what_they_have_in_common():
    """Equal seeds: conv-qk starts as plain, hkt as hkt-average; counts of parameters differ as they must."""
    models = {kind: SequenceClassifier(attention=kind, seed=4, **SMALL, **F64) for kind in ATTENTIONS}
    s, n = tokens(), torch.full((2, 3), 17)
    found = {kind: model(s, n) for kind, model in models.items()}
    torch.testing.assert_close(found["conv-qk"], found["plain"], rtol=0, atol=TOLERANCE)
    torch.testing.assert_close(found["hkt"], found["hkt-average"], rtol=0, atol=TOLERANCE)
    torch.testing.assert_close(found["hkt"], found["hkt-fixed"], rtol=0, atol=TOLERANCE)
    for kind, trains in (("hkt", True), ("hkt-fixed", False)):
        assert [block.attention.scores.a.requires_grad for block in models[kind].blocks] == [trains, trains]
    assert float((found["hkt"] - found["plain"]).detach().abs().max()) > 1e-3
    extra = {kind: models[kind].num_parameters() - models["plain"].num_parameters() for kind in ATTENTIONS}
    square, a = 2 * 8 * 8, 2 * 2 * 3  # of both blocks
    assert extra == {
        "plain": 0,
        "wide": 4 * square,
        "conv-qk": 4 * square,
        "hkt": 8 * square + a,
        "hkt-average": 4 * square + a,
        "hkt-block": 4 * square + a,
        "hkt-every": 8 * square + a,
        "hkt-fixed": 8 * square + a,
    }
    assert models["hkt"].alphas().shape == (2, 2, 2, 3)
    assert models["plain"].alphas().shape == (2, 2, 2, 1)
    shared = models["hkt"](s[:1], n[:1])  # one set of data for all networks
    torch.testing.assert_close(shared[0], found["hkt"][0], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SequenceClassifier(**SMALL | {"classes": 0}), "classes = 0"),
        (lambda: SequenceClassifier(**SMALL, attention="fast"), "attention = 'fast'"),
        (lambda: SequenceClassifier(**SMALL, read_out="first"), "read_out = 'first'"),
        (lambda: SequenceClassifier(**SMALL).embed(torch.zeros(2, 1, 21, dtype=torch.long)), "T = 21 exceeds"),
        (lambda: SequenceClassifier(**SMALL).embed(torch.zeros(3, 1, 20, dtype=torch.long)), "R = 2"),
        (lambda: SequenceClassifier(**SMALL).embed(torch.tensor([[3, -1]])), r"tokens\[0, 1\] = -1"),
        (lambda: SequenceClassifier(**SMALL)(tokens(), torch.zeros(2, 3, dtype=torch.long)), r"lengths\[0, 0\] = 0"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_reading_the_last_token_is_reading_every_token_there():
    tokens, lengths = torch.randint(1, 5, (2, 3, 8), generator=stream(4, "last")), torch.tensor([[8, 5, 1], [2, 8, 3]])
    sizes = {"vocabulary": 5, "classes": 3, "max_length": 8, "width": 8, "num_networks": 2}
    last, every = (SequenceClassifier(**sizes, read_out=each)(tokens, lengths) for each in ("last", "every"))
    for r in range(2):
        for item in range(3):
            assert torch.allclose(last[r, item], every[r, item, lengths[r, item] - 1], atol=1e-6)
