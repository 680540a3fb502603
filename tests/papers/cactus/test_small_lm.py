"""The small language model: its cache, its training and its laws."""

import torch

from derived.lab.rng import stream
from derived.papers.cactus.data import language
from derived.papers.cactus.data import small_lm as training

GRAMMAR = language.Grammar()


def model(depth: int = 2, name: str = "a") -> training.LanguageModel:
    return training.LanguageModel(width=16, depth=depth, head=8, generator=stream(4, name), dtype=torch.float64)


def test_a_cached_model_says_what_it_says_without_a_cache_at_ragged_places():
    one, ids = model(), GRAMMAR.sample(3, 20, stream(5, "texts"))
    whole, cache = one(ids), one.empty_cache(3, 24)
    one(ids[:, :12], torch.zeros(3, dtype=torch.long), cache)
    start = torch.tensor([4, 9, 11])  # rolled back by different amounts
    again = torch.stack([ids[row, at : at + 5] for row, at in enumerate(start.tolist())])
    found = one(again, start, cache)
    expected = torch.stack([whole[row, at : at + 5] for row, at in enumerate(start.tolist())])
    assert torch.allclose(found, expected, rtol=0, atol=1e-12)


def test_a_model_never_looks_ahead():
    one, ids = model(), GRAMMAR.sample(2, 12, stream(6, "texts"))
    changed = ids.clone()
    changed[:, 8:] = 3
    assert torch.equal(one(ids)[:, :8], one(changed)[:, :8])


def test_training_lowers_the_loss_and_follows_its_generator():
    options = {"steps": 40, "batch_size": 8, "length": 24, "lr": 3e-3}
    first, again = (training.train(model(), GRAMMAR, generator=stream(7, "texts"), **options) for _ in range(2))
    assert first[-5:].mean() < first[:5].mean() - 0.5
    assert torch.equal(first, again)


def test_next_law_cuts_to_the_smallest_set_of_the_mass():
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log()
    assert torch.allclose(training.next_law(logits, 1.0, 0.8), torch.tensor([0.625, 0.375, 0, 0]).double(), atol=1e-6)
    assert torch.allclose(training.next_law(logits, 1.0, 0.81)[3], torch.zeros(()).double())
    assert torch.allclose(training.next_law(logits, 0.5), torch.tensor([0.25, 0.09, 0.0225, 0.0025]).double() / 0.365)
