"""Names that the laboratory and the press share; nothing heavy is imported here, so that the press starts at once."""

TIERS = ("ci", "cpu", "gpu")
DEVICES = ("auto", "cpu", "cuda")

#: The keys of a row of the ledger, in order.
COLUMNS = (
    *("id", "paper", "kind", "statement", "source", "where", "paper_value", "tier", "device", "value", "low", "high"),
    *("n", "criterion", "verdict", "expected", "reason", "amends", "headline"),
)

#: The MIME type under which a chapter hands its findings to the press.
FINDINGS = "application/vnd.derived.findings+json"
