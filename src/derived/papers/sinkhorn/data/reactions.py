"""Reactions of textbooks with their atom maps known by construction, written as SMILES strings.

Two partners keep their skeletons and are joined at their ends; which atoms leave is the textbook mechanism (an acid
loses its OH, a halide its halogen, an aldehyde its O). No symmetry of a product, or of a precursor that gives atoms,
exchanges two of these, so each product atom has one right precursor atom. Solvents stand among the precursors and give
no atom.
"""

import re
from typing import NamedTuple

import torch

# the tokens of SMILES, as far as they occur here
TOKENS = re.compile(r"(\[[^\]]+]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|>>|[0-9])")

#: The ends of both partners and of the product; {} is a skeleton, and atoms with one number are one atom.
MECHANISMS = {
    "amide from an acid": ("{}C:1(=O:2)O", "N:3{}", "{}C:1(=O:2)N:3{}"),
    "amide from an acyl chloride": ("{}C:1(=O:2)Cl", "N:3{}", "{}C:1(=O:2)N:3{}"),
    "ester from an acid": ("{}C:1(=O:2)O", "O:3{}", "{}C:1(=O:2)O:3{}"),
    "amine from a bromide": ("{}C:1Br", "N:3{}", "{}C:1N:3{}"),
    "ether from a bromide": ("{}C:1Br", "O:3{}", "{}C:1O:3{}"),
    "thioether from a bromide": ("{}C:1Br", "S:3{}", "{}C:1S:3{}"),
    "amine from an aldehyde": ("{}C:1=O", "N:3{}", "{}C:1N:3{}"),
    "urea from an isocyanate": ("{}N:1=C:2=O:4", "N:3{}", "{}N:1C:2(=O:4)N:3{}"),
    "ester from an acyl chloride": ("{}C:1(=O:2)Cl", "O:3{}", "{}C:1(=O:2)O:3{}"),
    "thioester from an acyl chloride": ("{}C:1(=O:2)Cl", "S:3{}", "{}C:1(=O:2)S:3{}"),
    "amide from an ester": ("{}C:1(=O:2)OC", "N:3{}", "{}C:1(=O:2)N:3{}"),
    "carbamate from a chloroformate": ("{}O:4C:1(=O:2)Cl", "N:3{}", "{}O:4C:1(=O:2)N:3{}"),
    "carbamate from an isocyanate": ("{}N:1=C:2=O:4", "O:3{}", "{}N:1C:2(=O:4)O:3{}"),
    "thiourea from an isothiocyanate": ("{}N:1=C:2=S:4", "N:3{}", "{}N:1C:2(=S:4)N:3{}"),
    "imine from an aldehyde": ("{}C:1=O", "N:3{}", "{}C:1=N:3{}"),
    "oxime ether from an aldehyde": ("{}C:1=O", "N:3O:4{}", "{}C:1=N:3O:4{}"),
    "amine from a ketone": ("{}C:1(C:2)=O", "N:3{}", "{}C:1(C:2)N:3{}"),
    "amine from a mesylate": ("{}C:1OS(C)(=O)=O", "N:3{}", "{}C:1N:3{}"),
    "amine by Michael addition": ("{}C:1(=O:2)C:4=C:5", "N:3{}", "{}C:1(=O:2)C:4C:5N:3{}"),
    "thioether by Michael addition": ("{}C:1(=O:2)C:4=C:5", "S:3{}", "{}C:1(=O:2)C:4C:5S:3{}"),
    "alkene by a Wittig reaction": ("{}C:1=O", "P(c1ccccc1)(c1ccccc1)(c1ccccc1)=C:3{}", "{}C:1=C:3{}"),
    "unsaturated ester from a phosphonate": ("{}C:1=O", "COP(=O)(OC)C:3C:4(=O:5)O:6{}", "{}C:1=C:3C:4(=O:5)O:6{}"),
    "enone by an aldol condensation": ("{}C:1=O", "C:3C:4(=O:5){}", "{}C:1=C:3C:4(=O:5){}"),
    "diene by a Suzuki coupling": ("{}C:1=C:2Br", "OB(O)C:3=C:4{}", "{}C:1=C:2C:3=C:4{}"),
}
HEADS = ("CCC", "CCCC", "COCC", "CSCC", "CCOCCC", "N#CCC", "FCCC", "CCC(=O)CC", "C#CCC", "CC=CC")
TAILS = (
    "CCOC",
    "CCSC",
    "CCCF",
    "CCC#N",
    "Cc1ccco1",
    "Cc1cccs1",
    "CC1CCCO1",
    "Cc1cccc(Cl)c1",
    "CCc1cccc(F)c1",
    "CCCOCC",
)
SOLVENTS = ("ClCCl", "C1CCOC1", "CN(C)C=O", "CC#N", "")


class Reaction(NamedTuple):
    """A reaction in tokens, where its atoms stand, and for each product atom the place of its precursor atom."""

    mechanism: str
    tokens: list[str]
    precursors: list[int]  # positions of the atoms before the arrow
    products: list[int]  # and behind it
    answer: list[int]  # into ``precursors``, one for each product atom

    @property
    def smiles(self) -> str:
        return "".join(self.tokens)


def reactions(num: int, generator: torch.Generator) -> list[Reaction]:
    """``num`` reactions, mechanisms in turn, with skeletons, order of the partners and a solvent drawn.

    A skeleton is not joined to its mirror image, since the product could be symmetric then.

    >>> found = reactions(1, torch.Generator().manual_seed(0))[0]
    >>> found.mechanism, len(found.products) == len(found.answer)
    ('amide from an acid', True)
    """

    def draw(choices):
        return choices[int(torch.randint(len(choices), (), generator=generator))]

    names, found = [*MECHANISMS], []
    for i in range(num):
        head = draw(HEADS)
        tail = draw([tail for tail in TAILS if tail != head[::-1]])
        found.append(reaction(names[i % len(names)], head, tail, draw(SOLVENTS), draw((False, True))))
    return found


def reaction(mechanism: str, head: str, tail: str, solvent: str = "", swapped: bool = False) -> Reaction:
    """One reaction of two skeletons; ``swapped`` writes the second partner first.

    >>> found = reaction("ether from a bromide", "CC", "CF", "ClCCl")
    >>> found.smiles
    'CCCBr.OCF.ClCCl>>CCCOCF'
    >>> [found.tokens[found.precursors[i]] for i in found.answer]
    ['C', 'C', 'C', 'O', 'C', 'F']
    """
    first, second, product = MECHANISMS[mechanism]
    head_atoms, tail_atoms = _numbered(head, 100), _numbered(tail, 200)
    partners = [_filled(first, head_atoms), _filled(second, tail_atoms)]
    pieces = [*(partners[::-1] if swapped else partners), *([_filled(solvent)] if solvent else [])]
    before = [token for i, piece in enumerate(pieces) for token in ([(".", None)] if i else []) + piece]
    whole = [*before, (">>", None), *_filled(product, head_atoms, tail_atoms)]
    atoms = [i for i, (token, _) in enumerate(whole) if token[0].isalpha()]
    precursors = [i for i in atoms if i < len(before)]
    products = [i for i in atoms if i > len(before)]
    place = {whole[i][1]: at for at, i in enumerate(precursors) if whole[i][1] is not None}
    tokens = [token for token, _ in whole]
    return Reaction(mechanism, tokens, precursors, products, [place[whole[i][1]] for i in products])


def _numbered(smiles: str, start: int) -> list[tuple[str, int]]:
    return [(token, start + i) for i, token in enumerate(TOKENS.findall(smiles))]


def _filled(pattern: str, *skeletons: list[tuple[str, int]]) -> list[tuple[str, int | None]]:
    """Tokens with the numbers of their atoms, the skeletons in place of {}."""
    found: list[tuple[str, int | None]] = []
    parts = pattern.split("{}")
    for i, part in enumerate(parts):
        for token, number in re.findall(rf"{TOKENS.pattern}(?::(\d+))?", part):
            found.append((token, int(number) if number else None))
        if i < len(parts) - 1:
            found += skeletons[i]
    return found
