"""The chapter's ledger: the claims of all topics, a file for each, and the experiments that they rest on."""

from ..experiments.identities import ClosedForms, Ends
from ..experiments.images import GeneratedImages
from ..experiments.networks import Networks
from ..experiments.overlap import DeepOverlap
from ..experiments.regimes import Regimes
from ..experiments.training import Trainability
from ..experiments.vision import ManyTokens, VisionTransformer
from ..experiments.window import Window
from . import identities, images, networks, overlap, regimes, training, vision, window

CLAIMS = (
    *identities.CLAIMS,
    *regimes.EXPONENTS,
    *overlap.CLAIMS,
    *regimes.ATTENTION,
    *window.CLAIMS,
    *networks.CLAIMS,
    *vision.CLAIMS,
    *images.CLAIMS,
    *training.CLAIMS,
)
EXPERIMENTS = (
    *(ClosedForms, Ends, Regimes, Window, Networks, DeepOverlap, ManyTokens, VisionTransformer),
    *(GeneratedImages, Trainability),
)
