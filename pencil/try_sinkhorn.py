"""The same scores, once with rows that sum to their weights (softmax), once with rows and columns (Sinkhorn).

- Lower `temperature` to 0.2: softmax sends nearly everything to one key, Sinkhorn still serves all of them.
- Set `half_steps` to 1: the Sinkhorn plan is softmax, and the columns are off.
"""

from picture import plot
from sinkhorn import columns, plan, softmax

scores = [[2.0, 1.0, 0.0], [1.5, 0.5, 0.2], [1.0, 0.9, 0.1]]
temperature = 1.0
half_steps = 101  # a row step, a column step, a row step, …

S = [[s / temperature for s in row] for row in scores]
third = [1 / 3] * 3
for name, P in (("softmax ", softmax(S, third, third)), ("Sinkhorn", plan(S, third, third, half_steps))):
    print(name, [[round(p, 4) for p in row] for row in P], "columns", [round(c, 4) for c in columns(P)])

tried = [k / 10 for k in range(1, 31)]
first = [columns(softmax([[s / T for s in row] for row in scores], third, third))[0] for T in tried]
plot(tried, {"softmax": first, "Sinkhorn": [1 / 3] * len(tried)}, "temperature; what the first key receives")
result = [p for row in plan(S, third, third, half_steps) for p in row]
