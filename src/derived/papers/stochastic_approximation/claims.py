"""The chapter's claims and the experiments that they rest on, topic by topic."""

from . import attention, memory, switching, trained, worlds

CLAIMS = (*worlds.CLAIMS, *memory.CLAIMS, *attention.CLAIMS, *trained.CLAIMS, *switching.CLAIMS)
EXPERIMENTS = (
    *worlds.EXPERIMENTS,
    *memory.EXPERIMENTS,
    *attention.EXPERIMENTS,
    *trained.EXPERIMENTS,
    *switching.EXPERIMENTS,
)
