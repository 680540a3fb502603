"""What the paper's table says, and the acceptance behind its counts."""

import pytest

from derived.papers.cactus.data import published


@pytest.mark.parametrize("a", [0.02, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("m", [1, 2, 20])
def test_the_share_kept_is_the_one_whose_powers_sum_to_the_count(a, m):
    """By the plain sum a + a^2 + … + a^m, in place of the package's closed form."""
    assert published.share_kept(sum(a**k for k in range(1, m + 1)), m) == pytest.approx(a, abs=1e-9)


@pytest.mark.parametrize("kept", [0, -1, 20, 21, float("nan")])
def test_a_count_beyond_the_block_is_refused(kept):
    with pytest.raises(ValueError, match="of m = 20 drafts"):
        published.share_kept(kept)
