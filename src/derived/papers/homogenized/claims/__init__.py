"""The chapter's ledger: the claims of all topics in the order of the chapter, and every experiment."""

from ..experiments.clock import Clock, Stack, TwoTokens, WeakError
from ..experiments.collapse import Cold, FinalRate, Freezing, Hot
from ..experiments.kernel import KernelDistance, Lipschitz
from ..experiments.layer import HeadMoments, OneLayer, OneToken
from ..experiments.limits import Flows, Interpolation, SelfAttention
from ..experiments.prompts import PrivateNoise, Prompts
from ..experiments.slow import Cosines, FiniteBeta, SlowDrift, SlowPaths
from . import clock, collapse, kernel, layer, limits, prompts, slow

NUMBERS = (*range(1, 14), 18, 22, *range(14, 18), 19, 20)  # HT-1, HT-2, … in the order of the chapter
TOPICS = (layer, clock, collapse, kernel, slow, limits, prompts)

CLAIMS = tuple(
    sorted(
        (claim for topic in TOPICS for claim in topic.CLAIMS),
        key=lambda claim: NUMBERS.index(int(claim.id.removeprefix("HT-").split(".")[0])),
    )
)
EXPERIMENTS = (
    *(OneToken, HeadMoments, OneLayer, Cosines, SlowDrift, FiniteBeta, Lipschitz, KernelDistance),
    *(TwoTokens, WeakError, Hot, Cold, Freezing, FinalRate, SlowPaths, Clock),
    *(Flows, SelfAttention, Interpolation, Prompts, PrivateNoise, Stack),
)
