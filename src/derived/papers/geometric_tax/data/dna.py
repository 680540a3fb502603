"""DNA: synthetic sequences whose composition varies, shuffles that keep pairs, k-mer counts, and readers.

symbol   name   meaning                                                          axes
s        s      letters as numbers, ACGT = 0123, N = 4                           (n, L) or (L,), uint8
GC       gc     share of G and C of a sequence                                   (n,)
c_w(s)   -      how often the k-mer w stands in s                                (n, 4^k)
"""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from derived.lab.checks import check_count, check_within

LETTERS = "ACGTN"
_COMPLEMENT = torch.tensor([3, 2, 1, 0, 4], dtype=torch.uint8)


def encode(text: str, where: str = "the sequence") -> UInt8[Tensor, "L"]:
    """Letters to numbers, small letters too; ValueError names the first letter that is none of ACGTN and its place.

    >>> encode("acgTN").tolist()
    [0, 1, 2, 3, 4]
    """
    codes = [LETTERS.find(letter) for letter in text.upper()]
    if -1 in codes:
        place = codes.index(-1)
        raise ValueError(f"{where}: letter {text[place]!r} at place {place + 1}; give A, C, G, T or N")
    return torch.tensor(codes, dtype=torch.uint8)


def decode(s: UInt8[Tensor, "L"]) -> str:
    """Numbers to letters.

    >>> decode(reverse_complement(encode("AACGN")))
    'NCGTT'
    """
    return "".join(LETTERS[int(code)] for code in s)


def _checked(s: Tensor) -> Tensor:
    check_within("s", s, 0, 4)
    return s


def reverse_complement(s: UInt8[Tensor, "*n L"]) -> UInt8[Tensor, "*n L"]:
    """The other strand, read in its own direction: backwards, A and T, C and G exchanged, N kept.

    >>> reverse_complement(torch.tensor([0, 0, 1], dtype=torch.uint8)).tolist()
    [2, 3, 3]
    """
    return _COMPLEMENT.to(s.device)[_checked(s).long()].flip(-1)


def dna_with_gc(gc: Float[Tensor, "n"], L: int, generator: torch.Generator) -> UInt8[Tensor, "n L"]:
    """Independent letters: C and G with probability GC / 2 each, A and T with (1 - GC) / 2.

    >>> dna_with_gc(torch.tensor([0.0, 1.0]), 100, torch.Generator().manual_seed(0)).unique(dim=1).shape[0]
    2
    """
    check_count("L", L)
    check_within("gc", gc, 0, 1)
    strong = torch.rand(len(gc), L, generator=generator) < gc[:, None]
    coin = torch.rand(len(gc), L, generator=generator) < 0.5
    return torch.where(strong, 1 + coin.to(torch.uint8), 3 * coin.to(torch.uint8))


def gc_heterogeneous_dna(n: int, L: int, generator: torch.Generator) -> UInt8[Tensor, "n L"]:
    """A stand-in for windows of a chromosome: GC of each sequence from Beta(12, 14), cut to [0.25, 0.75] [ours].

    Beta(12, 14) is the law of the twelfth smallest of 25 uniforms.

    >>> gc_heterogeneous_dna(3, 50, torch.Generator().manual_seed(0)).shape
    torch.Size([3, 50])
    """
    check_count("n", n)
    gc = torch.rand(n, 25, generator=generator).sort(dim=1).values[:, 11]
    return dna_with_gc(gc.clamp(0.25, 0.75), L, generator)


def matched_chain(s: UInt8[Tensor, "n L"], generator: torch.Generator) -> UInt8[Tensor, "n L"]:
    """As many sequences from ONE first-order chain, fitted to the pooled pairs of letters of s: the texture without the
    differences between sequences [code: "texture matched"].

    >>> matched_chain(torch.zeros(2, 5, dtype=torch.uint8), torch.Generator().manual_seed(0)).unique().tolist()
    [0]
    """
    n, L = _checked(s).shape
    pairs = kmer_counts(s, 2).sum(dim=0).view(4, 4)
    first = torch.bincount(s.flatten().long(), minlength=5)[:4].double()
    rows = torch.where(pairs.sum(dim=1, keepdim=True) > 0, pairs, 1.0)
    return chain(first / first.sum(), rows / rows.sum(dim=1, keepdim=True), n, L, generator)


def chain(
    first: Float[Tensor, "4"], rows: Float[Tensor, "4 4"], n: int, L: int, generator: torch.Generator
) -> UInt8[Tensor, "n L"]:
    """n sequences of a first-order chain: the law of the first letter, and of a letter after each.

    >>> exchange = torch.eye(4).double()[[1, 0, 3, 2]]
    >>> chain(torch.tensor([1.0, 0, 0, 0]), exchange, 1, 4, torch.Generator().manual_seed(0)).tolist()
    [[0, 1, 0, 1]]
    """
    start, steps = first.cumsum(dim=0), rows.cumsum(dim=1)
    uniforms = torch.rand(L, n, generator=generator, dtype=torch.float64)
    found = [torch.searchsorted(start, uniforms[0].to(start)).clamp(max=3)]
    for u in uniforms[1:]:
        found.append((u[:, None] > steps[found[-1]]).sum(dim=1).clamp(max=3))
    return torch.stack(found, dim=1).to(torch.uint8)


def random_chain(generator: torch.Generator) -> Float[Tensor, "4 4"]:
    """The rows of a chain, each uniform over all laws of a letter.

    >>> random_chain(torch.Generator().manual_seed(0)).sum(dim=1)
    tensor([1., 1., 1., 1.], dtype=torch.float64)
    """
    weights = -torch.rand(4, 4, generator=generator, dtype=torch.float64).log()
    return weights / weights.sum(dim=1, keepdim=True)


def kmer_counts(s: UInt8[Tensor, "n L"], k: int) -> Float[Tensor, "n 4^k"]:
    """c_w(s) for all words w of k letters in alphabetical order; windows with an N do not count.

    >>> kmer_counts(torch.tensor([[0, 1, 0, 1]], dtype=torch.uint8), 2)[0, :5].tolist()  # AA AC AG AT CA
    [0.0, 2.0, 0.0, 0.0, 1.0]
    """
    check_count("k", k)
    s = _checked(s).long()
    if s.shape[1] < k:
        raise ValueError(f"s has sequences of {s.shape[1]} letters; give at least k = {k} letters")
    words = s.unfold(1, k, 1)
    number = (words * 4 ** torch.arange(k - 1, -1, -1, device=s.device)).sum(dim=-1)
    good = (words < 4).all(dim=-1)
    counts = torch.zeros(len(s), 4**k, dtype=torch.float64, device=s.device)
    return counts.scatter_add_(1, torch.where(good, number, 0), good.double())


def strand_permutation(k: int) -> Tensor:
    """P of c(RC s) = P c(s): entry w is the number of the reverse complement of the word w; its own inverse.

    >>> strand_permutation(1).tolist()
    [3, 2, 1, 0]
    """
    words = torch.cartesian_prod(*[torch.arange(4)] * k).view(-1, k)
    return ((3 - words.flip(-1)) * 4 ** torch.arange(k - 1, -1, -1)).sum(dim=-1)


def dinucleotide_shuffle(s: UInt8[Tensor, "n L"], generator: torch.Generator) -> UInt8[Tensor, "n L"]:
    """Each sequence in another order with exactly the same pairs of neighbours, all such orders equally likely.

    A sequence is a path over its letters as vertices, its pairs as edges; another Euler path from the same first to the
    same last letter keeps all pairs. The last edges out of the letters are drawn until they form a tree to the last
    letter, the others are shuffled [prior: Altschul and Erickson 1985].

    >>> s = torch.tensor([[0, 1, 0, 2, 0, 1, 3]], dtype=torch.uint8)
    >>> t = dinucleotide_shuffle(s, torch.Generator().manual_seed(0))
    >>> bool((kmer_counts(t, 2) == kmer_counts(s, 2)).all())
    True
    """
    s = _checked(s)
    seeds = torch.randint(2**62, (len(s),), generator=generator).tolist()
    return torch.stack(
        [_shuffled(each.numpy(), np.random.default_rng(seed)) for each, seed in zip(s.cpu(), seeds, strict=True)]
    )


def _shuffled(s: np.ndarray, g: np.random.Generator) -> Tensor:
    ways = [s[1:][s[:-1] == letter] for letter in range(5)]
    end = int(s[-1])
    out = [letter for letter in range(5) if len(ways[letter]) and letter != end]
    while True:
        last = {letter: int(g.integers(len(ways[letter]))) for letter in out}
        if all(_leads(letter, last, ways, end) for letter in out):
            break
    queues = []
    for letter, way in enumerate(ways):
        kept = np.delete(way, last[letter]) if letter in last else way
        tail = [way[last[letter]]] if letter in last else []
        queues.append(iter([*g.permutation(kept).tolist(), *tail]))
    found = [int(s[0])]
    for _ in range(len(s) - 1):
        found.append(int(next(queues[found[-1]])))
    return torch.tensor(found, dtype=torch.uint8)


def _leads(letter: int, last: dict[int, int], ways: list[np.ndarray], end: int) -> bool:
    """Whether the last edges lead from a letter to the end."""
    for _ in range(5):
        if letter == end:
            return True
        letter = int(ways[letter][last[letter]])
    return letter == end


class Record(NamedTuple):
    """One entry of a FASTA file."""

    name: str
    s: Tensor


def read_fasta(path: str | Path) -> list[Record]:
    """The sequences of a FASTA file: a line ``>name``, then letters over any number of lines.

    ValueError, with its line, for letters before a name, an entry without letters, or a letter other than ACGTN.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".fa") as file:
    ...     _ = file.write(">one\\nACG\\nTn\\n")
    ...     file.flush()
    ...     [(record.name, decode(record.s)) for record in read_fasta(file.name)]
    [('one', 'ACGTN')]
    """
    names, parts = [], []
    for number, line in enumerate(Path(path).read_text().splitlines(), start=1):
        text = line.strip()
        if text.startswith(">"):
            names.append(text[1:].strip())
            parts.append([])
        elif text:
            if not names:
                raise ValueError(f"{path}, line {number}: letters before the first name; give a line '>name' first")
            parts[-1].append(encode(text, f"{path}, line {number}"))
    if not names:
        raise ValueError(f"{path}: no line starts with '>'; give a FASTA file")
    if empty := [name for name, each in zip(names, parts, strict=True) if not each]:
        raise ValueError(f"{path}: the entry {empty[0]!r} has no letters")
    return [Record(name, torch.cat(each)) for name, each in zip(names, parts, strict=True)]


def read_genome_json(path: str | Path) -> UInt8[Tensor, "L"]:
    """The ``dna`` field of an answer of the genome browser's programming interface; ValueError where there is none."""
    answer = json.loads(Path(path).read_text())
    if "dna" not in answer:
        raise ValueError(f"{path}: no field 'dna', but {', '.join(answer) or 'nothing'}")
    return encode(answer["dna"], str(path))


def windows(s: UInt8[Tensor, "L"], L: int) -> UInt8[Tensor, "n L"]:
    """Consecutive windows of L letters, those with an N left out.

    >>> windows(encode("ACGTNAGG"), 2).shape
    torch.Size([3, 2])
    """
    check_count("L", L)
    cut = _checked(s)[: len(s) // L * L].view(-1, L)
    return cut[(cut < 4).all(dim=1)]
