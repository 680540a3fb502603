"""The chapter's claims and the experiments that they rest on."""

from derived.lab.claims import collect

CLAIMS, EXPERIMENTS = collect(__name__)
