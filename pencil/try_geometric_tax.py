"""A number is sorted into bins. If bins are finer than the noise, its label walks a long path.

- Raise `K` to 64: the path grows towards 1 / sigma, and no further.
- Set `wrong` to 3: the one-hot code pays the same as before, the ordered code more.
"""

from geometric_tax import distortion, fisher_rao_length, one_hot, staircase
from picture import plot

K = 8  # bins of a number in [0, 1]
sigma = 0.05  # its noise
wrong = 1  # the class 0 of four is read as this one

low, high = staircase(K, sigma)
print(f"{K} bins, noise {sigma}: {low:.3f} <= {fisher_rao_length(K, sigma, 2000):.3f} <= {high:.3f}")
clean, noisy = range(4), [wrong, 1, 2, 3]
ordered = distortion([[float(k)] for k in clean], [[float(k)] for k in noisy])
free = distortion([one_hot(k, 4) for k in clean], [one_hot(k, 4) for k in noisy])
print(f"0 read as {wrong}: D = {ordered:.3f} in the ordered code, {free:.3f} in the one-hot code")

bins = range(2, 33, 3)
path = [fisher_rao_length(k, sigma, 500) for k in bins]
plot(bins, {"length of the path": path, "1 / sigma": [1 / sigma] * len(bins)}, "bins")
result = [ordered, free, low, high]
