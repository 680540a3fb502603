"""Topic streams: Bayes mixtures, the small transformer, and what it is trained on."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from derived.lab.nets import layer_norm, linear, merge_heads, split_heads
from derived.lab.rng import stream
from derived.papers.stochastic_approximation import TinyAttention, streams
from derived.papers.stochastic_approximation.data.streams import multi_stream, single_stream, switching_stream
from derived.papers.stochastic_approximation.model.chains import invariant_laws
from derived.papers.stochastic_approximation.model.predictors import bayes_predictive, component_predictives
from derived.papers.stochastic_approximation.streams import COINS, TURNS, Bernoulli, Markov, own_rates

EXPERIMENTS = (Bernoulli, Markov)
FLOAT32 = 2.0**-23


@pytest.mark.parametrize("mixture", [COINS, TURNS])
@pytest.mark.parametrize("length", [1, 4])
def test_bayes_is_the_ratio_of_probabilities_of_texts(mixture, length):
    """Slow twin: P(y_0..y_t) by enumeration of the components; and the probabilities of all texts sum to one."""
    symbols, total = len(mixture.chains[0]), 0.0
    for text in itertools.product(range(symbols), repeat=length):
        found = bayes_predictive(torch.tensor(text), mixture.matrices, mixture.weights)

        def probability(part: tuple[int, ...]) -> float:
            each = []
            for P, w in zip(mixture.matrices, mixture.weights, strict=True):
                p = w * (invariant_laws(P)[0][part[0]] if part else 1.0)
                for i, j in itertools.pairwise(part):
                    p *= P[i, j]
                each.append(p)
            return sum(each)

        for t in range(length):
            assert abs(found[t, text[t]] - probability(text[: t + 1]) / probability(text[:t])) <= 1e-13
        total += probability(text)
    assert abs(total - 1) <= 1e-12


def test_a_long_text_leaves_the_law_of_its_own_component():
    """The posterior is taken in the log domain: 5000 likelihoods would underflow."""
    texts = multi_stream(TURNS, 6, 5000, stream(0, "long"))
    laws = component_predictives(texts.tokens, TURNS.matrices)
    own = laws[texts.component, torch.arange(6)]
    found = bayes_predictive(texts.tokens, TURNS.matrices, TURNS.weights)
    assert (found[:, -1] - own[:, -1]).abs().max() <= 1e-12
    assert (found[:, 0] - 1 / 3).abs().max() <= 1e-12


def test_a_token_that_a_component_cannot_make_rules_it_out():
    """0, 0: not by the chain that always changes; what comes after is the other chain's."""
    chains = np.array([[[0.0, 1.0], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]])
    found = bayes_predictive(torch.tensor([0, 0, 1, 1]), chains, (0.5, 0.5))
    assert (found[2:] - 0.5).abs().max() <= 1e-15
    assert abs(found[1, 1] - 0.75) <= 1e-15


def test_streams_are_of_their_components():
    texts = multi_stream(COINS, 3000, 40, stream(0, "many"))
    share = texts.tokens.double().mean(dim=1)
    for k, p in enumerate((0.2, 0.8)):
        assert abs(share[texts.component == k].mean() - p) <= 4 * (p * (1 - p) / (1400 * 40)) ** 0.5
    one = single_stream(TURNS, 1, 5, 200, stream(0, "one"))
    turn = (one.tokens.flatten().diff() % 3 == 1).double().mean()  # consecutive texts: no seam between them
    assert abs(turn - 0.8) <= 4 * 0.4 / 999**0.5
    with pytest.raises(ValueError, match="component = 3; the mixture has 0 to 2"):
        single_stream(TURNS, 3, 1, 1, stream(0, "bad"))
    with pytest.raises(ValueError, match="texts = 0"):
        single_stream(COINS, 0, 0, 1, stream(0, "bad"))


def test_a_switching_stream_changes_its_component_at_its_rate():
    tokens, component = switching_stream(COINS, 20_000, 0.1, stream(0, "switch"))
    changes = component.diff().ne(0).double().mean()
    assert abs(changes - 0.05) <= 4 * (0.05 / 20_000) ** 0.5  # half of the new draws change it
    for k, p in enumerate((0.2, 0.8)):
        assert abs(tokens[component == k].double().mean() - p) <= 0.02
    with pytest.raises(ValueError, match="epsilon = 1"):
        switching_stream(COINS, 5, 1.0, stream(0, "bad"))


def small(**facts) -> TinyAttention:
    return TinyAttention(3, 7, **{"num_networks": 2, "layers": 2, "positions": True, "dtype": torch.float64} | facts)


def test_a_networks_distances_are_its_own():
    """As many texts as networks, so that a bias of the wrong axis would fit."""
    net, tokens = small(), torch.randint(3, (2, 2, 7), generator=stream(0, "two texts each"))
    with torch.no_grad():
        before = net(tokens)
        for layer in net.layers:
            layer["bias"][1] += torch.randn(layer["bias"][1].shape, generator=stream(0, "bias"), dtype=torch.float64)
        after = net(tokens)
    assert torch.equal(after[0], before[0])
    assert not torch.allclose(after[1, 0], before[1, 0])
    assert not torch.allclose(after[1, 1], before[1, 1])


def test_the_network_does_not_see_what_it_predicts():
    net, tokens = small(), torch.randint(3, (2, 4, 7), generator=stream(0, "tokens"))
    logits = net(tokens)
    changed = tokens.clone()
    changed[:, :, 4] = (changed[:, :, 4] + 1) % 3
    moved = (net(changed) - logits).abs().amax(dim=(0, 1, 3))
    assert (moved[:5] == 0).all()
    assert (moved[5:] > 0).all()


def test_without_positions_a_layer_sees_a_bag():
    """One layer: a permutation of the tokens before the last leaves the last logits alone; a bias of distances not."""
    tokens = torch.randint(3, (2, 4, 7), generator=stream(0, "tokens"))
    order = torch.tensor([3, 1, 0, 4, 2, 5, 6])
    bag, placed = small(layers=1, positions=False), small(layers=1)
    with torch.no_grad():
        placed.layers[0]["bias"].normal_(generator=stream(0, "bias"))
    assert (bag(tokens) - bag(tokens[..., order]))[:, :, 6].abs().max() <= 1e-12
    assert (placed(tokens) - placed(tokens[..., order]))[:, :, 6].abs().max() > 1e-3


def test_the_network_is_written_out():
    """Slow twin: torch's own attention, one network and one text at a time."""
    net, tokens = small(layers=1), torch.randint(3, (2, 3, 7), generator=stream(0, "tokens"))
    with torch.no_grad():
        net.layers[0]["bias"].normal_(generator=stream(0, "bias"))
    w = net.layers[0]
    for r in range(2):
        for text, logits in zip(tokens[r], net(tokens)[r], strict=True):
            x = net.embedding[r][:, [3, *text[:-1].tolist()]].mT
            inner = layer_norm(x)
            q, k, v = (split_heads(inner @ w[name][r].mT, 2) for name in ("query", "key", "value"))
            mask = torch.stack(
                [
                    torch.stack([w["bias"][r, h, i - j] if j <= i else torch.tensor(-math.inf) for j in range(7)])
                    for h in range(2)
                    for i in range(7)
                ]
            ).view(2, 7, 7)
            x = x + merge_heads(scaled_dot_product_attention(q, k, v, attn_mask=mask.double())) @ w["out"][r].mT
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


def test_each_network_has_its_own_rate():
    """Two copies side by side, at factors 1 and 1/4, against each alone at its own rate."""
    factors = torch.tensor([1.0, 0.25], dtype=torch.float64)

    def descend(weight: torch.Tensor, rate: float, scale: torch.Tensor | None) -> torch.Tensor:
        w = torch.nn.Parameter(weight.clone())
        optimiser = torch.optim.AdamW([w], lr=rate, weight_decay=0.1)
        if scale is not None:
            own_rates(optimiser, scale)
        for _ in range(5):
            optimiser.zero_grad()
            (w**4).sum().backward()
            optimiser.step()
        return w.detach()

    start = torch.tensor([[1.0, -2.0], [1.0, -2.0]], dtype=torch.float64)
    both = descend(start, 0.1, factors)
    for r, rate in enumerate((0.1, 0.025)):
        assert (both[r] - descend(start[r : r + 1], rate, None)[0]).abs().max() <= 1e-12


def test_models_side_by_side_learn_as_if_alone():
    """Two rates in one batch against each of them alone."""
    texts = torch.randint(2, (2, 4, 5), generator=stream(0, "texts"))

    def trained(*rates: float) -> torch.Tensor:
        size = Bernoulli(models=2, rates=rates)
        net = TinyAttention(2, 5, num_networks=2, copies=len(rates), dtype=torch.float64)
        size.train(net, lambda step: texts, 20)
        return net.readout.detach().unflatten(0, (len(rates), 2))

    both = trained(1e-2, 4e-2)
    for found, rate in zip(both, (1e-2, 4e-2), strict=True):
        assert torch.allclose(found, trained(rate)[0], atol=1e-12)


def test_the_rate_of_streams_warms_up_and_ends_near_zero(monkeypatch):
    monkeypatch.setattr(streams.training, "train", lambda loss, optimiser, *, steps, rate: [*map(rate, range(steps))])
    found = Bernoulli(models=1, rates=(0.1, 0.4)).train(small(), None, 100)
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
    markov = rows[Markov]
    assert (markov["excess"] > -1e-5).all()
    first = markov[markov["place"] == 0]
    assert np.abs(first["bayes"] - math.log(3)).max() <= 1e-12
    assert (markov["blind"] >= -1e-12).all()


def test_an_arm_is_validated_by_the_law_that_it_hears():
    small_arm, tokens = Bernoulli(models=2), torch.randint(2, (2, 3, 5), generator=stream(0, "heard"))
    one = small_arm.heard("one", tokens)
    for model, law in enumerate(((0.8, 0.2), (0.2, 0.8))):
        assert (one[model] - torch.tensor(law, dtype=torch.float64)).abs().max() <= 1e-15
    many = bayes_predictive(tokens, COINS.matrices, COINS.weights)
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
    assert set(many.component.tolist()) == {0, 1}


def test_linear_is_the_product_that_the_network_uses():
    x, W = torch.randn(2, 3, 4, generator=stream(0, "x")), torch.randn(2, 5, 4, generator=stream(0, "W"))
    assert (linear(x, W) - torch.einsum("rbi,roi->rbo", x, W)).abs().max() <= 32 * FLOAT32


def test_a_missing_number_decides_nothing(rows, undecided_without):
    read = undecided_without(rows)
    assert all(read.values()), read
