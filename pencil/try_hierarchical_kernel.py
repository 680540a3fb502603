"""Scores of eight tokens and of their summaries, added up before the softmax.

- Set `summarise` to `block_means`: a summary then looks ahead, and outputs see the future.
- Set `alpha` to `[1.0, 0.0, 0.0]`: plain attention over tokens; no summary counts.
"""

from hierarchical_kernel import averages, block_means, pyramid, scores, sees_the_future
from picture import plot

X = [[1.0], [-0.5], [2.0], [0.3], [-1.2], [0.8], [1.5], [-0.7]]
alpha = [0.5, 0.3, 0.2]  # weights of tokens, pairs, fours
summarise = averages  # or block_means

one = [[[1.0]]] * 3
S = scores(pyramid(X, 3, summarise), one, alpha)
print("scores of the last query:", [round(s, 3) for s in S[-1]])
early = sees_the_future(X, one, alpha, summarise)
print("outputs that see the future:", early or "none")

plain = scores([X], one, [1.0])
curves = {"three levels": S[-1], "tokens alone": plain[-1]}
plot(range(8), curves, "key; score with the last query")
result = [s for row in S for s in row]
