"""A matrix is written while a text is read, and asked at each letter: what came next, last time?

- Move the tap: `{0: 1.0}` stores the letter itself, and the matrix echoes what it is asked.
- Raise `chunk` to 9: the whole text is one chunk, nothing is written before it is read, and the matrix stays silent.
"""

from in_place_ttt import read_and_write, zeros
from picture import plot

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
