"""Names of tiers and devices, and the words in which pages call a tier."""

TIERS = ("ci", "cpu", "gpu")
SIZES = {"ci": "small, in this build", "cpu": "recorded on a CPU", "gpu": "recorded on a GPU"}
DEVICES = ("auto", "cpu", "cuda")
