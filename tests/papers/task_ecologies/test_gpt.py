"""The ensemble of microgpt models: a plain twin, its gradients, and what outputs are compared by."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from derived.lab.nets import Draws
from derived.lab.rng import stream
from derived.papers.task_ecologies.fits import falling, fit, fit_texts
from derived.papers.task_ecologies.model import gpt

SMALL = {"vocabulary": 5, "width": 8, "heads": 2, "block": 6}


def models(K: int = 3, seed: int = 0, **facts) -> gpt.MicroGPT:
    return gpt.MicroGPT(gpt.GPTSize(**{**SMALL, **facts}), Draws(num_networks=K, seed=seed, dtype=torch.float64))


def tokens(*shape: int, size: int = 5) -> torch.Tensor:
    return torch.randint(size, shape, generator=stream(0, "tokens"))


def alone(model: gpt.MicroGPT, r: int, text: list[int]) -> torch.Tensor:
    """One model, one text, one token after the other, as the original script reads it."""
    w = {name: weight[r] for name, weight in model.weights.items()}
    size, norm, logits = model.size, lambda x: x / (x.square().mean() + 1e-5).sqrt(), []
    keys, values = ([[] for _ in range(size.depth)] for _ in range(2))
    for place, token in enumerate(text):
        x = norm(w["token"][token] + w["position"][place])
        for i in range(size.depth):
            q, k, v = (w[f"qkv{i}"] @ norm(x)).chunk(3)
            keys[i].append(k)
            values[i].append(v)
            heads = []
            for head in range(size.heads):
                part = slice(head * size.width // size.heads, (head + 1) * size.width // size.heads)
                scores = torch.stack([q[part] @ each[part] for each in keys[i]]) / (size.width / size.heads) ** 0.5
                shares = scores.exp() / scores.exp().sum()
                heads.append(sum(a * each[part] for a, each in zip(shares, values[i], strict=True)))
            x = x + w[f"out{i}"] @ torch.cat(heads)
            up, down = w[f"up{i}"], w[f"down{i}"]
            x = x + down @ (up @ norm(x)).clamp(min=0)
        logits.append(w["output"] @ x)
    return torch.stack(logits)


@pytest.mark.parametrize("facts", [{}, {"depth": 0}, {"depth": 1, "heads": 1}, {"heads": 4}])
def test_every_model_of_the_ensemble_is_the_plain_model(facts):
    model, ids = models(init_std=0.5, **facts), tokens(3, 2, 6)
    found = model(ids)
    for r in range(3):
        for b in range(2):
            assert torch.allclose(found[r, b], alone(model, r, ids[r, b].tolist()), rtol=0, atol=1e-12)


def test_every_gradient_is_that_of_the_plain_model_also_from_texts_that_are_not_contiguous():
    """By autograd through a loop over tokens and heads; the model reads its own texts through a transposed view."""
    model, ids = models(K=2, init_std=0.5), tokens(5, 2).T  # two texts of five tokens, not contiguous
    assert not ids.is_contiguous()
    gpt.text_losses(model(ids[:, None, :-1]), ids[:, None, 1:]).sum().backward()
    found = {name: weight.grad.clone() for name, weight in model.weights.items()}
    model.zero_grad()
    for r in range(2):
        logits = alone(model, r, ids[r, :-1].tolist())
        torch.nn.functional.cross_entropy(logits, ids[r, 1:], reduction="sum").backward()
    for name, weight in model.weights.items():
        assert torch.allclose(weight.grad, found[name], rtol=0, atol=1e-11), name


def test_training_side_by_side_is_training_one_after_the_other():
    texts = tokens(5, 3, 7)
    together, rate = models(K=3), falling(0.02, 5)
    losses = fit_texts(together, texts, rate=rate)
    for r in range(3):
        model = models(K=3)
        with torch.no_grad():
            kept = {name: weight[r : r + 1].clone() for name, weight in model.weights.items()}
        single = models(K=1)
        with torch.no_grad():
            for name, weight in single.weights.items():
                weight.copy_(kept[name])
        assert torch.allclose(fit_texts(single, texts[:, r : r + 1], rate=rate)[0], losses[r], rtol=0, atol=1e-12)
    assert (losses[:, -1] != losses[:, 0]).all()


def test_weight_decay_shrinks_what_no_text_uses():
    """A token that is never read keeps its embedding without decay, and shrinks by the sum of the rates with it."""
    kept = {}
    for decay in (0.0, 0.1):
        model, texts = models(K=1), torch.zeros(4, 1, 5, dtype=torch.long)
        loss = lambda step: gpt.text_losses(model(texts[step][..., :-1]), texts[step][..., 1:]).mean(dim=(1, 2))  # noqa: B023, E731
        before = model.weights["token"][0, 3].clone()
        fit(model, loss, steps=4, rate=falling(0.02, 4), decay=decay)
        kept[decay] = (model.weights["token"][0, 3] / before).detach().numpy()
    assert kept[0.0] == pytest.approx(1)
    assert kept[0.1] == pytest.approx(np.prod([1 - 0.1 * 0.02 * (1 - step / 4) for step in range(4)]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gpt.GPTSize(width=10, heads=4), "give a width that the heads divide"),
        (lambda: gpt.GPTSize(depth=-1), "depth = -1"),
        (lambda: models()(tokens(1, 7)), "T <= 6"),
        (lambda: models(K=3)(tokens(2, 1, 4)), r"or \(3, B, T\)"),
        (lambda: models()(torch.tensor([[4, 5]])), r"ids\[0, 1\] = 5"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_divergence_is_scipys_squared_distance():
    laws = torch.rand(4, 6, generator=stream(0, "laws"), dtype=torch.float64)
    laws[0, :3] = 0  # a distribution without some tokens
    laws = laws / laws.sum(dim=-1, keepdim=True)
    found = gpt.mean_divergence(laws)
    for i in range(4):
        for j in range(4):
            assert found[i, j].item() == pytest.approx(jensenshannon(laws[i], laws[j]) ** 2, abs=1e-14)


def test_behavioural_distance_is_the_mean_over_prefix_lengths():
    laws = torch.rand(2, 3, 4, 5, generator=stream(0, "averages"), dtype=torch.float64)  # models, languages, lengths
    laws = laws / laws.sum(dim=-1, keepdim=True)
    found = gpt.behavioural_distance(laws)
    one = np.mean([jensenshannon(laws[1, 0, r], laws[1, 2, r]) ** 2 for r in range(4)])
    assert found[1, 0, 2].item() == pytest.approx(one, abs=1e-14)
