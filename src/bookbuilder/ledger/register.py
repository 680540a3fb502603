"""The verdict that is expected of a claim, entered in results/ledger.json before its first run."""

import datetime
import json
from collections.abc import Sequence
from typing import Any

from bookbuilder.ledger import ledger
from bookbuilder.ledger.recording import claims_of
from bookbuilder.notebook import notebook_claims
from bookbuilder.paths import Repo, UserError, write_whole
from bookbuilder.run.driver import read_notebook
from derived.lab.claims import Claim
from derived.lab.study import terms

VERDICTS = ("holds", "fails", "refuted", "undecided", "reported")


def register(repo: Repo, paper: str, verdict: str, ids: Sequence[str], tier: str, again: bool = False) -> None:
    """Enter what is expected of claims at a tier, with the day and with their terms as the code has them now.

    Of a claim that has a verdict, or another expectation and a record, the expectation alone changes, if asked for
    ``again``. UserError otherwise, and for a verdict or claim that there is not.
    """
    if verdict not in VERDICTS:
        raise UserError(f"{verdict!r} is no verdict to expect: use {', '.join(VERDICTS)}")
    known = {claim.id: claim for claim in claims_of(paper).CLAIMS if tier in _tiers(claim)}
    rows = {ledger.key(row): row for row in ledger.committed(repo)}
    for id in ids:
        if id not in known:
            raise UserError(f"{paper} has no claim {id} at tier {tier}")
        old = rows.get((paper, id, tier))
        judged = old is not None and ledger.has_run(old)
        other = old is not None and old["expected"] not in (None, verdict) and _recorded(repo, known[id], paper, tier)
        if not judged:
            rows[paper, id, tier] = _new(repo, known[id], paper, tier, verdict)
        if not (judged or other):
            continue
        if not again:
            found = "verdict" if judged else "record"
            raise UserError(
                f"{id} has a {found} at tier {tier}; to expect another verdict add --again, and say why in the commit"
            )
        rows[paper, id, tier]["expected"] = verdict
    write_whole(repo.ledger, json.dumps([*rows.values()], indent=1) + "\n")


def _tiers(claim: Claim) -> set[str]:
    """The tiers at which a claim is judged."""
    if claim.kind == "on page":
        return {"ci"}
    return {*claim.judged_at} & {*claim.experiment.tiers} if claim.experiment else set()


def _recorded(repo: Repo, claim: Claim, paper: str, tier: str) -> bool:
    """Tell whether a record that decides a claim at a tier is there, so that its rows may have been seen."""
    return bool(claim.experiment) and (repo.root / "results" / paper / claim.experiment.__name__ / tier).is_dir()


def _new(repo: Repo, claim: Claim, paper: str, tier: str, verdict: str) -> dict[str, Any]:
    """A row of the ledger without a verdict."""
    facts = (
        notebook_claims.decided(read_notebook(repo, paper))
        if claim.kind == "on page"
        else {claim.id: terms(claim, tier)}
    )
    if claim.id not in facts:
        raise UserError(f"no check cell of {paper} can decide {claim.id} yet: run: make site CHAPTERS={paper}")
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    row = {"id": claim.id, "paper": paper, "tier": tier, "expected": verdict, "registered": today, "changed": []}
    fixed = {name: facts[claim.id][name] for name in (*ledger.TERMS, "terms")}
    fixed["unit"] = facts[claim.id].get("unit", claim.unit)
    return dict.fromkeys(ledger.COMMITTED) | fixed | row
