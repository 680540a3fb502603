"""The chapter's claims and the experiments that they rest on, in the order of the page."""

from . import cost, layer, leak, rules, trained

CLAIMS = (*layer.CLAIMS, *leak.CLAIMS, *cost.CLAIMS, *trained.CLAIMS)
EXPERIMENTS = (
    leak.Leak,
    cost.Overhead,
    trained.Trees,
    trained.Sooner,
    trained.TunedListOps,
    trained.EqualWork,
    trained.LongLists,
    trained.Speeches,
    rules.Rules,
)
