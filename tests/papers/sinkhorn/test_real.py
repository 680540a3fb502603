"""Topic real: reactions with known maps, a head read as a coupling, column errors, and what refutes them."""

import itertools

import pandas as pd
import pytest
import torch
from here import needs

from derived.lab.experiment import run_condition
from derived.lab.rng import stream
from derived.papers.sinkhorn.data.reactions import HEADS, MECHANISMS, TAILS, reaction, reactions
from derived.papers.sinkhorn.real import CLAIMS, AtomMaps, coupled, greedy, layers, wrong


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_each_product_atom_has_one_precursor_atom_of_its_element(mechanism):
    for swapped in (False, True):
        made = reaction(mechanism, "CSCC", "CCCF", "ClCCl", swapped)
        elements = [[made.tokens[i].upper() for i in each] for each in (made.products, made.precursors)]
        assert elements[0] == [elements[1][i] for i in made.answer]
        assert len({*made.answer}) == len(made.answer)


def colours(tokens: list[str]) -> list[int]:
    """Classes of the atoms of a SMILES string by element and bonds, refined until they stop growing: atoms of different
    classes are exchanged by no symmetry."""
    bonds, open_rings, stack, last, order, atoms = [], {}, [], None, "", []
    for token in tokens:
        if token[0].isalpha():
            atoms.append(token)
            if last is not None:
                bonds.append((last, len(atoms) - 1, order))
            last, order = len(atoms) - 1, ""
        elif token.isdigit():
            if token in open_rings:
                bonds.append((open_rings.pop(token), last, "ring"))
            else:
                open_rings[token] = last
        elif token == "(":
            stack.append(last)
        elif token == ")":
            last = stack.pop()
        elif token == ".":
            last = None
        else:
            order = token
    near = [[(b if a == i else a, kind) for a, b, kind in bonds if i in (a, b)] for i in range(len(atoms))]
    found = [*atoms]
    for _ in atoms:
        seen = [(found[i], tuple(sorted((found[j], kind) for j, kind in near[i]))) for i in range(len(atoms))]
        names = {each: str(place) for place, each in enumerate(sorted({*seen}))}
        found = [names[each] for each in seen]
    return found


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_no_symmetry_exchanges_two_atoms_that_are_asked_for(mechanism):
    assert len({*colours([*"CC(=O)CC"])}) == 5
    assert len({*colours([*"CC(=O)C"])}) == 3  # acetone
    for head, tail in itertools.product(HEADS, TAILS):
        if tail == head[::-1]:
            continue
        made = reaction(mechanism, head, tail)
        arrow = made.tokens.index(">>")
        assert len({*(after := colours(made.tokens[arrow + 1 :]))}) == len(after), made.smiles
        before = colours(made.tokens[:arrow])
        assert all(before.count(before[i]) == 1 for i in made.answer), made.smiles


def test_a_skeleton_is_not_joined_to_its_mirror_image():
    mirrored = [head for head in HEADS if head[::-1] in TAILS]
    assert len(mirrored) == 5
    for each in reactions(480, stream(0, "reactions")):
        product = "".join(each.tokens[each.tokens.index(">>") + 1 :])
        assert not any(product.startswith(head) and product.endswith(head[::-1]) for head in mirrored)


@pytest.mark.parametrize("temperature", [2.0, 0.5, 0.0])
def test_a_coupling_gives_no_column_more_than_a_row_has(temperature):
    scores = 3 * torch.randn(4, 7, generator=stream(0, "scores"), dtype=torch.float64)
    P = coupled(scores, temperature) * (7 if temperature else 1)
    assert (P.sum(dim=-1) - 1).abs().max() < 1e-4
    assert P.sum(dim=-2).max() < 1 + 1e-4


def test_the_greedy_mask_lets_the_surest_row_choose_and_gives_no_column_twice():
    shares = torch.tensor([[0.6, 0.3, 0.1], [0.7, 0.1, 0.2], [0.1, 0.5, 0.4]], dtype=torch.float64)
    # row 1 at 0.7; row 0 at 0.75 of what that leaves it, before row 2 at 0.56, though its share is the larger at first
    assert greedy(shares.log()).argmax(dim=-1).tolist() == [1, 0, 2]
    drawn = 3 * torch.randn(5, 5, generator=stream(0, "scores"), dtype=torch.float64)
    assert torch.equal(greedy(drawn).sum(dim=-2), torch.ones(5, dtype=torch.float64))


def test_column_errors_of_even_attention_and_of_a_sink():
    even = torch.full((1, 2, 4, 4), 0.25, dtype=torch.float64)
    sink = torch.zeros_like(even)
    sink[..., 0] = 1
    assert layers(sink, even) == [{"layer": 0, "trained": pytest.approx(1.5), "untrained": 0}]


def maps(rows: float, equal: float, coupling: float, dealt: float = 0.5) -> pd.DataFrame:
    """Made rows of 40 reactions, with these shares of right atoms up to a little noise."""
    cells = {"stage": "maps", "temperature": 1.0, "reaction": range(40), "mechanism": [i % 10 for i in range(40)]}
    noise = pd.Series([0.0, 0.01] * 20)
    made = {"rows": rows + noise, "equal": equal, "coupling": coupling, "dealt": dealt}
    return pd.concat([pd.DataFrame(cells).assign(way=way, right=right) for way, right in made.items()])


@needs("rxnmapper")
def test_the_head_maps_atoms_and_a_coupling_has_no_collisions():
    rows = run_condition(AtomMaps.at("tiny"), {}, 0, "cpu")
    found = rows[rows["stage"] == "maps"].set_index(["way", "temperature"])
    assert found["right"].mean() > 0.8
    assert (found.loc[("coupling", 0.0), "collisions"] == 0).all()
    assert (found.loc[("greedy", 1.0), "collisions"] == 0).all()
    assert found.loc[("dealt", 1.0), "right"].mean() < found.loc[("rows", 1.0), "right"].mean()
    assert rows["layer"].nunique() == 12


def test_the_lead_is_that_of_the_coupling_by_mechanism_and_only_reported():
    [claim] = CLAIMS
    found = claim.measure(maps(0.7, 0.8, 0.9))
    assert found.value == pytest.approx(0.195)
    assert found.n == 10, "the unit is the mechanism, not the reaction"
    assert claim.judge(found)[0] == "reported"
    assert wrong(maps(0.7, 0.8, 0.9))["coupling"].mean() == pytest.approx(0.1)
