"""SK-13 and SK-14: the derivative of a plan. Each is decided by the check cell of its statement on the page."""

from derived.lab.claims import on_page

ROWS = (
    on_page("SK-13.a", source="prior", where="Luise et al. 2018, Eisenberger et al. 2022"),
    on_page("SK-13.b"),
    on_page("SK-14", where="the public text classifier does so"),
)
