"""The chapter's ledger: all claims in the order of the page, and the experiments that they rest on."""

from ..experiments.clock import Overhead
from ..experiments.information import Averages, Budgets, Memory, Pruning, Quadratures, SmallSamples
from ..experiments.kernel import Forms, RandomHeads, Splits
from ..experiments.layer import Agreement, Contents, Convolution, Entries, MultiplyAdds
from ..experiments.leak import Causality, Leak
from ..experiments.listops import Evaluators, Rules
from ..experiments.trained import LongListOps, Reviews, Shapes, ShortListOps, TunedListOps
from . import clock, information, kernel, layer, leak, listops, trained

CLAIMS = (
    *(*layer.COST, *layer.AGREEMENT, *leak.CLAIMS, *kernel.PSD, *kernel.PARTS, *layer.CONTENTS),
    *(*information.CORRECTION, *information.AVERAGES, *information.DECAY, *listops.CLAIMS),
    *(*trained.TASKS, *trained.EARNED, *clock.CLAIMS, *trained.LEVELS),
)
EXPERIMENTS = (
    *(Entries, MultiplyAdds, Agreement, Causality, Contents, Convolution),
    *(Forms, RandomHeads, Splits, Budgets, Quadratures, Averages, SmallSamples, Memory, Pruning, Evaluators, Rules),
    *(Leak, Overhead, ShortListOps, TunedListOps, LongListOps, Shapes, Reviews),
)
