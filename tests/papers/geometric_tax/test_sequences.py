"""Topic sequences: DNA, its strands and shuffles, and what pooling does to a step."""

import math
from collections import Counter
from itertools import pairwise, permutations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from derived.lab import training
from derived.lab.nets import Draws
from derived.lab.rng import stream
from derived.papers.geometric_tax import (
    dinucleotide_shuffle,
    gc_heterogeneous_dna,
    procrustes_distortion,
    rdm_similarity,
    read_fasta,
    reverse_complement,
    sequences,
)
from derived.papers.geometric_tax.data import dna
from derived.papers.geometric_tax.model.encoders import CausalTransformer, Size
from derived.papers.geometric_tax.sequences import (
    ARMS,
    Diets,
    Dilution,
    Strands,
    Trained,
    Walks,
    arm,
    best_reader,
    explained,
)

EXPERIMENTS = (Strands, Trained, Diets, Dilution, Walks)
examples = settings(derandomize=True, max_examples=40, deadline=None, database=None)
texts = st.text("ACGTN", min_size=1, max_size=40)


def judged(id, rows):
    """The estimate of one claim."""
    (claim,) = (claim for claim in sequences.CLAIMS if claim.id == id)
    return claim.measure(rows)


@examples
@given(texts)
def test_the_other_strand_by_letters(text):
    pairs = {"A": "T", "C": "G", "G": "C", "T": "A", "N": "N"}
    s = dna.encode(text)
    assert dna.decode(reverse_complement(s)) == "".join(pairs[letter] for letter in reversed(text))
    assert torch.equal(reverse_complement(reverse_complement(s)), s)
    assert dna.decode(dna.encode(text.lower())) == text


@examples
@given(texts, st.integers(1, 3))
def test_words_are_counted_one_by_one(text, k):
    if len(text) < k:
        return
    found = dna.kmer_counts(dna.encode(text)[None], k)[0]
    slow = Counter(text[i : i + k] for i in range(len(text) - k + 1))
    for number in range(4**k):
        word = "".join("ACGT"[number // 4 ** (k - 1 - i) % 4] for i in range(k))
        assert found[number] == slow[word]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_strand_permutes_the_counts(k):
    """`gt-rc`: so D = 0 and every distance is kept, on any DNA; P is its own inverse, with no fixed word for odd k."""
    s = gc_heterogeneous_dna(70, 200, stream(0, "dna"))
    here, there = dna.kmer_counts(s, k), dna.kmer_counts(reverse_complement(s), k)
    P = dna.strand_permutation(k)
    assert torch.equal(there, here[:, P])
    assert torch.equal(P[P], torch.arange(4**k))
    assert torch.eq(P, torch.arange(4**k)).sum() == (4 ** (k // 2) if k % 2 == 0 else 0)
    mean = here.mean(dim=0)
    assert procrustes_distortion(here, there) <= 1e-7
    assert abs(rdm_similarity(here - mean, there - mean[P]) - 1) <= 1e-9


@examples
@given(st.integers(1, 5), st.integers(0, 9))
def test_a_readout_of_both_parts(d, seed):
    """`gt-readout`: |B(a + b)|^2 - |B(a - b)|^2 = 4 <Ba, Bb>, nothing where the readout is symmetric."""
    g = stream(seed, "readout", d)
    P = dna.strand_permutation(2)
    B, c = torch.randn(d, 16, generator=g, dtype=torch.float64), torch.randn(16, generator=g, dtype=torch.float64)
    even, odd = (c + c[P]) / 2, (c - c[P]) / 2
    gap = (B @ c).square().sum() - (B @ c[P]).square().sum()
    assert abs(gap - 4 * (B @ even) @ (B @ odd)) <= 1e-11
    symmetric = B + B[:, P]
    assert (symmetric @ c - symmetric @ c[P]).abs().max() <= 1e-12


def test_the_four_arms(rows):
    """High, high, low, low for a random readout; one everywhere for a symmetric one."""
    table = rows[Strands].groupby(["readout", "arm"])["similarity"].mean()
    assert min(table["random"][["varied", "shuffled"]]) > max(table["random"][["matched", "uniform"]]) + 0.1
    assert (table["counts"] - 1).abs().max() <= 1e-9
    assert (table["symmetric"] - 1).abs().max() <= 1e-9
    assert judged("GT-12.b", rows[Strands]).value > 0.1
    shares = {
        name: arm(name, 60, 800, 0, 0).clamp(1, 2).eq(arm(name, 60, 800, 0, 0)).double().mean(dim=1) for name in ARMS
    }
    assert shares["varied"].std() > 3 * shares["matched"].std()
    assert torch.allclose(shares["varied"], shares["shuffled"])


def test_gc_follows_its_law():
    """The twelfth of 25 uniforms is Beta(12, 14): mean 12/26, variance 12 14 / (26^2 27)."""
    s = gc_heterogeneous_dna(4000, 400, stream(0, "gc"))
    gc = ((s == 1) | (s == 2)).double().mean(dim=1)
    assert abs(gc.mean() - 12 / 26) <= 4 * gc.std() / 4000**0.5
    variance = 12 * 14 / 26**2 / 27
    assert abs(gc.var() / (variance + (12 / 26 * 14 / 26 - variance) / 400) - 1) <= 0.1
    counts = dna.kmer_counts(s, 1).sum(dim=0)
    assert abs(counts[1] / counts[2] - 1) <= 0.01
    with pytest.raises(ValueError, match="gc"):
        dna.dna_with_gc(torch.tensor([1.2]), 5, stream(0, "gc"))


@examples
@given(st.text("ACGTN", min_size=1, max_size=30), st.integers(0, 5))
def test_a_shuffle_keeps_pairs_and_ends(text, seed):
    s = dna.encode(text)[None]
    t = dinucleotide_shuffle(s, stream(seed, "shuffle"))[0]
    found = dna.decode(t)
    assert Counter(pairwise(text)) == Counter(pairwise(found))
    assert (found[0], found[-1]) == (text[0], text[-1])


def test_all_orders_with_the_same_pairs_are_equally_likely():
    """Every one of the Euler paths of a short sequence, found by brute force, within four standard errors."""
    text = "ACATACGA"
    pairs = Counter(pairwise(text))
    every = {"".join(each) for each in permutations(text)}
    same = sorted(each for each in every if Counter(pairwise(each)) == pairs and each[0] == "A")
    draws = 6000
    s = dna.encode(text).expand(draws, -1)
    found = Counter(dna.decode(each) for each in dinucleotide_shuffle(s, stream(0, "uniform")))
    assert set(found) == set(same)
    assert len(same) > 3
    share = 1 / len(same)
    for each in same:
        assert abs(found[each] / draws - share) <= 4.5 * math.sqrt(share * (1 - share) / draws)


def test_one_chain_keeps_the_texture_alone():
    s = gc_heterogeneous_dna(200, 500, stream(0, "dna"))
    t = dna.matched_chain(s, stream(0, "chain"))
    pooled = [dna.kmer_counts(each, 2).sum(dim=0) for each in (s, t)]
    assert ((pooled[0] / pooled[1] - 1).abs() <= 0.06).all()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ACG\n", "before the first name"),
        ("", "no line starts with '>'"),
        (">one\nAC\n>two\n", "'two' has no letters"),
        (">one\nACXG\n", "line 2: letter 'X' at place 3"),
    ],
)
def test_a_file_that_is_no_fasta_is_refused(tmp_path, text, words):
    file = tmp_path / "bad.fa"
    file.write_text(text)
    with pytest.raises(ValueError, match=words):
        read_fasta(file)


def test_a_fasta_file(tmp_path):
    file = tmp_path / "two.fa"
    file.write_text(">chr1 first\nACGT\nnnac\n\n>chr2\nG\n")
    records = read_fasta(file)
    assert [(record.name, dna.decode(record.s)) for record in records] == [("chr1 first", "ACGTNNAC"), ("chr2", "G")]
    assert dna.windows(records[0].s, 2).shape == (3, 2)
    answer = tmp_path / "answer.json"
    answer.write_text('{"chrom": "chr1", "dna": "acgn"}')
    assert dna.decode(dna.read_genome_json(answer)) == "ACGN"
    answer.write_text('{"error": "none"}')
    with pytest.raises(ValueError, match="no field 'dna'"):
        dna.read_genome_json(answer)


def test_what_is_no_dna_is_refused():
    with pytest.raises(ValueError, match="letter 'U' at place 2"):
        dna.encode("AU")
    with pytest.raises(ValueError, match="uint8"):
        reverse_complement(torch.tensor([1.0]))
    with pytest.raises(ValueError, match="at least k = 3"):
        dna.kmer_counts(torch.zeros(1, 2, dtype=torch.uint8), 3)


def test_steps_of_a_pooled_state(rows):
    """`gt-dilution`: the law of the cosine step, of order 1 / L^2, and the Euclidean step, of order 1 / L."""
    table = rows[Dilution]
    assert ((table["cosine"] / table["law"] - 1).abs() <= 6 / table["L"]).all()
    mean = table.groupby("L")[["cosine", "euclidean"]].mean()
    for column, slope in (("cosine", -2), ("euclidean", -1)):
        assert abs(np.polyfit(np.log(mean.index), np.log(mean[column]), 1)[0] - slope) <= 0.25


class Places(torch.nn.Module):
    """Tells every letter at every place apart: of L letters one step of a walk changes one."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, tokens):
        letters = torch.nn.functional.one_hot(tokens, 4).double()
        return (letters.unsqueeze(-2) * torch.eye(tokens.shape[-1]).unsqueeze(-1)).flatten(-2)


def test_a_step_of_a_walk_is_one_less_the_cosine():
    for length in (6, 15):
        found = Walks.at("tiny").walk(Places(), length, 0)
        np.testing.assert_allclose(found, 1 / length, rtol=1e-12)


def test_rows_of_walks(rows):
    table = rows[Walks]
    assert (table["cosine"] > 0).all()
    assert table[table["setting"] == "same"]["L"].unique().tolist() == [32]
    assert sorted(table[table["setting"] == "published"]["L"].unique()) == [3, 7, 64, 128]
    assert sequences.windows_alone(table).n == 2
    steps = pd.DataFrame({"setting": ["same"] * 4 + ["published"] * 4, "replicate": [0, 0, 1, 1] * 2})
    steps = steps.assign(cosine=[1.0, 2.0, 3.0, 3.0, 1.0, 8.0, 1.0, 4.0])
    assert sequences.windows_alone(steps).value == pytest.approx(4.0)
    same = pd.concat(
        [steps.query("setting == 'same'").assign(replicate=lambda s, r=r: s["replicate"] + r) for r in (0, 2)]
    )
    odd = pd.concat([same, steps.assign(replicate=9)])  # the published windows have no part in it, nor a walk left over
    for table in (same, odd):
        assert sequences.other_walks(table).value == pytest.approx(2.0)


# Trained models -------------------------------------------------------------------------------------------------------


def test_the_best_reader_by_an_integral_over_the_share_of_gc():
    """P(C or G next | 5 of 7) by quadrature over Beta(12, 14) and the two masses at its cuts."""
    past = torch.tensor([[[1, 2, 1, 2, 1, 0, 3]]], dtype=torch.uint8)
    law, (low, high) = stats.beta(12, 14), (0.25, 0.75)

    def whole(more: int) -> float:
        seen = lambda x: x ** (5 + more) * (1 - x) ** 2  # noqa: E731
        inside = integrate.quad(lambda x: law.pdf(x) * seen(x), low, high)[0]
        return inside + law.cdf(low) * seen(low) + law.sf(high) * seen(high)

    p = whole(1) / whole(0)
    for letter, probability in ((1, p / 2), (0, (1 - p) / 2)):
        following = torch.tensor([[[letter] * 7]], dtype=torch.uint8)
        last = best_reader(past, following) * 7 - best_reader(past[..., :6], following[..., :6]) * 6
        assert last.item() == pytest.approx(-math.log(probability), abs=1e-5)


def test_no_other_reader_of_counts_is_better():
    """The best reader's loss is below that of the true share, smoothed otherwise, and of uniform guesses; the conjugate
    reader of Beta(12, 14), who alone does not know of the cuts, is behind by next to nothing."""
    s = gc_heterogeneous_dna(400, 200, stream(3, "best"))[None]
    best = best_reader(s[..., :-1], s[..., 1:]).item()
    strong = ((s == 1) | (s == 2)).double()
    seen, following = strong[..., :-1].cumsum(dim=-1), strong[..., 1:]
    places = torch.arange(1, 200)
    for prior in (1.0, 4.0, 26.0, 200.0):
        p = (seen + prior * 12 / 26) / (places + prior)
        other = -torch.where(following == 1, p / 2, (1 - p) / 2).log().mean().item()
        assert (0 if prior == 26 else 1e-3) < other - best < (1e-4 if prior == 26 else 1e-2)
    assert best < math.log(4)


def test_what_counts_explain():
    """A linear function of counts is explained whole, and noise not at all."""
    s = gc_heterogeneous_dna(400, 60, stream(0, "explained"))
    counts = dna.kmer_counts(s, 2)[None]
    mapped = counts @ torch.randn(1, 16, 3, generator=stream(0, "map"), dtype=torch.float64) + 5
    assert explained(mapped, counts).item() == pytest.approx(1)
    noise = torch.randn(1, 400, 3, generator=stream(0, "noise"), dtype=torch.float64)
    assert -0.3 < explained(noise, counts).item() < 0.05


class CountsLetters(torch.nn.Module):
    """A model whose pooled states are the counts of some letters, and which guesses uniformly."""

    def __init__(self, *letters: int):
        super().__init__()
        self.seen = torch.zeros(4).double().index_fill(0, torch.tensor(letters), 1.0)

    def forward(self, s):
        return torch.nn.functional.one_hot(s, 4) * self.seen

    def head(self, h):
        return torch.zeros_like(h)


def test_a_model_that_counts_letters_scores_as_a_count_does():
    """The judge of the trained models, on one whose pooled states are the counts of letters: no distortion at all. One
    that counts A and C alone counts T and G on the other strand, which are other numbers."""
    size = Trained(networks=2, judged=40, length=60, width=4, heads=1)
    table = size.judge(CountsLetters(0, 1, 2, 3), 0, "cpu")
    assert (table["similarity"] - 1).abs().max() < 1e-6  # rounding parts ties: two of 780 ranks change places at 3e-8
    assert table["D"].max() < 1e-6
    assert table["composition"].min() > 0.85  # pairs count every letter but the last one
    assert table["learned"].dropna().abs().max() < 1e-9
    assert size.judge(CountsLetters(0, 1), 0, "cpu")["D"].min() > 0.1


def test_the_rate_rises_for_a_tenth_of_the_steps_and_then_falls_to_zero(monkeypatch):
    rates = []
    monkeypatch.setattr(training, "train", lambda *_, steps, rate: rates.extend(map(rate, range(steps + 1))))
    size = Trained(networks=1, steps=1000, rate=0.5, length=4, width=4, depth=1, heads=1)
    size.train(torch.nn.Linear(2, 2), None, 0, "cpu")
    assert np.argmax(rates) == 99
    assert rates[:3] == pytest.approx([0.5 * step / 100 for step in (1, 2, 3)], rel=1e-3)
    assert rates[500] == pytest.approx(0.25)
    assert rates[1000] == pytest.approx(0)


def test_untrained_models_are_judged_before_training():
    size = Trained.at("tiny")
    table = size.run({}, seed=0, device="cpu", dtype=torch.float64)
    shape = {name: getattr(size, name) for name in ("length", "width", "depth", "heads")}
    draws = Draws(num_networks=2, seed=0, layer="dna", dtype=torch.float64)
    fresh = size.judge(CausalTransformer(Size(codes=4, outputs=4, **shape), draws), 0, "cpu")
    stages = {stage: part["D"].to_numpy() for stage, part in table.groupby("stage")}
    assert np.abs(stages["untrained"] - fresh["D"].to_numpy()).max() < 1e-9
    assert np.abs(stages["trained"] - fresh["D"].to_numpy()).max() > 1e-4


def test_a_diet_of_one_composition_has_more_to_learn_and_the_same_start(rows):
    table = rows[Diets]
    start = table[table["stage"] == "untrained"].pivot(index=["arm", "replicate"], columns="reads", values="similarity")
    assert (start["varied"] == start["one"]).all()
    end = table[table["stage"] == "trained"].pivot(index=["arm", "replicate"], columns="reads", values="similarity")
    assert (end["varied"] != end["one"]).all()
    one = dna.random_chain(stream(0, "chain"))
    long = dna.chain(torch.full((4,), 0.25).double(), one, 300, 200, stream(0, "read"))
    counted = dna.kmer_counts(long, 2).sum(dim=0).view(4, 4)
    assert (counted / counted.sum(dim=1, keepdim=True) - one).abs().max() < 0.03
    made = table.assign(similarity=table["arm"].map({"varied": 0.8, "shuffled": 0.9, "matched": 0.3, "uniform": 0.1}))
    less = (made["reads"] == "one") & (made["stage"] == "trained") & (made["arm"] == "varied")
    made.loc[less, "similarity"] -= 0.2
    assert judged("GT-12.g", made).value == pytest.approx(0.2)
    one = next(claim.comparison[1] for claim in sequences.CLAIMS if claim.id == "GT-12.g")
    assert one(made).value == pytest.approx(-0.2)


def test_rows_of_trained_models(rows):
    table = rows[Trained]
    assert set(table["stage"]) == {"untrained", "trained"}
    assert sorted(table["arm"].unique()) == sorted(ARMS)
    made = table.assign(similarity=table["arm"].map({"varied": 0.8, "shuffled": 0.9, "matched": 0.3, "uniform": 0.1}))
    assert abs(judged("GT-12.d", made).value) < 1e-12  # the same order before training
    before = made["stage"].eq("untrained") & made["arm"].isin(["varied", "shuffled"])
    made.loc[before, "similarity"] -= 0.3
    assert judged("GT-12.d", made).value == pytest.approx(0.3)
    (claim,) = (claim for claim in sequences.CLAIMS if claim.id == "GT-12.d")
    first = made.assign(similarity=made["similarity"] + 0.1 * before)
    both = pd.concat([first, made.assign(replicate=made["replicate"] + made["replicate"].nunique())])
    assert claim.comparison[1](both).value == pytest.approx(0.1), "a control could pass"


def test_a_missing_number_decides_nothing(rows):
    strands, walks = rows[Strands], rows[Walks]
    for name in ARMS:
        one = strands.index == strands.query(f"readout == 'random' and arm == '{name}'").index[0]
        with pytest.raises(ValueError, match="not finite"):
            judged("GT-12.b", strands.assign(similarity=strands["similarity"].mask(one)))
    with pytest.raises(ValueError, match="no number"):
        sequences.windows_alone(walks.assign(cosine=walks["cosine"].mask(walks.index == 0)))
