"""Generated text whose validity can be checked: bracketed arithmetic modulo ten, each bracket followed by its value.

    ((7+3)0*(4-9)5)0;(2*(6+6)2)4;

The grammar is a pushdown automaton with an exact distribution of the next token, so the same code writes texts, finds
the first fault of a given one, and gives the true distribution at every position. A value after a bracket is determined
by tokens that may stand far back; a digit or an operation is free, with a distribution that leans on the left operand.

symbol   name      meaning                                                                     axes
-        level     number of open brackets                                                     (B,)
-        phase     what is expected next: OPERAND, OPERATION, CLOSE, VALUE or END              (B,)
-        side      which operand is being read at each level, 0 left or 1 right                (B, D + 1)
-        left, right, operation   what has been read at each level                            (B, D + 1)
D        depth     largest number of open brackets
-        law       probability of each token as the next one; a token is valid iff it is > 0   (B, 17)
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

TOKENS = "^0123456789+-*();"  # the first one begins every text
BEGIN, PLUS, OPEN, CLOSE_BRACKET, STOP = (TOKENS.index(token) for token in "^+();")
DIGIT = TOKENS.index("0")
OPERAND, OPERATION, CLOSE, VALUE, END = range(5)
LEAN = 0.55  # the right operand is the left one + k (mod 10) with probability proportional to LEAN^k


class State(NamedTuple):
    """Where a batch of texts stands in the grammar."""

    level: Tensor  # (B,)
    phase: Tensor  # (B,)
    side: Tensor  # (B, D + 1)
    left: Tensor  # (B, D + 1)
    right: Tensor  # (B, D + 1)
    operation: Tensor  # (B, D + 1)


class Grammar:
    """Lines ``E;`` with E a digit or ``(E op E)value``, at most ``depth`` open brackets, the outermost E a bracket."""

    def __init__(self, depth: int = 3, nesting: float = 0.35, device: torch.device | str = "cpu"):
        if depth < 1 or not 0 <= nesting < 1:
            raise ValueError(f"depth = {depth}, nesting = {nesting}; give depth >= 1 and 0 <= nesting < 1")
        self.depth, self.nesting, self.device = depth, nesting, torch.device(device)
        shift = (torch.arange(10) - torch.arange(10).unsqueeze(-1)) % 10  # digit - left operand
        weights = LEAN ** shift.double()
        self.leaning = (weights / weights.sum(dim=-1, keepdim=True)).to(device)  # (left operand, digit)

    def start(self, batch: int) -> State:
        """The state before the first token of ``batch`` texts (after ``^``)."""
        zero = torch.zeros(batch, self.depth + 1, dtype=torch.long, device=self.device)
        return State(zero[:, 0], zero[:, 0] + OPERAND, zero, zero, zero, zero)

    def law(self, state: State) -> Float[Tensor, "B 17"]:
        """The distribution of the next token, float64."""
        batch = torch.arange(len(state.level), device=self.device)
        level, phase = state.level, state.phase
        law = torch.zeros(len(level), len(TOKENS), dtype=torch.float64, device=self.device)
        chance = torch.full_like(level, self.nesting, dtype=torch.float64)
        chance = chance.masked_fill(level == 0, 1.0).masked_fill(level == self.depth, 0.0)
        operand = phase == OPERAND
        right = state.side[batch, level] == 1
        digits = torch.where(right.unsqueeze(-1), self.leaning[state.left[batch, level]], 0.1)
        law[:, DIGIT : DIGIT + 10] = torch.where(operand.unsqueeze(-1), (1 - chance).unsqueeze(-1) * digits, 0.0)
        law[:, OPEN] = torch.where(operand, chance, 0.0)
        law[:, PLUS : PLUS + 3] = (phase == OPERATION).double().unsqueeze(-1) / 3
        law[:, CLOSE_BRACKET] = (phase == CLOSE).double()
        law[:, STOP] = (phase == END).double()
        value = self.value(state)
        law[batch, DIGIT + value] += (phase == VALUE).double()
        return law

    def value(self, state: State) -> Int[Tensor, "B"]:
        """left op right modulo ten at the current level."""
        batch = torch.arange(len(state.level), device=self.device)
        a, b, op = (table[batch, state.level] for table in (state.left, state.right, state.operation))
        results = torch.stack([a + b, a - b, a * b], dim=-1) % 10
        return results[batch, op]

    def advance(self, state: State, token: Int[Tensor, "B"]) -> State:
        """The state after one more token, which must be valid; a wrong value is taken as if it were right."""
        batch = torch.arange(len(token), device=self.device)
        level, phase, side, left, right, operation = (each.clone() for each in state)
        digit = token - DIGIT
        is_open, was_value = token == OPEN, phase == VALUE
        is_operand = ((phase == OPERAND) & ~is_open) | was_value
        level = level - was_value.long()  # a value completes the bracket as an operand of the level below
        first = side[batch, level] == 0
        left[batch, level] = torch.where(is_operand & first, digit, left[batch, level])
        right[batch, level] = torch.where(is_operand & ~first, digit, right[batch, level])
        after = torch.where(level == 0, END, torch.where(first, OPERATION, CLOSE))
        is_operation = phase == OPERATION
        operation[batch, level] = torch.where(is_operation, token - PLUS, operation[batch, level])
        side[batch, level] = torch.where(is_operation, 1, side[batch, level])
        opened = level + is_open.long()
        side[batch, opened] = torch.where(is_open, 0, side[batch, opened])
        phase = torch.where(is_operand, after, torch.where(phase == CLOSE, VALUE, OPERAND))
        return State(opened, phase, side, left, right, operation)

    def sample(self, batch: int, length: int, generator: torch.Generator) -> Int[Tensor, "B length"]:
        """``batch`` texts of ``length`` tokens, ``^`` included, drawn from the distribution of the grammar."""
        state, tokens = self.start(batch), [torch.full((batch,), BEGIN, device=self.device)]
        for _ in range(length - 1):
            drawn = torch.multinomial(self.law(state).to(generator.device), 1, generator=generator).squeeze(dim=-1)
            tokens.append(drawn.to(self.device))
            state = self.advance(state, tokens[-1])
        return torch.stack(tokens, dim=-1)

    def first_fault(self, ids: Int[Tensor, "B length"]) -> Int[Tensor, "B"]:
        """The position of the first token that the grammar forbids; ``length`` for a text without fault. Entries < 0
        are padding and end the text."""
        state, fault = self.start(len(ids)), torch.full((len(ids),), ids.shape[-1], device=self.device)
        sound = torch.ones(len(ids), dtype=torch.bool, device=self.device)
        for position, token in enumerate(ids.unbind(dim=-1)):
            law = self.law(state)
            allowed = law.gather(-1, token.clamp(min=0).unsqueeze(-1)).squeeze(dim=-1) > 0
            wrong = (token >= 0) & ~(allowed if position else token == BEGIN)
            fault = torch.where(sound & wrong, position, fault)
            sound &= ~wrong & (token >= 0)
            if position:  # what follows an unsound text is not looked at
                state = self.advance(state, torch.where(sound, token, law.argmax(dim=-1)))
        return fault


def read(ids: Int[Tensor, "length"]) -> str:
    """A text as people write it."""
    return "".join(TOKENS[i] for i in ids.tolist() if i >= 0)


def written(text: str) -> Int[Tensor, "length"]:
    """The ids of a text."""
    unknown = set(text) - set(TOKENS)
    if unknown:
        raise ValueError(f"{''.join(sorted(unknown))!r} is not of this language; its tokens are {TOKENS!r}")
    return torch.tensor([TOKENS.index(token) for token in text])
