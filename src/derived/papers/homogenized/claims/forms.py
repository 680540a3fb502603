"""The shorthands of the chapter's claims.

Statements of version 1 of the paper reached us through a third-party formalisation; their source is ``digest``.
"""

from derived.lab.claims import Claim

CI, BOTH, CPU = {"ci": "holds"}, {"ci": "holds", "cpu": "holds"}, {"cpu": "holds"}
FAILS = {"ci": "fails", "cpu": "fails"}
INF = float("inf")
RECORDED = ("cpu", "gpu")
WITHIN = "99.9 % interval within"


def row(id: str, statement: str, criterion: str, experiment, measure, accept: tuple[float, float], **facts) -> Claim:
    """A statistic of ours, unless ``facts`` say otherwise."""
    facts = {"source": "ours", "where": "–", "paper_value": "–", "expected": BOTH, "kind": "statistic"} | facts
    return Claim(
        id=id,
        statement=statement,
        criterion=criterion,
        experiment=experiment,
        measure=measure,
        accept=accept,
        **facts,
    )


def retold(label: str, value: str = "–") -> dict[str, str]:
    """The source of a statement of version 1, by its label."""
    return {"source": "digest", "where": f"version 1, {label}", "paper_value": value}
