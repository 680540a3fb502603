"""Three worlds that differ in one context. Telling them apart costs; the best code keeps what is worth its price.

- Raise `beta` from 0.3 to 0.4 and 0.6: first two worlds are merged, then all three.
- Make the middle world like the first, `[0.9, 0.1]`: it is merged at a far lower price.
"""

from picture import plot
from task_ecologies import best_code, complexity, excess, split_gain

prior = [1 / 3, 1 / 3, 1 / 3]
laws = [[[1.0, 0.0]], [[0.5, 0.5]], [[0.0, 1.0]]]  # what each world writes next, in its one context
beta = 0.3  # price of a nat of the code's entropy

code = best_code(prior, [1.0], laws, beta)
lost, told = excess(prior, [1.0], laws, code), complexity(prior, code)
print("best code", code, f": loses {lost:.4f} nats, keeps {told:.4f} nats of the world")
gain, price = split_gain(prior, [1.0], laws, [0], [1])
print(f"telling world 1 from world 2 is worth it up to beta = {gain / price:.4f}")

prices = [k / 50 for k in range(51)]
plot(
    prices,
    {"nats of the world that are kept": [complexity(prior, best_code(prior, [1.0], laws, b)) for b in prices]},
    "beta",
)
result = [lost, told, gain]
