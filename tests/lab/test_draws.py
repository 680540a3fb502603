"""Named normal arrays: reproducible, standard, and independent by name, shape and seed."""

import itertools

import torch

from derived.lab.draws import normals


def test_equal_names_give_equal_numbers_whatever_was_drawn_before():
    drawn = normals(3)
    first = drawn(4, 5, name="keys")
    drawn(9), torch.rand(3)
    assert torch.equal(first, drawn(4, 5, name="keys"))
    assert first.dtype == torch.float64


def test_entries_are_standard_normal_and_independent_by_name_shape_and_seed():
    """Means, variances and correlations of 10,000 numbers, within five standard errors."""
    n = 10_000
    columns = [normals(0)(n), normals(0)(n, name="a"), normals(1)(n), normals(0)(n, 1).squeeze(dim=-1)]
    for each in columns:
        assert abs(each.mean()) < 5 / n**0.5
        assert abs(each.var() - 1) < 5 * (2 / n) ** 0.5
    for one, other in itertools.combinations(columns, 2):
        assert abs((one * other).mean()) < 5 / n**0.5
