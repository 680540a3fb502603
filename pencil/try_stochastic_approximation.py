"""Two worlds, one learner. A life in one world ends at its root; a fresh world at each step ends somewhere else.

- Set `w` to `[0.5, 0.5]`: the root of the many moves, the roots of the worlds stay.
- Let the first world pull harder, `(1.0, 6.0)`: its root goes down, and drags that of the many along.
"""

import random

from picture import plot
from stochastic_approximation import constant_step_variance, iterate, linear, root_of_many, roots

worlds = [(1.0, 2.0), (2.0, 0.5)]  # world k asks for b - A x: (b, A)
w = [0.3, 0.7]  # probabilities of the worlds
steps = 2000

lives = [iterate(linear(worlds), [k] * steps, lambda n: 1 / n) for k in (0, 1)]
fresh = iterate(linear(worlds), random.Random(0).choices((0, 1), w, k=steps), lambda n: 1 / n)
for k in (0, 1):
    print(f"a life in world {k + 1} ends at {lives[k][-1]:.3f}; its root is {roots(worlds)[k]:.3f}")
print(f"a fresh world at each step: {fresh[-1]:.3f}; root of the mean field {root_of_many(worlds, w):.3f}")

late = range(20, steps, 20)
courses = {"world 1": lives[0], "world 2": lives[1], "a fresh world at each step": fresh}
plot(late, {name: [course[n] for n in late] for name, course in courses.items()}, "step; iterate")
result = [*roots(worlds), root_of_many(worlds, w), constant_step_variance(0.9, 0.1)]
