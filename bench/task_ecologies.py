"""Races of task ecologies: ``python bench/task_ecologies.py [--quick] [--threads 1] [--output FILE]``.

1. Thirty-two microgpt models trained side by side, each on its own texts, against ``torch.func``: one plain module,
   stacked weights, ``vmap`` of its gradient; and against thirty-two trainings one after the other in as many parallel
   processes as threads. Losses of every model at every step are compared, in float64, before anything is timed. The
   memory of the processes is that of the parent alone.
2. One step's loss and gradients of one model against the same in plain Python numbers, as Karpathy's microgpt computes
   them: for scale.

3. The partition of least J_beta, the costs of all sets of worlds given: the subset recursion against the set-partition
   integer program (HiGHS through SciPy, to a gap of zero); at ten worlds against the list of all partitions, for scale.
   The same recursion as a numba loop over submasks is reported. What a contender states is priced anew. The integer
   program has 2^n - 1 columns: seconds at 12 worlds, minutes at 14; at 16 it is left out.

4. Excess, loss and entropy of all codes of an ecology: every set of worlds once, then sums over cells, against the same
   code by code, and against the author's code.

The author's code is written in Julia. It is run unmodified, by a Julia process that is started once and waits for its
inputs, where a ``julia`` is on the path and $AUTHORS/llm_evo_veridicity is a clone of
github.com/gvdr/llm_evo_veridicity (commit ff01d55): in race 4, and in the training of one model from the same first
weights on the same texts. Its memory is not seen. Julia 1.5 of Debian 11 is enough, though the code asks for 1.12.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import harness
import numpy as np
import torch
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csc_array
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap
from torch.nn.functional import cross_entropy, rms_norm, scaled_dot_product_attention

from derived.lab.nets import Draws
from derived.lab.rng import stream
from derived.papers.task_ecologies.data.ecologies import simplex
from derived.papers.task_ecologies.fits import falling, fit_texts
from derived.papers.task_ecologies.model.codes import best_partition, cell_costs, cell_excesses
from derived.papers.task_ecologies.model.ecology import FiniteEcology
from derived.papers.task_ecologies.model.gpt import GPTSize, MicroGPT, text_losses
from derived.papers.task_ecologies.model.partitions import from_masks, incidence, masks, set_partitions
from derived.papers.task_ecologies.model.scalar import Number, scalar_loss

SIZE = GPTSize()
RATE = 0.008
BETAS = (0.85, 0.99)
PRICE = 0.06


def build(models: int, steps: int, length: int) -> tuple[dict[str, Tensor], Tensor]:
    """Initial weights by name, models in front, and texts (steps, models, length + 1), in float64."""
    drawn = MicroGPT(SIZE, Draws(num_networks=models, dtype=torch.float64))
    weights = {name: weight.detach().clone() for name, weight in drawn.weights.items()}
    length = min(length, SIZE.block)
    return weights, torch.randint(26, (steps, models, length + 1), generator=stream(0, "bench texts"))


def ensemble(inputs: tuple) -> Tensor:
    """models side by side, a leading axis on every weight"""
    weights, texts = inputs
    model = MicroGPT(GPTSize(), Draws(num_networks=texts.shape[1], dtype=torch.float64))
    with torch.no_grad():
        for name, weight in model.weights.items():
            weight.copy_(weights[name])
    return fit_texts(model, texts, rate=falling(RATE, len(texts)))


class Plain(nn.Module):
    """One microgpt model as PyTorch's modules are put together."""

    def __init__(self, size: GPTSize = SIZE) -> None:
        super().__init__()
        d = size.width
        self.size = size
        self.token, self.position = nn.Embedding(size.vocabulary, d), nn.Embedding(size.block, d)
        layer = lambda i, o: nn.ModuleList(nn.Linear(i, o, bias=False) for _ in range(size.depth))  # noqa: E731
        self.qkv, self.out, self.up, self.down = layer(d, 3 * d), layer(d, d), layer(d, 4 * d), layer(4 * d, d)
        self.output = nn.Linear(d, size.vocabulary, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        norm = lambda x: rms_norm(x, (self.size.width,), eps=1e-5)  # noqa: E731
        x = norm(self.token(ids) + self.position(torch.arange(ids.shape[-1])))
        for qkv, out, up, down in zip(self.qkv, self.out, self.up, self.down, strict=True):
            q, k, v = (each.unflatten(-1, (self.size.heads, -1)).transpose(0, 1) for each in qkv(norm(x)).chunk(3, -1))
            mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + out(mixed.transpose(0, 1).flatten(-2))
            x = x + down(up(norm(x)).relu())
        return self.output(x)

    def read(self, weights: dict[str, Tensor], r: int) -> "Plain":
        """The same module with the weights of model r."""
        with torch.no_grad():
            for name, weight in weights.items():
                self.get_parameter(
                    f"{name}.weight" if not name[-1].isdigit() else f"{name[:-1]}.{name[-1]}.weight"
                ).copy_(weight[r])
        return self


def plain_modules(weights: dict[str, Tensor]) -> list[Plain]:
    """All models, each a module of its own."""
    return [Plain().double().read(weights, r) for r in range(len(weights["token"]))]


def _descend(parameters: list[Tensor]) -> torch.optim.Adam:
    return torch.optim.Adam(parameters, betas=BETAS, fused=True)


def stacked(inputs: tuple) -> Tensor:
    """torch.func: vmap over stacked modules"""
    weights, texts = inputs
    modules, rate = plain_modules(weights), falling(RATE, len(texts))
    parameters, _ = stack_module_state(modules)

    def loss(parameters: dict[str, Tensor], text: Tensor) -> Tensor:
        return cross_entropy(functional_call(modules[0], parameters, (text[:-1],)), text[1:])

    step_of_all = vmap(grad_and_value(loss))
    optimiser, found = _descend(list(parameters.values())), []
    for step, text in enumerate(texts):
        for group in optimiser.param_groups:
            group["lr"] = rate(step)
        gradients, losses = step_of_all(parameters, text)
        for name, parameter in parameters.items():
            parameter.grad = gradients[name].contiguous()  # the fused optimiser takes no strides
        optimiser.step()
        found.append(losses.detach())
    return torch.stack(found, dim=-1)


def alone(weights: dict[str, Tensor], texts: Tensor) -> Tensor:
    """The losses of one model, trained by itself; weights (1, ...), texts (steps, T + 1)."""
    model, rate = Plain().double().read(weights, 0), falling(RATE, len(texts))
    optimiser, found = _descend(list(model.parameters())), []
    for step, text in enumerate(texts):
        for group in optimiser.param_groups:
            group["lr"] = rate(step)
        loss = cross_entropy(model(text[:-1]), text[1:])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        found.append(loss.detach())
    return torch.stack(found)


def _alone_arrays(arguments: tuple) -> list[float]:
    weights, texts = arguments
    return alone({name: torch.from_numpy(each) for name, each in weights.items()}, torch.from_numpy(texts)).tolist()


def processes(inputs: tuple) -> Tensor:
    """one training after the other, in parallel processes"""
    weights, texts = inputs
    context = harness.fresh_processes("task_ecologies")  # autograd refuses a fork of a process that has used it
    each = [
        ({name: weight[r : r + 1].numpy() for name, weight in weights.items()}, texts[:, r].numpy())
        for r in range(texts.shape[1])
    ]
    with ProcessPoolExecutor(torch.get_num_threads(), context, torch.set_num_threads, (1,)) as pool:
        train = partial(harness.called, "task_ecologies", "_alone_arrays")
        return torch.tensor(list(pool.map(train, each)), dtype=torch.float64)


def same_losses(inputs: tuple, ours: Tensor, theirs: Tensor) -> float:
    """The largest difference of any loss of any model, which must have learned something and differ among models."""
    moved = float((ours[:, -1] - ours[:, 0]).abs().min())
    harness.require(moved > 1e-3, "a model's loss did not move: the comparison would not notice a wrong step")
    harness.require(ours.shape == theirs.shape, f"losses {tuple(ours.shape)} and {tuple(theirs.shape)}")
    return harness.within(float((ours - theirs).abs().max()), 1e-5)


def one_step(inputs: tuple) -> Tensor:
    """loss and gradients of one model by autograd"""
    weights, texts = inputs
    model = MicroGPT(SIZE, Draws(dtype=torch.float64))
    with torch.no_grad():
        for name, weight in model.weights.items():
            weight.copy_(weights[name][:1])
    ids = texts[0, :1]
    loss = text_losses(model(ids[:, :-1]), ids[:, 1:]).mean()
    gradients = torch.autograd.grad(loss, list(model.weights.values()))
    return torch.cat([loss.detach().view(1), *(each.flatten() for each in gradients)])


def scalar_step(inputs: tuple) -> Tensor:
    """plain Python numbers, one after the other"""
    weights, texts = inputs
    numbers = {name: [[Number(x) for x in row] for row in weight[0].tolist()] for name, weight in weights.items()}
    loss = scalar_loss(numbers, texts[0, 0].tolist(), SIZE.heads)
    loss.backward()
    found = [loss.value] + [x.gradient for name in weights for row in numbers[name] for x in row]
    return torch.tensor(found, dtype=torch.float64)


def same_numbers(inputs: tuple, ours: Tensor, theirs: Tensor) -> float:
    """The largest difference of loss and gradients over the largest of them."""
    return harness.within(float((ours - theirs).abs().max() / ours.abs().max()), 1e-10)


def ensembles(quick: bool) -> Iterator[harness.Race]:
    models, steps, length = (4, 6, 12) if quick else (32, 40, 31)
    yield harness.Race(
        name=f"training of {models} models, {steps} steps, {length} letters",
        build=build,
        sizes={"models": models, "steps": steps, "length": length},
        ours=ensemble,
        peers=(
            harness.Peer(run=stacked, gap=same_losses),
            harness.Peer(run=processes, gap=same_losses),
        ),
    )
    length = 3 if quick else 15
    yield harness.Race(
        name=f"gradients of one model, {length} letters",
        build=build,
        sizes={"models": 1, "steps": 1, "length": length},
        ours=one_step,
        peers=(harness.Peer(run=scalar_step, gap=same_numbers, role="plain"),),
        rounds=5,
    )


def build_costs(worlds: int) -> np.ndarray:
    """The cost of every set of worlds as a cell of J_beta, (2^n,): languages of four families, three contexts, 27
    letters, at a price where the best partition has a few cells."""
    n, generator = max(worlds, 4), stream(0, "bench families")
    families = simplex((4, 3, 27), generator)[np.arange(n) % 4]
    laws = 0.6 * families + 0.4 * simplex((n, 3, 27), generator)
    costs = cell_costs(FiniteEcology(simplex((n,), generator), np.full(3, 1 / 3), laws))
    return costs.losses + PRICE * costs.entropies


def ours_subsets(costs: np.ndarray) -> np.ndarray:
    """best_partition, minimum convolutions"""
    return from_masks(best_partition(costs), costs.size.bit_length() - 1)


def integer_program(costs: np.ndarray) -> np.ndarray:
    """HiGHS, set partitioning (scipy.optimize.milp)"""
    n = costs.size.bit_length() - 1
    sets = np.arange(1, costs.size)
    membership = csc_array((sets >> np.arange(n)[:, None] & 1).astype(float))
    found = milp(
        costs[1:],
        integrality=np.ones(sets.size),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(membership, 1, 1),
        options={"mip_rel_gap": 0.0},
    )
    harness.require(found.status == 0, f"HiGHS: {found.message}")
    return from_masks(sets[found.x > 0.5].tolist(), n)


@cache
def compiled() -> Callable:
    """numba's loop over the subsets of every set of worlds, and back along the best cells."""
    import numba

    @numba.njit
    def cell_of(costs, best, union, top):
        rest, least, chosen = union ^ top, np.inf, 0
        inside = rest
        while True:
            value = costs[inside | top] + best[rest ^ inside]
            if value < least:
                least, chosen = value, inside | top
            if inside == 0:
                return least, chosen
            inside = (inside - 1) & rest

    @numba.njit
    def recursion(costs, n):
        best = np.zeros(1 << (n - 1))
        top = 1
        for union in range(1, 1 << (n - 1)):
            if union == 2 * top:
                top = union
            best[union] = cell_of(costs, best, union, top)[0]
        labels, rest, cell = np.zeros(n, dtype=np.int64), (1 << n) - 1, 0
        while rest:
            top = 1
            while 2 * top <= rest:
                top *= 2
            chosen = cell_of(costs, best, rest, top)[1]
            for w in range(n):
                if chosen >> w & 1:
                    labels[w] = cell
            rest ^= chosen
            cell += 1
        return labels

    return recursion


def numba_subsets(costs: np.ndarray) -> np.ndarray:
    """numba, a loop over submasks"""
    return compiled()(costs, costs.size.bit_length() - 1)


def enumeration(costs: np.ndarray) -> np.ndarray:
    """the list of all partitions"""
    partitions = set_partitions(costs.size.bit_length() - 1)
    blocks = np.array_split(partitions, max(1, len(partitions) // 4096))
    totals = np.concatenate([incidence(block) @ costs for block in blocks])
    return partitions[totals.argmin()]


def same_value(costs: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> float:
    """The difference of the costs of both partitions: each sum of a few terms is exact to far below the bound."""
    values = [costs[masks(np.asarray(labels))].sum() for labels in (ours, theirs)]
    return harness.within(abs(float(values[0] - values[1])), 1e-10)


COMPILED = (
    "Our own recursion, compiled. To load numba alone takes longer than all calls of the chapter together, and with "
    "LLVM it would be the book's largest package after torch."
)


def recursions(quick: bool) -> Iterator[harness.Race]:
    """numba is left out, and said so, where it is not installed."""
    peers = (harness.Peer(run=integer_program, gap=same_value),)
    if find_spec("numba"):
        peers += (harness.Peer(run=numba_subsets, gap=same_value, why=COMPILED),)
    else:
        print("no numba here; the extra `bench` brings it")
    for n in (6, 8) if quick else (12, 16):
        able = peers if n < 16 else peers[1:]
        if able:
            facts = {"build": build_costs, "sizes": {"worlds": n}, "ours": ours_subsets}
            yield harness.Race(name=f"best partition of {n} worlds", peers=able, **facts)
    n = 5 if quick else 10
    witness = harness.Peer(run=enumeration, gap=same_value, role="plain")
    facts = {"build": build_costs, "sizes": {"worlds": n}, "ours": ours_subsets}
    yield harness.Race(name=f"best partition of {n} worlds", peers=(witness,), **facts)


def build_ecology(worlds: int) -> FiniteEcology:
    """Random worlds, three contexts, 27 letters."""
    n, generator = max(worlds, 3), stream(0, "bench codes")
    return FiniteEcology(simplex((n,), generator), simplex((3,), generator), simplex((n, 3, 27), generator))


def ours_codes(ecology: FiniteEcology) -> np.ndarray:
    """cell_excesses and cell_costs, summed over cells"""
    costs = cell_costs(ecology)
    each = np.stack([cell_excesses(ecology), costs.losses, costs.entropies], axis=1)
    return incidence(set_partitions(ecology.num_worlds)) @ each


def code_by_code(ecology: FiniteEcology) -> np.ndarray:
    """FiniteEcology, one code after the other"""
    codes = set_partitions(ecology.num_worlds)
    return np.array(
        [[each(code) for each in (ecology.js_excess, ecology.bayes_loss, ecology.complexity)] for code in codes]
    )


AUTHOR = """
include(joinpath(ARGS[1], "src", "LlmPaper.jl"))
using .LlmPaper
include(joinpath(ARGS[1], "src", "microgpt.jl"))

function codes(n, C, V, numbers)
    prior, contexts = numbers[1:n], numbers[n+1:n+C]
    laws = permutedims(reshape(numbers[n+C+1:end], V, C, n), (3, 2, 1))
    ecology = FiniteEcology(prior, contexts, laws)
    all = all_partitions(n)
    vcat([[js_excess(ecology, l), bayes_opt_loss(ecology, l), partition_complexity(ecology, l)] for l in all]...)
end

function training(steps, heads, depth, numbers)
    place = 0
    take(k) = (place += k; numbers[place-k+1:place])
    matrix() = (shape = Int.(take(2)); permutedims(reshape(take(prod(shape)), shape[2], shape[1])))
    rates = take(steps)
    texts = Int.(matrix())
    token, position, output = matrix(), matrix(), matrix()
    d = size(token, 2)
    cfg = ModelConfig(depth, d, heads, size(position, 1), size(token, 1), 4, 0.08, 0.008, BETAS..., 1e-8)
    state = init_model(cfg)
    state.W["wte"], state.W["wpe"], state.W["lm_head"] = token, position, output
    for l in 0:depth-1
        qkv = matrix()
        for (i, name) in enumerate(("wq", "wk", "wv"))
            state.W["$l.attn_$name"] = qkv[(i-1)*d+1:i*d, :]
        end
        state.W["$l.attn_wo"], state.W["$l.mlp_fc1"], state.W["$l.mlp_fc2"] = matrix(), matrix(), matrix()
    end
    [train_step_lr!(state, texts[s, :], s, cfg, rates[s]) for s in 1:steps]
end

for line in eachline(stdin)
    words = split(line)
    numbers = collect(reinterpret(Float64, read(String(words[2]))))
    run = words[1] == "codes" ? codes : training
    println(join(run(parse.(Int, words[3:end])..., numbers), " "))
    flush(stdout)
end
"""


@cache
def author() -> Callable[..., np.ndarray] | None:
    """The author's code as a function of a task, its sizes and its numbers, where it and Julia are at hand."""
    folder, julia = harness.authors_code("llm_evo_veridicity"), shutil.which("julia")
    if folder and not julia:
        print("no julia on the path: the author's code is left out")
    if not (folder and julia):
        return None
    script = AUTHOR.replace("BETAS", repr(BETAS))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([julia, "-e", script, str(folder)], **pipes)

    def run(task: str, *sizes: int, numbers: np.ndarray) -> np.ndarray:
        with TemporaryDirectory() as place:
            path = Path(place) / "numbers"
            numbers.astype(float).tofile(path)
            print(task, path, *sizes, file=process.stdin, flush=True)
            answer = process.stdout.readline()
        harness.require(bool(answer), "the author's code ended without an answer")
        return np.array(answer.split(), dtype=float)

    return run


def author_codes(ecology: FiniteEcology) -> np.ndarray:
    """the author's code, in Julia"""
    numbers = np.concatenate([each.ravel() for each in (ecology.prior, ecology.contexts, ecology.laws)])
    return author()("codes", *ecology.laws.shape, numbers=numbers).reshape(-1, 3)


def author_training(inputs: tuple) -> Tensor:
    """the author's code, in Julia"""
    weights, texts = inputs
    steps, rate = len(texts), falling(RATE, len(texts))
    matrices = [texts[:, 0].numpy() + 1, *(weights[name][0].numpy() for name in ("token", "position", "output"))]
    for i in range(SIZE.depth):
        matrices += [weights[f"{name}{i}"][0].numpy() for name in ("qkv", "out", "up", "down")]
    parts = [np.array([rate(step) for step in range(steps)])]
    for matrix in matrices:
        parts += [np.array(matrix.shape), matrix.ravel()]
    return torch.from_numpy(author()("training", steps, SIZE.heads, SIZE.depth, numbers=np.concatenate(parts)))[None]


def same_table(ecology: FiniteEcology, ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference of any number of any code: sums of a few hundred terms of size one."""
    harness.require(ours.shape == theirs.shape, f"tables {ours.shape} and {theirs.shape}")
    return harness.within(float(np.abs(ours - theirs).max()), 1e-12)


def authors(quick: bool) -> Iterator[harness.Race]:
    n = 4 if quick else 8
    peers = [harness.Peer(run=code_by_code, gap=same_table, role="plain")]
    if author():
        peers.append(harness.Peer(run=author_codes, gap=same_table, role="author"))
    yield harness.Race(
        name=f"excess, loss and entropy of all codes of {n} worlds",
        build=build_ecology,
        sizes={"worlds": n},
        ours=ours_codes,
        peers=tuple(peers),
    )
    if author():
        steps, length = (6, 12) if quick else (40, 31)
        yield harness.Race(
            name=f"one model alone, {steps} steps, {length} letters",
            build=build,
            sizes={"models": 1, "steps": steps, "length": length},
            ours=ensemble,
            peers=(harness.Peer(run=author_training, gap=same_losses, role="author"),),
        )


def races(quick: bool) -> Iterator[harness.Race]:
    yield from recursions(quick)
    yield from ensembles(quick)
    yield from authors(quick)


if __name__ == "__main__":
    harness.command("task_ecologies", harness.contests(races), rounds=9, quick_rounds=3, dtype="float64")
