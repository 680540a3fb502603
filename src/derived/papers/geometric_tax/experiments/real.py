"""Real data and real weights: human DNA under the reverse complement (GT-12), mutation walks of trained models of
antibodies (GT-10).

symbol   name      meaning                                                           axes
L        L         letters or residues that are pooled                               scalar
B        readout   a random linear map of the counts of 3-mers to six numbers        (64, 6)
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment, rows
from derived.lab.real.texts import antibody_genes
from derived.lab.rng import stream

from ..data import dna
from ..data.real import human_dna, stretches
from ..model.metrics import rdm_similarity

ACIDS = "ACDEFGHIKLMNPQRSTVWY"


@dataclass(frozen=True, kw_only=True)
class HumanStrands(Experiment):
    """GT-12: 2.2 million letters of human chromosome 6 (EMBL entry BA000025) in stretches, each cut into windows that a
    random readout of 3-mers reads on both strands. Beside them each window shuffled with its pairs kept, one chain
    fitted to the pairs of the stretch, and letters all alike. Rows: arm, replicate (a stretch), similarity (of RDMs,
    mean over readouts).
    """

    entry: str = "BA000025"
    L: int = 1000
    stretches: int = 11  # of about 200 windows, as generated DNA has
    readouts: int = 16

    tiers: ClassVar = {"ci": {"readouts": 4}, "cpu": {}}
    tiny: ClassVar = {"L": 4000, "readouts": 1}
    needs: ClassVar = ("emboss",)

    def conditions(self) -> list[dict]:
        return [{"arm": arm} for arm in ("human", "shuffled", "matched", "uniform")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        make: Callable[[Tensor, torch.Generator], Tensor] = {
            "human": lambda s, _: s,
            "shuffled": dna.dinucleotide_shuffle,
            "matched": dna.matched_chain,
            "uniform": lambda s, g: dna.dna_with_gc(torch.full((len(s),), 0.5), s.shape[1], g),
        }[condition["arm"]]
        found = []
        for place, human in enumerate(stretches(human_dna(self.entry), self.stretches, self.L)):
            s = make(human, stream(seed, "human", condition["arm"], place))
            B = torch.randn(self.readouts, 64, 6, generator=stream(seed, "human readout", place), dtype=dtype)
            here, there = (dna.kmer_counts(each, 3).to(dtype) @ B for each in (s, dna.reverse_complement(s)))
            centred = (each - each.mean(dim=1, keepdim=True) for each in (here, there))
            found.append(torch.stack([rdm_similarity(*pair) for pair in zip(*centred, strict=True)]).mean())
        return rows({"replicate": range(self.stretches)}, {"similarity": torch.stack(found)})


@dataclass(frozen=True, kw_only=True)
class AntibodyWalks(Experiment):
    """GT-10: walks of single mutations through germline genes of human antibodies, read by the two trained models of
    Sapiens (heavy chain, light chain) and by the same before training. Every encoder reads every window; the
    windows are in the proportion of the four published ones. Rows: encoder, L, gene, cosine (median over the walk of
    the cosine step of the mean state).
    """

    genes: int = 24
    steps: int = 12
    windows: tuple[int, ...] = (2, 6, 48, 96)
    species: str = "human"

    tiers: ClassVar = {"ci": {"genes": 8}, "cpu": {"genes": 48, "steps": 24}}
    tiny: ClassVar = {"genes": 3, "steps": 2}
    needs: ClassVar = ("sapiens", "anarci")
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"encoder": encoder} for encoder in ("heavy", "light", "heavy, untrained", "light, untrained")]

    @torch.no_grad()
    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        from derived.lab.real import models

        chain, _, untrained = condition["encoder"].partition(", ")
        encoder = models.load(f"sapiens-{chain}")
        if untrained:
            encoder = models.fresh(encoder, stream(seed, "untrained", chain))
        known = {
            name: gene for name, gene in antibody_genes("H", self.species).items() if len(gene) >= max(self.windows)
        }
        order = torch.randperm(len(known), generator=stream(seed, "genes"))[: self.genes]
        names = [sorted(known)[place] for place in order]
        table = []
        for L in self.windows:
            walks = [self.walk(known[name][:L], stream(seed, "walk", name, L)) for name in names]
            tokens = torch.stack([torch.cat([encoder.tokens(s) for s in walk]) for walk in walks]).to(device)
            body = encoder.model.to(device).base_model
            h = torch.stack([body(each).last_hidden_state[:, 1:-1].mean(dim=1) for each in tokens]).double()
            unit = h / torch.linalg.vector_norm(h, dim=-1, keepdim=True)
            cosine = ((unit[:, 1:] - unit[:, :-1]).square().sum(dim=-1) / 2).median(dim=1).values
            table.append(rows({"L": [L], "gene": names}, {"cosine": cosine[None]}))
        return pd.concat(table, ignore_index=True)

    def walk(self, gene: str, generator: torch.Generator) -> list[str]:
        """The gene, and after each step one more of its residues replaced by another at random."""
        path = [gene]
        for _ in range(self.steps):
            site = int(torch.randint(len(gene), (), generator=generator))
            others = ACIDS.replace(path[-1][site], "")
            other = others[int(torch.randint(len(others), (), generator=generator))]
            path.append(path[-1][:site] + other + path[-1][site + 1 :])
        return path
