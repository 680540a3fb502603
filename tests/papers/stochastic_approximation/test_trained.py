"""Topic trained: Bayes mixtures, the small transformer, and what it is trained on."""

import itertools
import math

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from derived.lab.nets import layer_norm, merge_heads, split_heads
from derived.lab.rng import stream
from derived.papers.stochastic_approximation import TinyAttention, bayes_predictive, trained
from derived.papers.stochastic_approximation.data import multi_stream
from derived.papers.stochastic_approximation.trained import CLAIMS, COINS, Bernoulli

EXPERIMENTS = (Bernoulli,)


@pytest.mark.parametrize("biases", [(0.2, 0.8), (0.5, 0.9, 0.0)])
@pytest.mark.parametrize("length", [1, 5])
def test_bayes_is_the_ratio_of_probabilities_of_texts(biases, length):
    """Slow twin: P(y_0..y_t) by enumeration of the coins; a coin that cannot make a token is ruled out by it; and the
    probabilities of all texts sum to one."""
    weights, total = tuple([1 / len(biases)] * len(biases)), 0.0

    def probability(part: tuple[int, ...]) -> float:
        return sum(w * math.prod(p if y else 1 - p for y in part) for p, w in zip(biases, weights, strict=True))

    for text in itertools.product(range(2), repeat=length):
        found = bayes_predictive(torch.tensor(text), biases, weights)
        for t in range(length):
            assert abs(found[t, text[t]] - probability(text[: t + 1]) / probability(text[:t])) <= 1e-13
        total += probability(text)
    assert abs(total - 1) <= 1e-12


def test_a_long_text_leaves_the_distribution_of_its_own_coin():
    """The posterior is taken in the log domain: 5000 likelihoods would underflow."""
    texts = multi_stream(COINS, 6, 5000, stream(0, "long"))
    found = bayes_predictive(texts.tokens, COINS.biases, COINS.weights)[..., 1]
    assert (found[:, -1] - torch.tensor(COINS.biases, dtype=torch.float64)[texts.world]).abs().max() <= 1e-12
    assert (found[:, 0] - 0.5).abs().max() <= 1e-12


def small(**facts) -> TinyAttention:
    return TinyAttention(3, 7, **{"num_networks": 2, "layers": 1, "dtype": torch.float64} | facts)


def test_a_layer_sees_a_bag_and_not_what_it_predicts():
    """A permutation of the tokens before the last leaves the last logits alone; a token changes no earlier logits."""
    net, tokens = small(), torch.randint(3, (2, 4, 7), generator=stream(0, "tokens"))
    order = torch.tensor([3, 1, 0, 4, 2, 5, 6])
    logits = net(tokens)
    assert (logits - net(tokens[..., order]))[:, :, 6].abs().max() <= 1e-12
    changed = tokens.clone()
    changed[:, :, 4] = (changed[:, :, 4] + 1) % 3
    moved = (net(changed) - logits).abs().amax(dim=(0, 1, 3))
    assert (moved[:5] == 0).all()
    assert (moved[5:] > 0).all()


def test_the_network_is_written_out():
    """Slow twin: torch's own attention, one network and one text at a time."""
    net, tokens = small(), torch.randint(3, (2, 3, 7), generator=stream(0, "tokens"))
    w = net.layers[0]
    for r in range(2):
        for text, logits in zip(tokens[r], net(tokens)[r], strict=True):
            x = net.embedding[r][:, [3, *text[:-1].tolist()]].mT
            inner = layer_norm(x)
            q, k, v = (split_heads(inner @ w[name][r].mT, 2) for name in ("query", "key", "value"))
            mask = torch.triu(torch.full((7, 7), -math.inf, dtype=torch.float64), diagonal=1)
            x = x + merge_heads(scaled_dot_product_attention(q, k, v, attn_mask=mask)) @ w["out"][r].mT
            hidden = torch.relu(layer_norm(x) @ w["up"][r].mT + w["up_bias"][r])
            x = x + hidden @ w["down"][r].mT
            expected = layer_norm(x) @ net.readout[r].mT + net.readout_bias[r]
            assert (logits - expected).abs().max() <= 1e-12


def test_copies_start_alike_and_networks_do_not_depend_on_their_company():
    net = small(copies=3)
    tokens = torch.randint(3, (1, 2, 7), generator=stream(0, "tokens")).expand(6, -1, -1)
    logits = net(tokens)
    assert torch.allclose(logits[:2], logits[2:4], atol=1e-13)
    assert torch.allclose(logits[:2], small()(tokens[:2]), atol=1e-13)
    assert not torch.allclose(logits[0], logits[1])


def test_a_network_refuses():
    with pytest.raises(ValueError, match="8 tokens, but the context is 7"):
        small()(torch.zeros(2, 1, 8, dtype=torch.long))
    for bad, words in (({"layers": 0}, "layers = 0"), ({"width": 0}, "width = 0"), ({"heads": 3}, "3 heads")):
        with pytest.raises(ValueError, match=words):
            small(**bad)


def test_models_side_by_side_learn_as_if_alone():
    """Two rates in one batch against each of them alone."""
    texts = torch.randint(2, (2, 4, 5), generator=stream(0, "texts"))

    def trained(*rates: float) -> torch.Tensor:
        size = Bernoulli(models=2, rates=rates, steps=20)
        net = TinyAttention(2, 5, num_networks=2, copies=len(rates), dtype=torch.float64)
        size.train(net, lambda step: texts)
        return net.readout.detach().unflatten(0, (len(rates), 2))

    both = trained(1e-2, 4e-2)
    for found, rate in zip(both, (1e-2, 4e-2), strict=True):
        assert torch.allclose(found, trained(rate)[0], atol=1e-12)


def test_the_rate_warms_up_and_ends_near_zero(monkeypatch):
    monkeypatch.setattr(trained.training, "train", lambda loss, optimiser, *, steps, rate: [*map(rate, range(steps))])
    found = Bernoulli(models=1, rates=(0.1, 0.4), steps=100).train(small(), None)
    assert [found[0], found[50]] == pytest.approx([0.04, 0.2])
    assert found[9] == pytest.approx(max(found)) == pytest.approx(0.4, rel=0.03)
    assert 0 < found[99] < 2e-4


def test_arms_share_starts_and_tests_and_one_rate_is_chosen(rows):
    table = rows[Bernoulli]
    assert table.groupby("arm")["chosen"].sum().tolist() == [2, 2]
    for _, arm in table.groupby("arm"):
        least = arm.groupby("rate")["validation"].mean().idxmin()
        assert arm[arm["chosen"]]["rate"].unique().tolist() == [least]
    bayes = table.pivot_table(index="model", columns=["arm", "rate"], values="bayes")
    assert (bayes.nunique(axis=1) == 1).all()
    assert table["parameters"].nunique() == 1
    assert (table["excess"] > -1e-3).all()  # a mean of KL divergences, but for rounding in float32


def test_an_arm_is_validated_by_the_distribution_that_it_hears():
    small_arm, tokens = Bernoulli(models=2), torch.randint(2, (2, 3, 5), generator=stream(0, "heard"))
    one = small_arm.heard("one", tokens)
    for model, law in enumerate(((0.8, 0.2), (0.2, 0.8))):
        assert (one[model] - torch.tensor(law, dtype=torch.float64)).abs().max() <= 1e-15
    many = bayes_predictive(tokens, COINS.biases, COINS.weights)
    assert torch.equal(small_arm.heard("many", tokens), many)


def test_own_and_other_of_networks_that_know_the_first_coin():
    """All logits are ln .8 and ln .2: right for model 0; the other coin costs KL less what Bayes itself pays there."""
    small_arm = Bernoulli(models=2, rates=(0.01,), test=300)
    net = TinyAttention(2, small_arm.context, num_networks=2)
    with torch.no_grad():
        net.readout.zero_()
        net.readout_bias.copy_(torch.tensor([0.8, 0.2]).log())
    found = small_arm.tested(net, 0)
    kl = 0.6 * math.log(4)
    for name, expected in (("own", (0.0, kl)), ("other", (kl, 0.0))):
        paid = 0.0 if name == "own" else 0.01  # the mixture pays ln 2 for 32 tokens more than a coin that is known
        for model in range(2):
            gap = expected[model] - found[name][0, model].item()
            assert paid - 1e-6 <= gap <= 4 * paid + 1e-6


def test_a_single_stream_is_of_one_coin():
    small_arm = Bernoulli(models=3, context=50)
    for model in range(3):
        texts = small_arm.texts("one", model, 40, stream(0, model))
        assert abs(texts.tokens.double().mean() - (0.2, 0.8)[model % 2]) < 0.05
    many = small_arm.texts("many", 0, 40, stream(0, "many"))
    assert set(many.world.tolist()) == {0, 1}


def test_an_even_guess_fails_both_claims(rows):
    """Its excess is ln 2 less the loss of the mixture, and ln 2 less the entropy of a coin: 0.1927 nats."""
    guess = math.log(2) + 0.8 * math.log(0.8) + 0.2 * math.log(0.2)
    table = rows[Bernoulli].assign(chosen=True)
    many, one = CLAIMS
    assert one.control(table).value == pytest.approx(guess)
    assert many.control(table).value == pytest.approx(math.log(2) - table.query("arm == 'many'")["bayes"].mean())
    assert many.control(table).value > 0.05


def test_a_missing_number_decides_nothing(rows, undecided_without):
    undecided_without(rows)
