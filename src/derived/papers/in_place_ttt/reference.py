"""A matrix that is written while a text is read, and asked at each letter: what came next, last time?

- Move the tap: `{0: 1.0}` stores the letter itself, and the matrix echoes what it is asked.
- Raise `chunk` to 9: the whole text is one chunk, nothing is written before it is read, and the matrix stays silent.
- Give a second tap, `{1: 1.0, 2: 0.5}`, and let taps cross the edges of chunks: which letters see the future?
"""


def zeros(d, h):
    return [[0.0] * h for _ in range(d)]


def apply(W, z):
    return [sum(w * x for w, x in zip(row, z)) for row in W]


def write(W, v, z, eta):
    return [[w + eta * a * b for w, b in zip(row, z)] for row, a in zip(W, v)]


def values(s, chunk, taps, cross=False):
    """The value of each token: sum over k of taps[k] s[t + k], where s counts as zero outside the token's chunk."""
    found = []
    for t in range(len(s)):
        first = 0 if cross else t - t % chunk
        last = len(s) if cross else min(first + chunk, len(s))
        near = [(c, s[t + k]) for k, c in taps.items() if first <= t + k < last]
        found.append([sum(c * source[i] for c, source in near) for i in range(len(s[0]))])
    return found


def read_and_write(z, s, W, chunk, taps, eta=1.0, cross=False):
    """The outputs of all tokens, chunk after chunk, and the matrix at the end."""
    v, outputs = values(s, chunk, taps, cross), []
    for first in range(0, len(z), chunk):
        tokens = range(first, min(first + chunk, len(z)))
        outputs += [apply(W, z[t]) for t in tokens]
        for t in tokens:
            W = write(W, v[t], z[t], eta)
    return outputs, W


def sees_the_future(z, s, W, chunk, taps, n, cross=False):
    """Whether output n changes when a later source does."""
    before = read_and_write(z, s, W, chunk, taps, 1.0, cross)[0][n]
    for t in range(n + 1, len(s)):
        other = [[x + 1 for x in row] if k == t else row for k, row in enumerate(s)]
        if read_and_write(z, other, W, chunk, taps, 1.0, cross)[0][n] != before:
            return True
    return False


def text_plot(x, curves, label=""):
    """Print a curve over x."""
    [(name, y)] = curves.items()
    print(f"o {name} from {min(y):.3g} to {max(y):.3g}; {label}")
    for place, value in zip(x, y):
        print(f"{place:8.3g} |", "o".rjust(1 + round(40 * (value - min(y)) / (max(y) - min(y) or 1))))


plot = globals().get("plot", text_plot)  # the book's page draws it

if __name__ == "__main__":
    # A matrix is written while a text is read, and asked at each letter: what came next, last time?
    # - Move the tap: `{0: 1.0}` stores the letter itself, and the matrix echoes what it is asked.
    # - Raise `chunk` to 9: the whole text is one chunk, nothing is written before it is read, and the matrix is silent.

    text, chunk, taps = "abcabcabc", 2, {1: 1.0}
    letters = sorted(set(text))
    s = [[float(a == b) for b in letters] for a in text]
    outputs, W = read_and_write(s, s, zeros(len(letters), len(letters)), chunk, taps)
    for letter, answer in zip(text, outputs):
        print(letter, "->", dict(zip(letters, answer)))
    for taps in ({1: 1.0}, {1: 1.0, 2: 0.5}):
        same = [[1.0] * len(letters)] * len(text)  # keys that answer to one another
        leaks = [n for n in range(len(text)) if sees_the_future(same, s, W, chunk, taps, n, cross=True)]
        print(f"taps {taps} across the edges of chunks: letters that see the future: {leaks}")

    following = [dict(zip(letters, answer)).get(after, 0.0) for answer, after in zip(outputs, text[1:])]
    plot(range(len(following)), {"score of the letter that follows": following}, "place in the text")
    result = [x for answer in outputs for x in answer]
