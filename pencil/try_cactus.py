"""A draft proposes a token, a verifier keeps it or not. A budget keeps more, and changes what is written.

- Set `delta` to 0: nothing is paid, and the verifier's own distribution comes out.
- Move the draft away, `p = [0.05, 0.05, 0.9]`: less is kept, and each kept draft costs more.
"""

from cactus import cactus, emitted, exact, kept, kl, total_variation
from picture import plot

q = [0.5, 0.3, 0.2]  # verifier
p = [0.2, 0.3, 0.5]  # draft
delta = 0.1  # budget in nats

rule = cactus(delta)
out = emitted(p, q, rule)
print(f"kept: {kept(p, q, exact):.4f} exactly, {kept(p, q, rule):.4f} with the budget")
print("written:", [round(w, 4) for w in out], f"{kl(out, q):.4f} nats from the verifier")
print(f"gained {kept(p, q, rule) - kept(p, q, exact):.4f}, paid {total_variation(out, q):.4f} in total variation")

budgets = [k / 100 for k in range(51)]
plot(
    budgets,
    {
        "kept": [kept(p, q, cactus(b)) for b in budgets],
        "total variation": [total_variation(emitted(p, q, cactus(b)), q) for b in budgets],
    },
    "budget in nats",
)
result = [*out, kept(p, q, rule)]
