"""The sampler: blocks against enumeration for every rule, draws against inversion, and the edges."""

import itertools
import math

import pytest
import torch
from scipy import stats
from torch import Tensor

from derived.lab.rng import stream
from derived.papers.cactus.model import rules, sampler
from derived.papers.cactus.model.exact import emission
from derived.papers.cactus.model.sampler import accept_reject, draw

EVERY = (
    *(
        rules.SpS(),
        rules.Cactus(0.1),
        rules.Calibrated(0.1),
        rules.Lenience(0.6),
        rules.Interp(0.3),
    ),
    *(rules.Mentored(0.05), rules.Typical(), rules.TopK(2)),
)
named = pytest.mark.parametrize("rule", EVERY, ids=lambda rule: rule.name)
LEVEL = 1e-4  # both tails of each chi-square test: streams are fixed, so a test passes always or never


def laws(*shape: int, name: str, sharp: float = 1.5) -> Tensor:
    return torch.randn(*shape, generator=stream(11, name), dtype=torch.float64).mul(sharp).softmax(dim=-1)


def p_value(counts: Tensor, expected: Tensor) -> float:
    """Pearson's chi-square; cells of probability zero must be empty and are left out."""
    assert counts[expected == 0].sum(dim=0) == 0
    counts, expected = counts[expected > 0].double(), expected[expected > 0]
    expected = expected * counts.sum(dim=0)
    small = expected < 10
    if small.any():  # rare cells together
        counts = torch.cat([counts[~small], counts[small].sum(dim=0, keepdim=True)])
        expected = torch.cat([expected[~small], expected[small].sum(dim=0, keepdim=True)])
    return float(stats.chi2.sf(float(((counts - expected).square() / expected).sum(dim=0)), len(counts) - 1))


def block_law(p: Tensor, q: Tensor, rule) -> dict[tuple[int, ...], float]:
    """Every block that can be emitted, with its probability; p (m, V), q (m + 1, V)."""
    m, V = p.shape
    kept, replaced = emission(p, q[:m], rule)
    table = {}
    for length in range(m + 1):
        for head in itertools.product(range(V), repeat=length):
            weight = math.prod(float(kept[i, y]) for i, y in enumerate(head))
            last = q[m] if length == m else replaced[length]
            for y in range(V):
                table[(*head, y) + (-1,) * (m - length)] = weight * float(last[y])
    return table


def sampled_blocks(p: Tensor, q: Tensor, rule, num: int, seed: int) -> Tensor:
    """``num`` blocks; torch's own multinomial draws the drafts."""
    m, V = p.shape
    drafts = torch.stack(
        [torch.multinomial(p[i], num, replacement=True, generator=stream(seed, "drafts", i)) for i in range(m)], dim=1
    )
    return accept_reject(p.expand(num, m, V), drafts, q.expand(num, m + 1, V), rule, stream(seed, "block")).ids


@named
def test_blocks_have_the_enumerated_law(rule):
    """`cac-sps`: chi-square of whole blocks (m = 2, V = 4), and a slightly different rule is rejected."""
    p, q = laws(2, 4, name="p"), laws(3, 4, name="q")
    table = block_law(p, q, rule)
    assert abs(sum(table.values()) - 1) <= 1e-12
    num = 20_000
    ids = sampled_blocks(p, q, rule, num, seed=12)
    cells = {block: i for i, block in enumerate(table)}
    counts = torch.bincount(torch.tensor([cells[tuple(row)] for row in ids.tolist()]), minlength=len(cells))
    assert LEVEL < p_value(counts, torch.tensor(list(table.values()), dtype=torch.float64)) < 1 - LEVEL
    other = rules.SpS() if rule != rules.SpS() else rules.Cactus(0.02)
    wrong = block_law(p, q, other)
    expected = torch.tensor([wrong[block] for block in table], dtype=torch.float64)
    reachable = expected > 0
    assert int(counts[~reachable].sum(dim=0)) > 0 or p_value(counts[reachable], expected[reachable]) < 1e-6


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("V", [1, 2, 513, 4096, 4097, 5120])
def test_draw_is_inversion(V, dtype):
    """The token y has F(y - 1) <= u < F(y), F from one cumulative sum in float64; tokens of weight 0 never come."""
    g = stream(14, V)
    weights = torch.rand(64, V, generator=g, dtype=torch.float64).pow(6).to(dtype)
    weights = weights * (torch.rand(64, V, generator=g) < 0.5)
    weights[:, V // 2] += 1e-3
    u = torch.rand(64, generator=g, dtype=torch.float64)
    u[0], u[1] = 0.0, 1 - 2.0**-53
    token = draw(weights, u)
    assert (weights.gather(-1, token[:, None]) > 0).all()
    sums = weights.double().cumsum(dim=-1)
    slack = 256 * torch.finfo(dtype).eps
    total = sums[:, -1]
    upper = sums.gather(-1, token[:, None]).squeeze(-1) / total
    lower = upper - weights.double().gather(-1, token[:, None]).squeeze(-1) / total
    assert ((lower <= u + slack) & (u <= upper + slack)).all()
    twin = torch.searchsorted(sums, (u * total)[:, None], right=True).squeeze(-1).clamp(max=V - 1)
    assert float((twin == token).double().mean(dim=0)) >= 0.95


@named
def test_a_batch_is_a_loop(rule, monkeypatch):
    """The batch gives what each sequence alone gives with the same uniform numbers; a batch of one among the sizes."""
    B, m, V = 7, 3, 5
    p, q = laws(B, m, V, name="loop p"), laws(B, m + 1, V, name="loop q")
    ids = torch.stack([torch.multinomial(p[b], 1, generator=stream(15, b)).squeeze(-1) for b in range(B)])
    u = torch.rand(B, m + 1, generator=stream(15, "u"), dtype=torch.float64)
    monkeypatch.setattr(sampler, "uniform", lambda shape, generator, device: u)
    together = accept_reject(p, ids, q, rule, stream(0))
    for b in range(B):
        one = slice(b, b + 1)
        monkeypatch.setattr(sampler, "uniform", lambda shape, generator, device, one=one: u[one])
        alone = accept_reject(p[one], ids[one], q[one], rule, stream(0))
        assert torch.equal(alone.ids, together.ids[one])
        assert torch.equal(alone.n_accepted, together.n_accepted[one])
        by_hand = 0
        summaries = rule.summaries(p[b], q[b, :m])
        for i in range(m):  # one draft at a time
            n = ids[b, i]
            if not u[b, i] * p[b, i, n] < rule.gamma(p[b, i, n], q[b, i, n], *(summary[i] for summary in summaries)):
                break
            by_hand += 1
        assert by_hand == int(alone.n_accepted)
    assert len(together.n_accepted.unique()) > 1


@named
def test_groups_of_sequences_give_the_block_of_all_at_once(rule, monkeypatch):
    """Rows are read in groups of bounded size; an error in a later group names its sequences."""
    p, q = laws(7, 2, 5, name="groups p"), laws(7, 3, 5, name="groups q")
    ids = torch.stack([torch.multinomial(p[b], 1, generator=stream(25, b)).squeeze(-1) for b in range(7)])
    whole = accept_reject(p, ids, q, rule, stream(25, "u"))
    for table, widest in ((1, 1), (12, 2), (15, 3)):
        widths = []
        monkeypatch.setattr(sampler, "TABLE", table)
        monkeypatch.setattr(sampler, "draw", lambda weights, u, w=widths: (w.append(len(weights)), draw(weights, u))[1])
        groups = accept_reject(p, ids, q, rule, stream(25, "u"))
        assert all(torch.equal(a, b) for a, b in zip(whole, groups, strict=True))
        assert max(widths) == widest
        assert sum(widths) == 7
    with pytest.raises(ValueError, match="where sequences 6 to 6 are cut"):
        accept_reject(p, ids, torch.cat([q[:6], q[6:] / 2]), rule, stream(25, "u"))


@named
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_short_floats_are_read_as_what_they_are(rule, dtype):
    """float16 and bfloat16 rows give the block that their values in float32 give."""
    p, q = laws(40, 2, 6, name="half p").to(dtype), laws(40, 3, 6, name="half q").to(dtype)
    ids = torch.randint(6, (40, 2), generator=stream(17))
    short = accept_reject(p, ids, q, rule, stream(17, "u"))
    wide = [rows.to(torch.float32) for rows in (p, q)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampler, "check_laws", lambda *_: None)  # rounded to 8 bits they do not sum to one in float32
        long = accept_reject(wide[0], ids, wide[1], rule, stream(17, "u"))
    assert torch.equal(short.ids, long.ids)


def test_a_rejection_without_recovery_weight_emits_the_draft(monkeypatch):
    """p = q up to rounding, and u so near 1 that the draft is refused: (q - p)_+ is a zero row."""
    q = torch.full((1, 2, 4), 0.25)
    p = q[:, :1].clone()
    p[0, 0, 2] = torch.nextafter(p[0, 0, 2], torch.tensor(1.0))
    last = torch.tensor([[1 - 2.0**-53, 0.5]], dtype=torch.float64)
    monkeypatch.setattr(sampler, "uniform", lambda *_: last)
    block = accept_reject(p, torch.tensor([[2]]), q, rules.SpS(), stream(0))
    assert block.ids.tolist() == [[2, -1]]
    assert block.n_accepted.tolist() == [0]


def test_the_sampler_reads_two_numbers_per_draft_and_one_row():
    """Rows beyond the place where a sequence is cut may hold anything: they are not read."""
    p, q = torch.zeros(1, 3, 4), torch.zeros(1, 4, 4)
    p[0, 0, 3], q[0, 0, 1] = 1.0, 1.0
    p[0, 1:], q[0, 1:] = math.nan, math.nan
    p[0, 1:, 0] = q[0, 1:, 0] = 0.5  # the drafts' own numbers are read
    ids = torch.tensor([[3, 0, 0]])
    assert accept_reject(p, ids, q, rules.Cactus(1.0), stream(0)).ids.tolist() == [[1, -1, -1, -1]]
