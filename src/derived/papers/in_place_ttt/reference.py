"""A matrix that is written while a text is read, in plain Python.

z   key of each token, h numbers        s   source of each token, d numbers: its embedding or its hidden state
v   value that is written for a token: taps over the sources of its own chunk        W   the memory, d x h

Each chunk of C tokens is read with the matrix as it stands, then written: W <- W + eta v z' for each of its tokens.
With a tap on the next token the matrix answers what came next; with one on the token itself it answers what was
asked.
"""

import math


def zeros(d, h):
    return [[0.0] * h for _ in range(d)]


def apply(W, z):
    return [sum(w * x for w, x in zip(row, z)) for row in W]


def write(W, v, z, eta):
    return [[w + eta * a * b for w, b in zip(row, z)] for row, a in zip(W, v)]


def values(s, chunk, taps):
    """The value of each token: sum over k of taps[k] s[t + k], where s counts as zero outside the token's chunk."""
    found = []
    for t in range(len(s)):
        first = t - t % chunk
        last = min(first + chunk, len(s))
        near = [(c, s[t + k]) for k, c in taps.items() if first <= t + k < last]
        found.append([sum(c * source[i] for c, source in near) for i in range(len(s[0]))])
    return found


def read_and_write(z, s, W, chunk, taps, eta=1.0):
    """The outputs of all tokens, chunk after chunk, and the matrix at the end."""
    v, outputs = values(s, chunk, taps), []
    for first in range(0, len(z), chunk):
        tokens = range(first, min(first + chunk, len(z)))
        outputs += [apply(W, z[t]) for t in tokens]
        for t in tokens:
            W = write(W, v[t], z[t], eta)
    return outputs, W


def all_at_once(z, s, W, chunk, taps, eta=1.0):
    """The same outputs from the attention form: W z[n] + eta sum of <z[t], z[n]> v[t] over all earlier chunks."""
    v, outputs = values(s, chunk, taps), []
    for n, query in enumerate(z):
        out = apply(W, query)
        for t in range(n - n % chunk):
            score = eta * sum(a * b for a, b in zip(z[t], query))
            out = [o + score * x for o, x in zip(out, v[t])]
        outputs.append(out)
    return outputs


def sees_the_future(z, s, W, chunk, taps, n):
    """Whether output n changes when a later source does."""
    before = read_and_write(z, s, W, chunk, taps)[0][n]
    for t in range(n + 1, len(s)):
        other = [[x + 1 for x in row] if k == t else row for k, row in enumerate(s)]
        if read_and_write(z, other, W, chunk, taps)[0][n] != before:
            return True
    return False


def half_recall(d, h, vocabulary, generator, trials=40):
    """How many pairs of random keys and tokens the memory holds until the right token wins in half of the trials."""

    def unit(size):
        x = [generator.gauss(0, 1) for _ in range(size)]
        length = math.sqrt(sum(a * a for a in x))
        return [a / length for a in x]

    embeddings, size = [unit(d) for _ in range(vocabulary)], 1
    while True:
        right = 0
        for _ in range(trials):
            W, pairs = zeros(d, h), [(unit(h), generator.randrange(vocabulary)) for _ in range(size)]
            for key, token in pairs:
                W = write(W, embeddings[token], key, 1.0)
            answer = apply(W, pairs[0][0])
            logits = [sum(a * b for a, b in zip(e, answer)) for e in embeddings]
            right += logits.index(max(logits)) == pairs[0][1]
        if right * 2 <= trials:
            return size
        size += max(1, size // 5)


def text_plot(x, curves, label=""):
    """Print one or two curves over x."""
    low, high = (end(v for y in curves.values() for v in y) for end in (min, max))
    print(", ".join(f"{mark} {name}" for mark, name in zip("ox", curves)), f"from {low:.3g} to {high:.3g}; {label}")
    for k in range(0, len(x), -(-len(x) // 12)):
        at = {round(40 * (y[k] - low) / (high - low or 1)): mark for mark, y in zip("ox", curves.values())}
        print(f"{x[k]:8.3g} |", *(at.get(column, " ") for column in range(41)), sep="")


plot = globals().get("plot", text_plot)  # the book's page draws it

if __name__ == "__main__":
    # A matrix is written while a text is read, and asked at each letter: what came next, last time?
    # - Move the tap: `{0: 1.0}` stores the letter itself, and the matrix echoes what it is asked.
    # - Raise `chunk` to 9: the whole text is one chunk, nothing is written before it is read, and the matrix stays
    #   silent.

    text = "abcabcabc"
    taps = {1: 1.0}  # what is stored for a letter: the letter so many places later, times a weight
    chunk = 2
    eta = 1.0  # size of a write

    letters = sorted(set(text))
    s = [[float(a == b) for b in letters] for a in text]
    outputs, W = read_and_write(s, s, zeros(len(letters), len(letters)), chunk, taps, eta)
    for letter, answer in zip(text, outputs):
        print(letter, "->", dict(zip(letters, answer)))

    following = [dict(zip(letters, answer)).get(after, 0.0) for answer, after in zip(outputs, text[1:])]
    plot(range(len(following)), {"score of the letter that follows": following}, "place in the text")
    result = [x for answer in outputs for x in answer]
