"""The chapter's claims and the experiments that they rest on, in the order of the page."""

from . import first

CLAIMS = first.CLAIMS
EXPERIMENTS = (first.First,)
