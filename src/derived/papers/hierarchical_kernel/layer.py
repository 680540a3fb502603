"""What of the paper could not be judged, and what is proved of the layer of this chapter."""

from derived.lab.claims import on_page, unseen

PAPER = unseen(
    "HKT-0",
    r"HKT mixes the score tables of $L$ resolutions, made by trainable causal downsampling, at a cost of at most $\frac43$"
    " of standard attention ($1.3125$ at $L=3$). The scores are a positive semidefinite kernel under a condition, and split"
    " into $L$ pairs of a symmetric and an antisymmetric part. Standard attention and causal convolution are contained. The"
    " error has three parts and a bound that decays geometrically in $L$. HKT gains $4.77$, $1.44$ and $7.47$ points on"
    " ListOps, sequential CIFAR-10 and character-level IMDB.",
    "definitions, proofs, data and settings of the paper could not be read. Nearest to it are, for our layer, HKT-1.a and HKT-E4.c on the cost, HKT-3.a on causality, HKT-4.e on the kernel, and HKT-E1.t, HKT-E3.g and"
    " HKT-E6.a on gains",
    plain="A layer that also compares summaries of past tokens costs at most a third more, is a kernel, contains attention and"
    " convolution, and does better on three tasks.",
    source="paper",
    where="abstract",
    paper_value="$1.3125$, $4.77$, $1.44$, $7.47$",
)

CLAIMS = (
    PAPER,
    on_page("HKT-1.a", where="what the abstract's 1.3125 may count", paper_value="1.3125"),
    on_page("HKT-2.a"),
    on_page("HKT-3.a"),
    on_page("HKT-4.e"),
)
