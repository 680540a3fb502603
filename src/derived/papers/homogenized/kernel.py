"""Claims on the kernel of the noise as a function of the Gram matrix, and of clouds (HT-8, HT-20).

The check cells of their statements decide them.
"""

from derived.lab.claims import on_page

CLAIMS = (
    on_page(
        "HT-8.c",
        where=r"sharper than version 1, `lem:Gram_stability`, as retold: $O(1+\lambda^2n)$",
        control="none: a kernel that ignores the overlaps changes by nothing and passes a bound from above",
    ),
    on_page(
        "HT-20.a", source="digest", where="version 1, `prop:satisfying_MF`; refuted before us by the formalisation"
    ),
    on_page(
        "HT-20.b",
        amends="HT-20.a",
        where=r"the numbers are at $\beta=0$ alone, for $\beta>0$ there is the proof",
        control="none: a field that ignores the tokens passes a bound from above; HT-20.a is the constant that is too small",
    ),
)
