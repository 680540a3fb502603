"""cac-ex-neyman: how far a drafted token may be raised if the budget is on sum (h - q)^2 / h.

Return gamma as a function of q_n, the verifier's probability of the token, and of the budget delta.
"""

from cactus import target


def gamma_neyman(q_n, delta): ...


# The check: the target spends the whole budget, and is a distribution.
def check():
    for q_n in (0.01, 0.2, 0.5, 0.9):
        for delta in (0.0, 0.01, 0.3, 2.0):
            gamma = gamma_neyman(q_n, delta)
            if gamma is None:
                return "no answer yet"
            if not q_n <= gamma < 1:
                return f"not right: q_n = {q_n}, delta = {delta} give {gamma:.4g}"
            q = [q_n, (1 - q_n) / 3, 2 * (1 - q_n) / 3]
            spent = sum((a - b) ** 2 / a for a, b in zip(target(q, 0, gamma), q))
            if abs(spent - delta) > 1e-9:
                return f"not right: at q_n = {q_n} it spends {spent:.4g} of {delta}"
    return "right"


print(check())
