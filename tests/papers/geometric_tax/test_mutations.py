"""What breaks it: each changed line loses the property that its legend names, and only the right one keeps all."""

import math

import pytest
import torch

from derived.lab.rng import stream
from derived.papers.geometric_tax.data.dna import gc_heterogeneous_dna, kmer_counts, reverse_complement
from derived.papers.geometric_tax.model.metrics import procrustes_distortion
from derived.papers.geometric_tax.model.mutations import DISTORTIONS, damage, framed_counts


def clouds():
    X, E = torch.randn(2, 3000, 5, generator=stream(3, "clouds"), dtype=torch.float64)
    return X * torch.tensor([3.0, 2.0, 1.0, 1.0, 0.5]).double(), E


def test_only_the_right_distortion_keeps_all():
    lost = {name: damage(version, *clouds()) for name, version in DISTORTIONS.items()}
    fails = {
        "turned": {name for name, each in lost.items() if each.turned > 1e-6},
        "shifted": {name for name, each in lost.items() if each.shifted > 1e-6},
        "noise": {name for name, each in lost.items() if abs(each.noise - 1) > 0.1},
    }
    assert fails["turned"] == {"no rotation", "rotated the wrong way", "largest value alone"}
    assert fails["shifted"] == {"no centring", "largest value alone"}
    assert fails["noise"] == {"largest value alone", "mean in place of sum"}


def test_the_mean_is_smaller_by_the_number_of_entries():
    X, E = clouds()
    ratio = procrustes_distortion(X, X + E) / DISTORTIONS["mean in place of sum"](X, X + E)
    assert ratio.item() == pytest.approx(math.sqrt(X.numel()))


@pytest.mark.parametrize("length", [100, 102])
def test_words_in_one_frame_lose_the_other_strand_unless_the_frame_fits(length):
    g = gc_heterogeneous_dna(200, length, stream(4, "dna"))
    framed, overlapping = (
        procrustes_distortion(count(g, 3), count(reverse_complement(g), 3)).item()
        for count in (framed_counts, kmer_counts)
    )
    assert overlapping < 1e-7
    assert (framed < 1e-7) == (length % 3 == 0)


def test_framed_words_are_every_kth_word():
    g = gc_heterogeneous_dna(3, 11, stream(5, "dna"))
    counts = framed_counts(g, 2)
    assert counts.sum(dim=1).tolist() == [5, 5, 5]
    by_hand = torch.zeros(3, 16).double()
    for row, letters in enumerate(g.tolist()):
        for at in range(0, 10, 2):
            by_hand[row, 4 * letters[at] + letters[at + 1]] += 1
    assert torch.equal(counts, by_hand)
