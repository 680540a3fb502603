"""The chapter's claims and the experiments that they rest on, topic by topic."""

from ..experiments.attention import EqualMarginals, Readout, SelfFed, Tilted
from ..experiments.components import Absorbed, Blocks, EarlyData, FiniteChains, LogOdds, Mixtures, RemotePast
from ..experiments.continual import Approximation, Average, BestStep, Forgetting, Learners, Tracking
from ..experiments.memory import Freezes, LongRange, PhaseDiagram, Renewal, SamplePaths, Shuffled
from ..experiments.rates import Averaged, Central, Covariance, Exponents, InfiniteOrder
from ..experiments.streams import Bernoulli, Markov
from ..experiments.switching import Switches
from . import attention, components, continual, memory, rates, streams, switching

CLAIMS = (
    *components.COMPONENTS,  # SA-1, 2
    *components.REMOTE,  # 3
    *rates.CLAIMS,  # 4, 5
    *memory.CLAIMS,  # 6, 7
    *attention.CLAIMS,  # 8, 9
    *streams.CLAIMS,  # 10
    *continual.CLAIMS,  # 11
    *switching.CLAIMS,
    components.INCLUSION,  # 12
    continual.PROGRAMME,  # 13
)
EXPERIMENTS = (
    *(FiniteChains, Absorbed, Mixtures, RemotePast, EarlyData, LogOdds, Blocks),
    *(Exponents, Averaged, Central, Covariance, InfiniteOrder),
    *(Renewal, Freezes, Shuffled, PhaseDiagram, SamplePaths, LongRange),
    *(Readout, Tilted, EqualMarginals, SelfFed, Bernoulli, Markov),
    *(Tracking, Average, Approximation, Forgetting, BestStep, Learners, Switches),
)
