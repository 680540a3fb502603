"""Named normal arrays: reproducible, standard, and independent by name, shape and seed."""

import torch

from derived.lab.draws import normals


def test_equal_names_give_equal_numbers_whatever_was_drawn_before():
    drawn = normals(3)
    first = drawn(4, 5, name="keys")
    drawn(9), torch.rand(3)
    assert torch.equal(first, drawn(4, 5, name="keys"))
    assert first.dtype == torch.float64
