"""gt-ex-strand: a count of words of k letters that no strand changes.

`g` is a list of letters, A, C, G, T as 0, 1, 2, 3. Return 4 ** k counts, words in alphabetical order:
all places of a word on either strand. The other strand is read backwards, with A for T and C for G.
"""

import random


def strandless(g, k): ...


# The check: the counts are those of all windows of k letters together, and in a window its word is counted.
def check():
    draw = random.Random(1)
    for k in (1, 2, 3):
        for length in (k, 7, 20):
            g = [draw.randrange(4) for _ in range(length)]
            answer = strandless(g, k)
            if answer is None:
                return "no answer yet"
            if list(answer) != list(strandless([3 - letter for letter in reversed(g)], k)):
                return f"not right: the other strand of {g} is counted otherwise"
            windows = [strandless(g[i : i + k], k) for i in range(length - k + 1)]
            if list(answer) != [sum(column) for column in zip(*windows)]:
                return f"not right: {g} is not counted as its windows are"
            word = sum(letter * 4**place for place, letter in enumerate(reversed(g[:k])))
            if len(answer) != 4**k or windows[0][word] < 1 or sum(windows[0]) != 2:
                return f"not right: the word {g[:k]}"
    return "right"


print(check())
