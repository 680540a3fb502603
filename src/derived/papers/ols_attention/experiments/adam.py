"""Adam as its authors write it, for ``derived.lab.training.train``.

g     gradient           m, v  its running mean and mean square
t     steps so far       eta   rate, which the loop sets
"""

import torch

BETA_1, BETA_2, EPS = 0.9, 0.999, 1e-8  # the defaults of torch.optim.Adam


class Adam(torch.optim.Optimizer):
    """m <- lerp(m, g, 1 - beta_1), v <- lerp(v, g^2, 1 - beta_2), w <- w - eta m^ / (sqrt(v^) + eps), bias corrected.

    torch.optim.Adam does the same with other roundings. Near a loss of zero rounding decides how many runs of OLS-10.e
    and OLS-10.f come to rest, so the algorithm stands here. [prior: Kingma and Ba 2015, Algorithm 1]
    """

    def __init__(self, parameters: list[torch.nn.Parameter]):
        super().__init__(parameters, {"lr": 1e-3})

    @torch.no_grad()
    def step(self) -> None:
        """One step of every parameter."""
        for group in self.param_groups:
            for w in group["params"]:
                state = self.state[w]
                if not state:
                    state |= {"t": 0, "m": torch.zeros_like(w), "v": torch.zeros_like(w)}
                state["t"] += 1
                m = state["m"].lerp_(w.grad, 1 - BETA_1) / (1 - BETA_1 ** state["t"])
                v = state["v"].lerp_(w.grad.square(), 1 - BETA_2) / (1 - BETA_2 ** state["t"])
                w -= group["lr"] * (m / (v.sqrt() + EPS))
