"""The names of tiers and devices; in the hash of every record, so nothing else stands here."""

TIERS = ("ci", "cpu", "gpu")
DEVICES = ("auto", "cpu", "cuda")
