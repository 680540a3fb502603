"""The chapter's claims and the experiments that they rest on."""

from . import networks, real, regimes, trained, vision

CLAIMS = (*regimes.CLAIMS, *networks.CLAIMS, *vision.CLAIMS, *real.CLAIMS, *trained.CLAIMS)
EXPERIMENTS = (
    regimes.Crossing,
    regimes.Regimes,
    regimes.Window,
    networks.Networks,
    networks.SharpAttention,
    vision.ManyTokens,
    vision.VisionTransformer,
    real.Clothes,
    trained.Trained,
)
