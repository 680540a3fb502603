"""What a chapter hands to the press: the keys of a row of the ledger and how its numbers are written.

Nothing heavy is imported here, so that the press starts at once.
"""

#: The keys of a row of the ledger as a chapter makes it, in order.
COLUMNS = (
    *("id", "paper", "kind", "statement", "plain", "source", "where", "paper_value", "tier", "device", "seed", "value"),
    *("low", "high", "unit", "n", "criterion", "accept", "configuration", "terms", "verdict", "reason", "amends"),
    *("experiment", "proof", "headline"),
)

#: The MIME type under which a chapter hands its findings to the press.
FINDINGS = "application/vnd.derived.findings+json"


def interval(low: float | None, high: float | None) -> str:
    """An interval of a row of the ledger, where an end at infinity is None; empty where there is no interval."""
    if low is None and high is None:
        return ""
    left, right = "(-∞" if low is None else f"[{low:.4g}", "∞)" if high is None else f"{high:.4g}]"
    return f"{left}, {right}"
