"""IPT-1, 2, 3, 5, 6 and 9.a: one rule in many forms, and the start of a converted model.

Criteria and expected verdicts were written before the run, unless a claim says otherwise.
"""

from dataclasses import replace

import pandas as pd

from derived.lab import measure
from derived.lab.claims import at_most, identity, refuted
from derived.lab.stats import Estimate

from ..experiments.writes import Forms, Start


def of_form(name: str) -> measure.Measure:
    """The largest gap of a form over its bound."""
    return measure.worst(where=f"form == '{name}'")


def told_apart(rows: pd.DataFrame) -> Estimate:
    """One rounding over the largest gap of packed documents whose grid of chunks goes on."""
    found = of_form("old grid")(rows)
    return replace(found, value=1 / found.value if found.value else float("inf"))


RATIO = "the largest gap over what rounding allows"

CLAIMS = (
    identity(
        "IPT-1",
        r"The update $W_{i+1}=W_i+\eta\hat V_{[i]}^\top Z_{[i]}$ is one gradient step on $-\langle Z_{[i]}W^\top,\hat V_{[i]}\rangle_F$.",
        Forms,
        of_form("gradient"),
        source="paper",
        where="equation 1",
    ),
    identity(
        "IPT-2.a",
        "All increments in parallel and one exclusive prefix sum give exactly what reading chunk after chunk gives.",
        Forms,
        of_form("scan"),
        plain="The memory can be computed for all chunks at once, with the result of reading one after the other.",
        source="paper",
        where="Section 3.4, Algorithm 1",
    ),
    identity(
        "IPT-2.b",
        r"The layer is unnormalised linear attention to strictly earlier chunks, $O_n=W_0z_n+\eta\sum_{c(t)<c(n)}\langle z_t,z_n\rangle\hat v_t$.",
        Forms,
        of_form("attention"),
    ),
    refuted(
        "IPT-2.c",
        "With the squared loss, too, the steps are a prefix sum of increments that do not know the state.",
        Forms,
        of_form("squared"),
        RATIO,
        at_most(1),
        unit="of its bound",
    ),
    identity(
        "IPT-2.d",
        r"One running state of $dh$ numbers suffices forwards and backwards: the adjoint state is the suffix sum $\sum_{j>i}G_j^\top Z_j$.",
        Forms,
        measure.most_of(of_form("lean"), of_form("backward")),
    ),
    identity(
        "IPT-3.a",
        "Chunks spread over ranks that exchange one matrix each give the sequential result.",
        Forms,
        of_form("ranks"),
        source="paper",
        where="Section 3.4",
    ),
    identity(
        "IPT-3.b",
        "Packed documents give what they give alone if state and grid of chunks begin anew where a document does, and in general not if the grid goes on.",
        Forms,
        measure.most_of(of_form("documents"), told_apart),
        "the largest gap over what rounding allows, and what it allows over the largest gap on the old grid; the larger",
        source="paper",
        where="Section 3.4 has the reset; the grid is ours",
    ),
    identity(
        "IPT-5",
        "Reading a text token by token, in random pieces or whole gives the same outputs.",
        Forms,
        of_form("stream"),
        source="repo",
        where="inference_model",
    ),
    identity(
        "IPT-6.a",
        "A converted Qwen3 or LLaMA model computes what it did before it is trained.",
        Start,
        measure.worst("size", where="quantity == 'outputs'"),
        "largest change of a logit over one rounding of 1",
        plain="Converting a pretrained model changes nothing until it is trained.",
        source="paper",
        where="Section 3.4; random weights here",
    ),
    identity(
        "IPT-6.b",
        "At the released start the projection gets no gradient, and the kernel of every layer does; if the projection, too, were zero, no kernel would.",
        Start,
        measure.most_of(
            measure.worst("size", where="quantity == 'projection'"),
            measure.worst("bound", "size", where="quantity == 'kernel'"),
            measure.worst("size", where="quantity == 'kernel at zero'"),
        ),
        "gradients that must vanish over one rounding of 1, and that rounding over the gradient of the kernel; the largest",
    ),
    identity(
        "IPT-9.a",
        "For given keys and values the state after the same tokens does not depend on the size of the chunks.",
        Forms,
        of_form("chunks"),
    ),
)
