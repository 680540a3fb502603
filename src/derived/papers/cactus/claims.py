"""The chapter's claims and the experiments that they rest on, in the order of the page."""

from . import position, timing, trained

CLAIMS = (*position.CLAIMS, *trained.CLAIMS, *timing.CLAIMS)
EXPERIMENTS = (
    position.RandomPairs,
    position.FlatVerifier,
    trained.TrainedPair,
    trained.AmendedInterpolation,
    timing.PairTime,
    timing.SamplerTime,
)
