"""The names of tiers and devices. It is in the hash of every record, so it holds nothing else."""

TIERS = ("ci", "cpu", "gpu")
DEVICES = ("auto", "cpu", "cuda")
