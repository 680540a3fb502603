"""The chapter's claims and the experiments that they rest on."""

from . import collapse, errata, noise, odds, slow

CLAIMS = (*odds.CLAIMS, *collapse.CLAIMS, *noise.CLAIMS, *slow.CLAIMS, *errata.CLAIMS)
EXPERIMENTS = (
    odds.Odds,
    odds.Deep,
    odds.TwoTokens,
    odds.WeakError,
    collapse.Cold,
    collapse.Brakes,
    noise.PrivateNoise,
    noise.Prompts,
    slow.SlowPaths,
    slow.SlowSteps,
    slow.Wide,
    errata.Errata,
)
