"""A verifier that somebody trained, Gemma 3 270M, with the drafts that people use who have no second model.

table    counts of its tokens in other novels (derived.papers.cactus.data.ngrams)
lookup   what followed earlier in the text when it last had this ending, for certain
exit     its own first layers with a trained head (derived.papers.cactus.data.drafts)
alien    what the early exit proposes at the same place of another page: the language, and not the text
self     the verifier's own distribution, cut to as many tokens as the others propose

p, q     distributions of draft and verifier at a position, on the draft's support and one token for all others
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from derived.lab import measure
from derived.lab.claims import RECORDED, Claim, at_least, identity, reported, statistic, within
from derived.lab.experiment import Experiment, rows
from derived.lab.plot import BLUE, DASHED, GREEN, MUTED, RED, beside, mean_and_reach, panel_label
from derived.lab.real import models, texts
from derived.lab.rng import stream

from .data.drafts import FromCounts, early_exit, remembering, trained_head
from .data.ngrams import MOST, Ngrams, lookup, lumped
from .matching import match, rule_of
from .model.divergences import bisected, divergence
from .model.exact import acceptance_rate, output_law
from .model.generate import JudgedBlock, speculative_generate
from .model.rules import Cactus, Rule, SpS

JUDGED = ("Persuasion", "Northanger Abbey")  # no draft learns from them
LEARNED_BOOKS = ("Pride and Prejudice", "Sense and Sensibility", "Mansfield Park", "Emma")
SPEECHES = (
    "Fellow-Citizens of the Senate and House of Representatives: In meeting you again I feel much satisfaction in "
    "being able to repeat my congratulations on the favorable prospects which continue to distinguish our public",
    "To the Senate and House of Representatives: The people of this country continue to enjoy great prosperity. "
    "Undoubtedly there will be ebb and flow in such prosperity, and this ebb and flow will be felt more or less",
    "I address you, the Members of the Seventy-seventh Congress, at a moment unprecedented in the history of the "
    "Union. I use the word unprecedented because at no previous time has American security been as seriously",
    "To the Congress of the United States: The State of the Union is sound. Our economy is recovering from a "
    "recession. A national energy plan is in place and our dependence on foreign oil is",
)  # openings of 1790, 1905, 1941 and 1981, in the public domain
DRAFTS = ("table", "lookup", "exit")
REFERENCES = ("alien", "self")  # the worst and the best that one may think of
PAGE_TOKENS = 256  # tokens of a page that the head learns from
NEARLY_ALL = 0.99
LARGEST = 1e8  # of the budgets that are tried
SHORT = {"texts": 4, "length": 80, "first": 64, "others": 1, "taught": 4}


class Desk(NamedTuple):
    """The verifier, its tokens, and the drafts that learned."""

    gemma: models.Pretrained
    table: Ngrams
    early: torch.nn.Module


@dataclass(frozen=True, kw_only=True)
class WithGemma(Experiment):
    """What these experiments share: the verifier, and drafts that learned from four novels which are not judged."""

    needs: ClassVar = ("gemma", "austen")

    others: int = 4
    taught: int = 24
    depth: int = 6

    def desk(self, books: dict[str, str]) -> Desk:
        """Gemma with the table of counts and the early exit."""
        gemma = models.load("gemma")
        known = torch.cat([gemma.tokens(books[title])[0] for title in LEARNED_BOOKS[: self.others]])
        head = trained_head(gemma.model, pages_of(known, self.taught, PAGE_TOKENS), self.depth)
        return Desk(gemma, Ngrams(known.tolist()), early_exit(gemma.model, head, self.depth, sum(MOST)))


def pages_of(tokens: Tensor, count: int, length: int) -> Tensor:
    """Pages of a book at equal distances, (count, length), each behind the mark of beginning."""
    starts = torch.linspace(1, len(tokens) - length, count).long()
    return torch.stack([torch.cat([tokens[:1], tokens[start : start + length - 1]]) for start in starts.tolist()])


@dataclass(frozen=True, kw_only=True)
class Pages(WithGemma):
    """Rules on the next-token distributions of Gemma over pages, temperature 1.

    Each budget of Cactus, and lenience and interpolation set to the same mean acceptance: on the even pages for the odd
    ones, and the reverse. The references are judged by exact sampling alone. Rows: one per kind of text (``novel``),
    page, draft, rule and budget; means over the positions at which the draft proposes something. ``gap`` is the worst
    of |gain - TV| over them, ``bound`` its rounding; ``enough`` the smallest budget with which Cactus keeps 99 of 100
    drafts of the page, ``over`` the number of over-drafted tokens.
    """

    texts: int = 24
    length: int = 200
    first: int = 168
    deltas: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0)

    def judged(self, tokens: Callable[[str], Tensor], books: dict[str, str]) -> Iterator[tuple[str, Tensor]]:
        """Each kind of text with its pages (texts, length)."""
        raise NotImplementedError

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        books = texts.austen()
        desk = self.desk(books)
        tables = []
        for kind, pages in self.judged(desk.gemma.tokens, books):
            laws = self._laws(desk, pages)
            tables += [self._judged(draft, *laws[draft]).assign(novel=kind) for draft in (*DRAFTS, *REFERENCES)]
        return pd.concat(tables, ignore_index=True)

    def _judged(self, draft: str, page: Tensor, p: Tensor, q: Tensor) -> pd.DataFrame:
        """The rows of one draft; ``page`` says of which page each position is."""
        halves = [self._half(draft, page, p, q, page % 2 == half) for half in (0, 1)]
        bound = 8 * (sum(MOST) + 1) * torch.finfo(torch.float64).eps  # sums of that many terms of at most one
        return pd.concat(halves).assign(draft=draft, bound=bound)

    def _half(self, draft: str, page: Tensor, p: Tensor, q: Tensor, own: Tensor) -> pd.DataFrame:
        """The rows of the pages that are ``own``; the others set the knobs."""
        other, page, p, q = (p[~own], q[~own]), page[own], p[own], q[own]
        exact = acceptance_rate(p, q, SpS())
        enough = torch.zeros_like(exact)
        for one in page.unique():
            enough[page == one] = smallest_budget(p[page == one], q[page == one])
        shared = {"text": page, "exact": exact, "over": ((p > q) & (q > 0)).sum(dim=-1), "enough": enough}
        tables = []
        for name, delta, rule in self._rules(draft, *other):
            accepted = acceptance_rate(p, q, rule)
            emitted = torch.cat([output_law(*pair, rule) for pair in zip(p.split(64), q.split(64), strict=True)])
            tv = divergence(emitted, q, "tv")
            columns = {"acceptance": accepted, "tv": tv, "kl": divergence(emitted, q)}
            columns |= {"gap": (accepted - exact - tv).abs()}
            each = pd.DataFrame({key: values.numpy() for key, values in (shared | columns).items()}).groupby("text")
            means = each.mean().assign(gap=each["gap"].max(), drafted=each.size() / (self.length - self.first))
            tables.append(means.reset_index().assign(rule=name, delta=delta))
        return pd.concat(tables)

    def _rules(self, draft: str, p: Tensor, q: Tensor) -> Iterator[tuple[str, float, Rule]]:
        """Exact sampling, and for a draft that people use each budget of Cactus with its rivals, matched here."""
        yield "exact", 0.0, SpS()
        for delta in self.deltas if draft in DRAFTS else ():
            yield "cactus", delta, Cactus(delta)
            target = acceptance_rate(p, q, Cactus(delta)).mean().item()
            for name in ("lenience", "interp"):
                yield name, delta, rule_of(name, match(name, p, q, target))

    def _laws(self, desk: Desk, pages: Tensor) -> dict[str, tuple[Tensor, Tensor, Tensor]]:
        """By draft: which page a position is of, draft and verifier there (positions, support)."""
        gemma, table, early = desk
        found = {draft: [] for draft in (*DRAFTS, *REFERENCES)}
        alien = likely(self._next(early, pages[-1]))
        for number, tokens in enumerate(pages):
            verifier, own = self._next(gemma.model, tokens), likely(self._next(early, tokens))
            itself = likely(verifier)
            for place, q in enumerate(verifier):
                before = tokens[: self.first + place].tolist()
                proposals = {"table": table.proposals(before), "lookup": lookup(before)}
                proposals |= {"exit": own[place], "alien": alien[place], "self": itself[place]}
                for draft, proposed in proposals.items():
                    if proposed:
                        width = 2 if draft == "lookup" else sum(MOST) + 1
                        found[draft].append((torch.tensor(number), *lumped(proposed, q, width)))
            alien = own
        return {draft: tuple(map(torch.stack, zip(*pairs, strict=True))) for draft, pairs in found.items()}

    @torch.no_grad()
    def _next(self, model: torch.nn.Module, tokens: Tensor) -> Tensor:
        """Next-token distributions at the judged positions of a page, (positions, V)."""
        num_judged = self.length - self.first
        return model(tokens[None], logits_to_keep=num_judged + 1).logits[0, :-1].double().softmax(dim=-1)


@dataclass(frozen=True, kw_only=True)
class Novels(Pages):
    """CAC-8, 12, 13: pages of two novels, which no draft learned from. Rows as there."""

    novels: tuple[str, ...] = JUDGED

    tiers: ClassVar = {"ci": {"novels": JUDGED[:1], **SHORT}, "cpu": {}}

    def judged(self, tokens, books):
        for novel in self.novels:
            yield novel, pages_of(tokens(books[novel])[0], self.texts, self.length)


@dataclass(frozen=True, kw_only=True)
class Speeches(Pages):
    """CAC-12, 13: the middle page of each of ``texts`` speeches on the State of the Union, at equal distances in their
    order from the first to the last, while drafts have learned from novels. Rows as there."""

    needs: ClassVar = ("gemma", "austen", "stdlib")
    tiers: ClassVar = {"ci": SHORT, "cpu": {}}

    def judged(self, tokens, books):
        whole = texts.speeches()
        chosen = [whole[place].text for place in torch.linspace(0, len(whole) - 1, self.texts).long().tolist()]
        yield "speeches", torch.cat([pages_of(tokens(text)[0], 3, self.length)[1:2] for text in chosen])


def likely(laws: Tensor) -> list[dict[int, float]]:
    """The most likely tokens of each row, as many as the table may propose, with their probabilities."""
    best = laws.topk(sum(MOST), dim=-1)
    return [dict(zip(*row, strict=True)) for row in zip(best.indices.tolist(), best.values.tolist(), strict=True)]


def smallest_budget(p: Tensor, q: Tensor) -> float:
    """The smallest budget with which Cactus keeps 99 of 100 drafts, on average over the positions; at most LARGEST."""

    def too_small(exponent: Tensor) -> Tensor:
        return torch.tensor(acceptance_rate(p, q, Cactus(10 ** exponent.item())).mean().item() < NEARLY_ALL)

    ends = torch.tensor([-8.0, 8.0], dtype=torch.float64)
    return min(10 ** bisected(too_small, *ends, halvings=20)[1].item(), LARGEST)


@dataclass(frozen=True, kw_only=True)
class Written(WithGemma):
    """CAC-8, 12: ``speculative_generate`` with Gemma as the verifier goes on from pages and from openings of speeches.

    Rows: one per prompt, draft and budget. Of the drafts that were judged (those after a rejection are not): ``tries``,
    ``kept``, and by the two distributions at each how many the rule keeps, ``expected``, and exact sampling,
    ``by_exact``. ``passes`` of the verifier, and ``surprise``, nats per token that Gemma assigns to what was written.
    """

    pages: int = 4
    openings: int = len(SPEECHES)
    prompt: int = 48
    m: int = 4
    new: int = 16
    deltas: tuple[float, ...] = (0.0, 1.0)

    tiers: ClassVar = {
        "ci": {"pages": 1, "openings": 1, "prompt": 16, "new": 4, "others": 1, "taught": 2, "deltas": (1.0,)},
        "cpu": {},
    }

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        books = texts.austen()
        gemma, table, early = self.desk(books)
        prompts = [
            page for novel in JUDGED for page in pages_of(gemma.tokens(books[novel])[0], self.pages, self.prompt)
        ]
        prompts += [gemma.tokens(opening)[0] for opening in SPEECHES[: self.openings]]
        counted = {"table": table.proposals, "lookup": lookup}
        drafts = {name: FromCounts(gemma.model.config, proposals) for name, proposals in counted.items()}
        verifier, tables = remembering(gemma.model), []
        for name, draft in (drafts | {"exit": early}).items():
            for delta in self.deltas:
                tally = Tally(len(prompts), Cactus(delta))
                speculative_generate(
                    *(draft, verifier, [each.tolist() for each in prompts]),
                    **{"rule": tally.rule, "m": self.m, "max_new_tokens": self.new, "temperature": 1.0, "stop_ids": ()},
                    **{"generator": stream(seed, "written", name, str(delta)), "on_block": tally.add},
                )
                tables.append(rows({"draft": name, "delta": delta, "prompt": range(len(prompts))}, tally.columns()))
        return pd.concat(tables, ignore_index=True)


class Tally:
    """What blocks kept, by prompt, beside what their distributions say."""

    def __init__(self, num_prompts: int, rule: Rule) -> None:
        names = ("tries", "kept", "expected", "by_exact", "passes", "tokens", "surprise")
        self.rule, self.sums = rule, {name: torch.zeros(num_prompts, dtype=torch.float64) for name in names}

    def add(self, block: JudgedBlock) -> None:
        """Count one block of the texts that were still being written."""
        m = block.draft_laws.shape[1]
        p, support = block.draft_laws.double().topk(min(sum(MOST), block.draft_laws.shape[-1]), dim=-1)
        q = block.verifier_laws[:, :m].gather(-1, support).double()
        place = torch.arange(m)
        judged = place <= block.n_accepted[:, None]
        in_text = torch.arange(m + 1) < block.counts[:, None]
        own = block.verifier_laws.gather(-1, block.ids.clamp(min=0)[..., None])[..., 0].double()
        news = {
            "tries": judged.sum(dim=-1),
            "kept": block.n_accepted,
            "expected": (torch.minimum(p, self.rule.gamma(p, q)).sum(dim=-1) * judged).sum(dim=-1),
            "by_exact": (torch.minimum(p, q).sum(dim=-1) * judged).sum(dim=-1),
            "passes": torch.ones_like(block.counts),
            "tokens": block.counts,
            "surprise": -(own.where(in_text, 1.0).log()).sum(dim=-1),
        }
        for name, values in news.items():
            self.sums[name].index_add_(0, block.texts, values.double())

    def columns(self) -> dict[str, Tensor]:
        """The sums, with the surprise per token."""
        return self.sums | {"surprise": self.sums["surprise"] / self.sums["tokens"]}


# Claims: CAC-7, 8, 12 and 13 on a verifier that somebody trained; the unit is the page. Criteria were written before
# the record.

PAGE = ["novel", "text"]
GEMMA = {
    "made_of": "real weights",
    "where": "Gemma 3 270M on pages of *Persuasion* and *Northanger Abbey*; drafts learned from four other novels",
    "horizon": "48 pages of 200 tokens",
}
SPOKEN = {
    "made_of": "real weights",
    "where": "Gemma 3 270M on pages of State of the Union speeches; drafts learned from four novels of Jane Austen",
    "horizon": "24 pages of 200 tokens",
}
LEARNED = "(draft == 'table' or draft == 'exit')"


def closer(id: str, delta: float) -> Claim:
    """Lenience at Cactus' mean acceptance is closer to the verifier than Cactus; interpolation must not be."""
    return statistic(
        id,
        rf"When Gemma 3 270M reads two novels of Jane Austen, drafted from counts of four others, lenience at the mean "
        rf"acceptance of Cactus with $\delta={delta:g}$ emits a distribution nearer to Gemma's, in KL per token, than Cactus does.",
        Novels,
        less_than_cactus("lenience", f"draft == 'table' and delta == {delta}"),
        "KL of Cactus less that of lenience, mean over pages",
        at_least(0.001),
        control=less_than_cactus("interp", f"draft == 'table' and delta == {delta}"),
        unit="nats per token",
        judged_at=RECORDED,
        **GEMMA | {"where": GEMMA["where"] + "; even pages set the knobs for the odd ones, and the reverse"},
    )


def less_than_cactus(rule: str, where: str) -> measure.Measure:
    """How much less KL than Cactus a rule spends, mean over pages."""
    both = f"{where} and (rule == 'cactus' or rule == '{rule}')"
    return measure.mean("kl * ((rule == 'cactus') * 2 - 1) * 2", both, unit=PAGE)


def less_than_lenience(where: str) -> measure.Measure:
    """How much less KL than lenience Cactus spends, mean over pages."""
    both = f"{where} and (rule == 'cactus' or rule == 'lenience')"
    return measure.mean("kl * ((rule == 'lenience') * 2 - 1) * 2", both, unit=PAGE)


def needed(where: str, **facts) -> measure.Measure:
    """The decimal logarithm of the budget with which 99 of 100 drafts of a page are kept, mean over pages."""

    def exponent(rows: pd.DataFrame) -> pd.Series:
        return np.log10(rows["enough"])

    return measure.mean(exponent, f"rule == 'exact' and {where}", unit=PAGE, **facts)


def overspent(where: str, **facts) -> measure.Measure:
    """KL of what is emitted over the most that a target of the budget may have, mean over pages at the budget 0.01."""
    return measure.mean(
        f"kl / {float(np.log1p(0.02))!r}", f"rule == 'cactus' and delta == 0.01 and {where}", unit=PAGE, **facts
    )


EACH = {"by": ["draft"], "decides": measure.lowest}
CLAIMS = (
    statistic(
        "CAC-7.f",
        r"When Gemma 3 270M is drafted by word counts or by its own first six layers, what Cactus emits with "
        r"$\delta=0.01$ lies farther from it, in KL per token, than $\ln(1+2\delta)$, which bounds every target.",
        Novels,
        overspent(LEARNED, **EACH),
        r"KL over $\ln(1+2\delta)$, mean over pages, the draft with the least",
        at_least(1.0),
        control=overspent("draft == 'lookup'"),  # one token is over-drafted: what is emitted is the target
        unit="of the bound of targets",
        judged_at=RECORDED,
        **GEMMA,
    ),
    identity(
        "CAC-8.c",
        "On a trained verifier, too, each drafted position pays for the acceptance that it gains beyond exact sampling with "
        "exactly as much total variation.",
        Novels,
        measure.worst("gap", "bound", "rule != 'exact'"),
        **GEMMA,
    ),
    statistic(
        "CAC-8.d",
        r"When `speculative_generate` writes with Gemma 3 270M as verifier over its 262,144 tokens, it keeps as many "
        r"drafts as the two distributions at each judged position say.",
        Written,
        measure.mean("(kept - expected) / tries", "delta == 1", unit=["prompt"]),
        "share of drafts kept less what is expected, mean over prompts",
        within(0, 0.1),
        control=measure.mean("(kept - by_exact) / tries", "delta == 1", unit=["prompt"]),
        unit="share of drafts",
        judged_at=RECORDED,
        **GEMMA
        | {
            "where": "pages of two novels, and openings of speeches on the State of the Union, go on; a mean over three drafts, whose errors may cancel",
            "horizon": "16 tokens after each of 12 prompts",
        },
    ),
    reported(
        "CAC-12.k",
        r"On a trained verifier with a draft of word counts Cactus keeps this share of the drafts at $\delta=1$.",
        Novels,
        measure.mean("acceptance", "draft == 'table' and rule == 'cactus' and delta == 1", unit=PAGE),
        "share of drafts",
        **GEMMA,
    ),
    statistic(
        "CAC-12.l",
        r"With each of three drafts that need no second model, word counts, prompt lookup and its own first six layers, "
        r"Gemma 3 270M is still asked at $\delta=1$: to keep 99 of 100 drafts of a page Cactus needs a larger budget.",
        Novels,
        needed("(draft == 'lookup' or draft == 'table' or draft == 'exit')", **EACH),
        r"$\log_{10}$ of the smallest such $\delta$, mean over pages, the draft with the least",
        at_least(0.0),
        control=needed("draft == 'self'"),
        unit="decimal logarithm",
        judged_at=RECORDED,
        **GEMMA,
    ),
    statistic(
        "CAC-12.m",
        r"On speeches, too, which are no novels, Gemma 3 270M is still asked at $\delta=1$ with each of the three drafts: to "
        r"keep 99 of 100 drafts of a page Cactus needs a larger budget.",
        Speeches,
        needed("(draft == 'lookup' or draft == 'table' or draft == 'exit')", **EACH),
        r"$\log_{10}$ of the smallest such $\delta$, mean over speeches, the draft with the least",
        at_least(0.0),
        control=needed("draft == 'self'"),
        unit="decimal logarithm",
        judged_at=RECORDED,
        **SPOKEN,
    ),
    closer("CAC-13.h", 0.01),
    closer("CAC-13.i", 1.0),
    statistic(
        "CAC-13.j",
        r"When the draft is the verifier's own first six layers, too, lenience stays nearer to Gemma 3 270M than Cactus with "
        r"$\delta=0.01$ at equal mean acceptance.",
        Novels,
        less_than_cactus("lenience", "draft == 'exit' and delta == 0.01"),
        "KL of Cactus less that of lenience, mean over pages",
        at_least(0.001),
        control=less_than_cactus("interp", "draft == 'exit' and delta == 0.01"),
        unit="nats per token",
        judged_at=RECORDED,
        **GEMMA | {"where": GEMMA["where"] + "; the control, interpolation, is itself undecided on so few pages"},
    ),
    statistic(
        "CAC-13.k",
        r"With prompt lookup, whose draft is certain, what Cactus emits is its target, and at $\delta=1$ it lies nearer to "
        r"Gemma 3 270M than what lenience emits at equal mean acceptance.",
        Novels,
        less_than_lenience("draft == 'lookup' and delta == 1"),
        "KL of lenience less that of Cactus, mean over pages",
        at_least(0.0),
        control=less_than_lenience("draft == 'exit' and delta == 1"),
        unit="nats per token",
        judged_at=RECORDED,
        **GEMMA,
    ),
    statistic(
        "CAC-13.l",
        r"On speeches, too, lenience stays nearer to Gemma 3 270M than Cactus with $\delta=0.01$ at equal mean acceptance, "
        r"when the draft is word counts of novels.",
        Speeches,
        less_than_cactus("lenience", "draft == 'table' and delta == 0.01"),
        "KL of Cactus less that of lenience, mean over speeches",
        at_least(0.001),
        control=less_than_cactus("interp", "draft == 'table' and delta == 0.01"),
        unit="nats per token",
        judged_at=RECORDED,
        **SPOKEN,
    ),
)


# Figures: Rules on a trained verifier: what is kept, and how far the text goes for it.

RULES = {"interp": (GREEN, "s", "interpolation"), "cactus": (RED, "o", "Cactus"), "lenience": (BLUE, "^", "lenience")}


def kept_and_spent(rows: pd.DataFrame) -> Figure:
    """KL per drafted token against the share of drafts kept, means over texts; rows of ``Novels``."""
    figure, ax = plt.subplots(figsize=(5.2, 3.4))
    rows = rows[rows["recorded"]] if rows["recorded"].any() else rows
    means = rows[rows["draft"] == "table"].groupby(["rule", "delta"])[["acceptance", "kl"]].mean()
    exact = means.loc["exact"].iloc[0]
    said = []
    for rule, (color, marker, name) in RULES.items():
        course = pd.concat([exact.to_frame().T, means.loc[rule]])
        ax.plot(course["acceptance"], course["kl"], color=color, marker=marker)
        last = course.iloc[-1]
        beside(ax, last["acceptance"], last["kl"], name, color)
        said.append(f"{name} {last['kl']:.2f}")
    for delta, point in means.loc["interp"].iterrows():  # the highest curve: nothing lies to its left
        beside(ax, point["acceptance"], point["kl"], rf"$\delta={delta:g}$", shift=(-4, 8), ha="right")
    ax.set(xlabel="share of drafts kept", ylabel="KL from the verifier, nats per token", ylim=(0, None))
    ax.margins(x=0.12)
    most = means.loc["cactus"]["acceptance"].iloc[-1]
    figure.set_label(
        f"Divergence against the share of drafts kept. Exact sampling keeps {exact['acceptance']:.2f} at none; where "
        f"Cactus with the largest budget keeps {most:.2f}, it is in nats per token: {', '.join(said)}."
    )
    return figure


DRAFT_MARKS = {
    "self": (MUTED, "its own 350 likeliest tokens"),
    "exit": (BLUE, "its first six layers"),
    "table": (RED, "word counts"),
    "lookup": (GREEN, "prompt lookup"),
    "alien": (MUTED, "six layers on another page"),
}


def no_longer_asked(rows: pd.DataFrame) -> Figure:
    """The budget with which Cactus keeps 99 of 100 drafts, a dot for each page, by draft; rows of ``Novels``."""
    figure, ax = plt.subplots(figsize=(5.2, 2.8))
    rows = rows[rows["recorded"]] if rows["recorded"].any() else rows
    found = np.log10(rows[rows["rule"] == "exact"].set_index("draft")["enough"])
    said, least = [], np.inf
    for height, (draft, (color, name)) in enumerate(DRAFT_MARKS.items()):
        pages = found.loc[[draft]].sort_values()
        middle, reach = mean_and_reach(pages)
        spread = height + 0.22 * np.linspace(-1, 1, len(pages))
        ax.plot(10**pages, spread, ".", color=color, markersize=4, alpha=0.6)
        ax.plot(10 ** (middle + reach * np.array([-1, 1])), [height, height], color=color)
        ax.plot(10**middle, height, "o", color=color)
        said.append(f"{name} {10**middle:.2g}")
        least = min(least, 10**middle) if color != MUTED else least
    ax.axvline(1.0, **DASHED)
    ax.set_yticks(range(len(DRAFT_MARKS)), [name for _, name in DRAFT_MARKS.values()])
    ax.set(xscale="log", xlabel=r"smallest $\delta$ that keeps 99 of 100 drafts")
    panel_label(ax, f"To keep 99 of 100 takes a budget of {least:.2g} and more")
    figure.set_label(f"The budget at which the verifier is hardly asked, geometric mean over pages: {', '.join(said)}.")
    return figure
