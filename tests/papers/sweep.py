"""An example call of every public function, for the sweep: small tensors by name, and what is asked of the answer.

A name without floating tensors stands in ``WITHOUT_TENSORS``, with what it takes instead.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from derived.lab.nets import Draws
from derived.lab.rng import stream
from derived.papers import (
    cactus,
    geometric_tax,
    hierarchical_kernel,
    homogenized,
    in_place_ttt,
    ols_attention,
    signal_propagation,
    sinkhorn,
    stochastic_approximation,
)
from derived.papers.homogenized.model.heads import Heads

Answer = Tensor | tuple[Tensor, ...]


@dataclass(frozen=True)
class Example:
    """``call`` takes the tensors by name, in float64.

    batched: a leading axis on every tensor gives one on the answer; graded: the tensors that have gradients, all where
    it is not said; laws: tensors that are laws on their last axis; zeros: laws of which a weight may be 0; far: tensors
    to which a constant may be added; compared: lower precisions give the same but for ``roundings``, which what is
    drawn in another dtype does not.
    """

    call: Callable[..., Answer]
    tensors: dict[str, Tensor]
    batched: bool = True
    graded: tuple[str, ...] | None = None
    laws: tuple[str, ...] = ()
    zeros: tuple[str, ...] = ()
    far: tuple[str, ...] = ()
    compared: bool = True
    roundings: float = 200.0


def normal(*shape: int, name: object = 0) -> Tensor:
    return torch.randn(*shape, generator=stream(0, "sweep", str(shape), str(name)), dtype=torch.float64)


def law(*shape: int, name: object = 0) -> Tensor:
    return normal(*shape, name=name).softmax(dim=-1)


def unit(*shape: int) -> Tensor:
    return nn.functional.normalize(normal(*shape), dim=-1)


def places(*shape: int, name: object = 0) -> Tensor:
    return normal(*shape, name=name).sigmoid()


def maps(weights: Any) -> tuple[Tensor, Tensor]:
    """The products of a layer's weights, which the signs of singular vectors do not change."""
    return weights.W_Q @ weights.W_K.mT, weights.W_V @ weights.W_FFN @ weights.W_p


def gates(x: Tensor) -> nn.Module:
    mlp = nn.Module()
    mlp.gate_proj, mlp.up_proj, mlp.down_proj = nn.Linear(4, 6), nn.Linear(4, 6), nn.Linear(6, 4)
    mlp.act_fn = nn.SiLU()
    for k, weights in enumerate(mlp.parameters()):
        weights.data = normal(*weights.shape, name=k) / 2
    return mlp.to(x)


def written(x: Tensor) -> Tensor:
    layer = in_place_ttt.InPlaceTTTMLP.from_mlp(gates(x), chunk=2)
    for k, weights in enumerate(layer.parameters()):
        weights.data = (normal(*weights.shape, name=k) / 4).to(x)
    return layer(x)


def stepped(keys: Tensor, source: Tensor, kernel: Tensor) -> Tensor:
    weight = keys.new_zeros(source.shape[-1], keys.shape[-1])
    return in_place_ttt.InPlaceTTTState.begin(weight, chunk=2, lr=0.5).step(keys, source, kernel)


def net(make: Callable[[], nn.Module]) -> Callable[..., Tensor]:
    return lambda **inputs: make().to(next(iter(inputs.values())))(**inputs)


def beside(make: Callable[[], nn.Module], call: str = "forward") -> Callable[..., Answer]:
    """One network of those that stand side by side, on tokens without the networks' axis and with any batch."""

    def one(x: Tensor) -> Tensor:
        return getattr(make().to(x), call)(x.reshape(1, -1, *x.shape[-2:]))[0].unflatten(0, x.shape[:-2] or (1,))

    return lambda x: one(x) if x.ndim > 2 else one(x)[0]


def multi_scale(x: Tensor) -> tuple[Tensor, ...]:
    layer = hierarchical_kernel.HKTAttention
    return tuple(beside(lambda: layer(4, 2, 2, impl))(x) for impl in ("reference", "fused", "tables"))  # noqa: B023


def encoder(name: str) -> Example:
    size = geometric_tax.Size(codes=5, outputs=2, length=6, width=4)
    return Example(beside(lambda: getattr(geometric_tax, name)(size, Draws()), "hidden"), {"x": normal(6, 4)})


def network(x: Tensor) -> signal_propagation.RandomTransformer:
    sizes = {"width": 4, "depth": 2, "norm": "erf", "alpha": 0.7, "num_heads": 2}
    made = signal_propagation.RandomTransformer(**sizes, generator=stream(0, "sweep"), dtype=torch.float64)
    made.weights = [type(each)(*(weight.to(x) for weight in each)) for each in made.weights]
    made.dtype, made.alpha = x.dtype, made.alpha.to(x)
    return made


def norms(x: Tensor, estimate: Callable[..., Any], **more) -> tuple[Tensor, Tensor]:
    found = estimate(network(x), x[None], **more)
    return found.J[0], found.K[0]


def read(query: Tensor, key: Tensor, value: Tensor, y: Tensor) -> Tensor:
    head = stochastic_approximation.RunningSoftmaxAttention(query, key, value)
    for each in y:
        head.update(each)
    return head.read()


X, Y, S = normal(5, 2), normal(5, 1), normal(3, 4)
QKV = {"q": normal(3, 2), "k": normal(4, 2), "v": normal(4, 3)}
TEXT = {"q": normal(6, 2), "k": normal(6, 2, name="k") / 2, "v": normal(6, 3)}
WEIGHTS = {"a": law(3), "b": law(4)}
PAIR = {"x": places(3), "y": places(4), **WEIGHTS}
LAWS = {"p": law(5), "q": law(5, name="q")}
PLAN = law(12).view(3, 4)
R = unit(4, 3) @ unit(4, 3).mT
RULE = cactus.Cactus(0.06)
PROBABILITIES = {"p": places(4), "q": places(4, name="q")}


def rule(make: Callable[[], Any], **more) -> Example:
    return Example(lambda p, q: make().gamma(p, q), PROBABILITIES, **more)


def rows_rule(each: Any, **more) -> Example:
    return Example(lambda p, q: cactus.output_law(p, q, each), LAWS, laws=("p", "q"), **more)


EXAMPLES: dict[str, dict[str, Example]] = {
    "ols_attention": {
        "OLSTransformer": Example(
            lambda Xq, C, **data: ols_attention.OLSTransformer.from_data(**data)(Xq, context=C),
            {"X": X, "Y": Y, "Xq": normal(3, 2), "C": normal(4, 2)},
            graded=("Xq", "C"),
        ),
        "in_context_ols": Example(ols_attention.in_context_ols, {"Xq": normal(3, 2), "X": X, "Y": Y}),
        "linear_attention": Example(ols_attention.linear_attention, QKV),
        "ols_coefficients": Example(ols_attention.ols_coefficients, {"X": X, "Y": Y}),
        "optimal_linear_attention": Example(
            lambda X: ols_attention.optimal_linear_attention(X.mT @ X, N=3).Gamma, {"X": X}, batched=False
        ),
        "recall": Example(
            lambda **t: ols_attention.recall(**t, beta=1.0), {"cue": normal(3), "patterns": normal(4, 3)}
        ),
        "ridge_weights": Example(lambda X, Y: maps(ols_attention.ridge_weights(X, Y, 0.5)), {"X": X, "Y": Y}),
        "softmax_regression": Example(
            lambda **t: ols_attention.softmax_regression(**t, beta=0.7), {"Xq": normal(3, 2), "X": X, "Y": Y}
        ),
        "tied_weights": Example(
            lambda **t: maps(ols_attention.tied_weights(**t)), {"X": X, "Y": Y, "L": normal(2, 2) / 2}
        ),
        "train_matrix": Example(
            lambda X, Y, L0: ols_attention.train_matrix(X, Y, L0, epochs=3).L, {"X": X, "Y": Y, "L0": normal(2, 2) / 2},
            graded=(),
        ),
        "train_scalar": Example(
            lambda x, y, l0: ols_attention.train_scalar(x, y, l0, epochs=3).l[-1],
            {"x": normal(5), "y": normal(5, name="y"), "l0": torch.tensor(0.5, dtype=torch.float64)},
            graded=(),
        ),
        "whitening": Example(lambda X: (lambda L: L @ L.mT)(ols_attention.whitening(X)), {"X": X}),
    },
    "sinkhorn": {
        "CouplingTransformer": Example(
            net(lambda: sinkhorn.CouplingTransformer(rank=4, width=8, depth=1)),
            {"x": places(1, 2, 3), "y": places(1, 2, 4), "a": law(1, 2, 3), "b": law(1, 2, 4)},
            laws=("a", "b"), batched=False,
        ),
        "SinkhornTransformer": Example(
            net(lambda: sinkhorn.SinkhornTransformer(3, 2, width=8, depth=1)),
            {"x": normal(1, 2, 4, 3), "weights": law(1, 2, 4)},
            laws=("weights",), zeros=("weights",), batched=False,
        ),
        "attention_weights": Example(
            lambda S, a, b: sinkhorn.attention_weights(S, 3, a, b), {"S": S, **WEIGHTS}, laws=("a", "b"),
            zeros=("b",), far=("S",),
        ),
        "birkhoff_coefficient": Example(sinkhorn.birkhoff_coefficient, {"scores": S}, far=("scores",)),
        "block_kernel": Example(
            lambda target, **t: sinkhorn.block_kernel(**t, target=target / target.sum(dim=(-2, -1), keepdim=True), m=2),
            {**PAIR, "target": PLAN}, laws=("a", "b"),
        ),
        "comonotone": Example(sinkhorn.comonotone, PAIR, laws=("a", "b"), far=("x", "y")),
        "conditional_kernel": Example(
            lambda **t: sinkhorn.conditional_kernel(**t, m=2), {"y": places(4), "b": law(4), "target": law(3, 4)},
            laws=("b", "target"),
        ),
        "crossed": Example(sinkhorn.crossed, PAIR, laws=("a", "b"), far=("x", "y")),
        "entropic_plan": Example(
            lambda cost: sinkhorn.entropic_plan(cost, 0.5).plan, {"cost": S}, graded=(), far=("cost",)
        ),
        "half_steps": Example(
            lambda S, a, b: sinkhorn.half_steps(S, 3, a, b).exp(), {"S": S, **WEIGHTS}, laws=("a", "b"), zeros=("b",),
            far=("S",),
        ),
        "hilbert_distance": Example(sinkhorn.hilbert_distance, {"u": normal(4), "v": normal(4, name="v")}, far=("u",)),
        "implicit_vjp": Example(sinkhorn.implicit_vjp, {"plan": PLAN, "grad_plan": S}, graded=()),
        "local_rate": Example(sinkhorn.local_rate, {"plan": PLAN}),
        "sinkhorn": Example(
            lambda S, a, b: sinkhorn.sinkhorn(S, a, b).plan, {"S": S, **WEIGHTS}, graded=(),
            laws=("a", "b"), zeros=("b",), far=("S",),
        ),
        "sinkhorn_attention": Example(sinkhorn.sinkhorn_attention, QKV),
        "sinkhorn_plan": Example(
            sinkhorn.sinkhorn_plan, {"scores": S, **WEIGHTS}, laws=("a", "b"), zeros=("b",), far=("scores",)
        ),
        "sinkhorn_symmetric": Example(
            lambda S, a: sinkhorn.sinkhorn_symmetric(S + S.mT, a).plan, {"S": normal(3, 3), "a": law(3)}, graded=(),
            laws=("a",), zeros=("a",), far=("S",),
        ),
    },
    "homogenized": {
        "layer_step": Example(
            lambda X, V, A: homogenized.layer_step(nn.functional.normalize(X, dim=-1), 0.5, Heads(V, A, 1.0)),
            {"X": unit(4, 3), "V": normal(2, 3, 3), "A": normal(2, 3, 3, name="A")},
        ),
        "overlap_bracket": Example(lambda R, s: homogenized.overlap_bracket(R, s, 5), {"R": R, "s": R / 2}),
        "overlap_drift": Example(lambda R, s: homogenized.overlap_drift(R, s, 5), {"R": R, "s": R / 2}),
        "post_norm_block": Example(
            lambda x: homogenized.post_norm_block(x, 1.0, 2, generator=stream(0, "sweep")),
            {"x": normal(2, 3, 4)}, batched=False, compared=False,
        ),
        "simulate_chain": Example(
            lambda X: homogenized.simulate_chain(
                nn.functional.normalize(X, dim=-1), 2, 0.2, 1, homogenized.matched_law(3, 1.0), 1.0,
                generator=stream(0, "sweep"),
            ).gram,
            {"X": unit(2, 4, 3)}, batched=False, graded=(), compared=False,
        ),
        "wide_layer": Example(lambda R, mixed: homogenized.wide_layer(R, mixed, 0.5), {"R": R, "mixed": R / 2}),
    },
    "in_place_ttt": {
        "InPlaceTTTMLP": Example(written, {"x": normal(2, 7, 4)}, batched=False),
        "InPlaceTTTState": Example(
            stepped, {"keys": normal(4, 3), "source": normal(4, 2), "kernel": normal(2, 3)}, batched=False
        ),
        "delta_rule": Example(in_place_ttt.delta_rule, {**TEXT, "beta": places(6)}),
        "depthwise_target": Example(
            lambda **t: in_place_ttt.depthwise_target(**t, chunk=4), {"source": normal(6, 3), "kernel": normal(3, 3)}
        ),
        "gated_linear_attention": Example(in_place_ttt.gated_linear_attention, {**TEXT, "decay": places(6, 2)}),
        "gated_mlp_keys": Example(
            in_place_ttt.gated_mlp_keys, {"x": normal(6, 3), "w_gate": normal(4, 3), "w_up": normal(4, 3, name="up")}
        ),
        "in_place_ttt": Example(
            lambda **t: in_place_ttt.in_place_ttt(**t, lr=0.1, chunk=2),
            {"keys": normal(6, 3), "values": normal(6, 2), "w_down": normal(2, 3)},
        ),
        "linear_attention": Example(in_place_ttt.linear_attention, TEXT),
    },
    "cactus": {
        "Cactus": rule(lambda: cactus.Cactus(0.06)),
        "Calibrated": rows_rule(cactus.Calibrated(0.1)),
        "Interp": rule(lambda: cactus.Interp(0.5)),
        "Lenience": rule(lambda: cactus.Lenience(0.5)),
        "Mentored": rows_rule(cactus.Mentored(0.02), graded=()),
        "SpS": rule(cactus.SpS),
        "TopK": rows_rule(cactus.TopK(2)),
        "Typical": rows_rule(cactus.Typical()),
        "accept_reject": Example(
            lambda p, q: cactus.accept_reject(
                p, torch.zeros(2, 3, dtype=torch.long, device=p.device), q, RULE, stream(0, "sweep")
            ).ids,
            {"p": law(2, 3, 5), "q": law(2, 4, 5)}, laws=("p", "q"), batched=False, graded=(),
        ),
        "acceptance_rate": Example(lambda p, q: cactus.acceptance_rate(p, q, RULE), LAWS, laws=("p", "q")),
        "divergence": Example(cactus.divergence, {"h": law(5), "q": law(5, name="q")}, laws=("h", "q")),
        "expected_accepted": Example(lambda alpha: cactus.expected_accepted(alpha, 3), {"alpha": places(4)}),
        "gamma_cactus": Example(cactus.gamma_cactus, {"q_n": places(4), "delta": places(4, name="d") / 20}),
        "gamma_constrained": Example(
            cactus.gamma_constrained, {"q_n": places(4), "budget": places(4, name="d") / 20}, graded=()
        ),
        "mentored_law": Example(lambda p, q: cactus.mentored_law(p, q, 0.02), LAWS, graded=(), laws=("p", "q")),
        "output_law": Example(lambda p, q: cactus.output_law(p, q, RULE), LAWS, laws=("p", "q")),
    },
    "stochastic_approximation": {
        "RunningSoftmaxAttention": Example(
            read, {"query": normal(2), "key": normal(2, 3), "value": normal(1, 3), "y": normal(5, 1, 3)}, batched=False
        ),
        "robbins_monro": Example(
            lambda y, x0: stochastic_approximation.robbins_monro(
                lambda x, y: y - x, y, stochastic_approximation.StepSize.power(), x0
            ).x,
            {"y": normal(6, 3), "x0": normal(3)}, batched=False,
        ),
        "tilted_mean_gaussian": Example(
            stochastic_approximation.tilted_mean_gaussian,
            {"mean": normal(2), "covariance": X.mT @ X, "theta": normal(2, name="t")},
        ),
    },
    "signal_propagation": {
        "RandomTransformer": Example(lambda x: network(x)(x[None])[0], {"x": normal(3, 4)}),
        "apjn_exact": Example(
            lambda x: norms(x, signal_propagation.apjn_exact), {"x": normal(3, 4)}, graded=()
        ),
        "apjn_hutchinson": Example(
            lambda x: norms(x, signal_propagation.apjn_hutchinson, generator=stream(0, "sweep")),
            {"x": normal(3, 4)}, batched=False, graded=(), compared=False,
        ),
    },
    "hierarchical_kernel": {
        "CausalDownsample": Example(beside(lambda: hierarchical_kernel.CausalDownsample(4)), {"x": normal(5, 4)}),
        "ConvQKAttention": Example(beside(lambda: hierarchical_kernel.ConvQKAttention(4, 2)), {"x": normal(5, 4)}),
        "HKTAttention": Example(multi_scale, {"x": normal(5, 4)}),
        "HierarchicalScores": Example(
            beside(lambda: hierarchical_kernel.HierarchicalScores(4, 2, 2)), {"x": normal(5, 4)}
        ),
        "SequenceClassifier": Example(
            beside(
                lambda: hierarchical_kernel.SequenceClassifier(vocabulary=5, classes=3, max_length=5, width=4), "stream"
            ),
            {"x": normal(5, 4)},
        ),
        "symmetric_antisymmetric": Example(
            lambda S: tuple(hierarchical_kernel.symmetric_antisymmetric(S)), {"S": normal(3, 3)}
        ),
    },
    "task_ecologies": {},
    "geometric_tax": {
        "CausalConvolution": encoder("CausalConvolution"),
        "CausalTransformer": encoder("CausalTransformer"),
        "LloydMax": Example(
            lambda x, codes: tuple(
                each.distortion(x) for each in (geometric_tax.LloydMax(codes), geometric_tax.LloydMax.fit(x, 2))
            ),
            {"x": normal(5), "codes": torch.tensor([-1.0, 0.1, 1.2], dtype=torch.float64)}, batched=False, far=("x",),
        ),
        "StateSpace": encoder("StateSpace"),
        "blurred_labels": Example(
            lambda centres: geometric_tax.blurred_labels(centres, 0.3), {"centres": places(2, 4)}, batched=False,
            far=("centres",),
        ),
        "jump_and_spread": Example(
            lambda h: tuple(geometric_tax.jump_and_spread(h[0], h[1:])), {"h": normal(3, 3, 4, 2)}, batched=False,
            far=("h",),
        ),
        "mine": Example(
            lambda X, Y: geometric_tax.mine(X, Y, epochs=1, batch=8, rate=1e-2, hidden=(4, 3), dropout=0.0).held_out,
            {"X": normal(1, 20, 2), "Y": normal(1, 20, 3)}, batched=False, graded=(), far=("X", "Y"),
        ),
        "procrustes_distortion": Example(
            geometric_tax.procrustes_distortion, {"X": normal(5, 2), "Y": normal(5, 2, name="Y")}, far=("X", "Y")
        ),
        "rdm_similarity": Example(
            lambda X, Y: tuple(geometric_tax.rdm_similarity(X, Y, metric) for metric in ("cosine", "euclidean")),
            {"X": normal(5, 2), "Y": normal(5, 3)}, batched=False, graded=(),
        ),
    },
}  # fmt: skip
NUMBERS, MODEL, TOKENS, ARRAYS = "numbers", "a model", "tokens", "arrays of NumPy"
WITHOUT_TENSORS: dict[str, dict[str, str]] = {
    "ols_attention": dict.fromkeys(("linear_load", "predicted_end_point", "softmax_rate"), NUMBERS),
    "sinkhorn": {"block_bound": NUMBERS, "coupling_w1": "a linear programme, which gives a number"},
    "homogenized": dict.fromkeys(
        ("HeadLaw", "attention_moments", "equiangular_tokens", "layers_for", "logistic_overlap", "matched_law",
         "odds_after", "simplex_drift", "time_to_overlap"),
        NUMBERS,
    ),
    "in_place_ttt": {"convert_model": MODEL, "memory_off": MODEL, "self_tests": MODEL}
    | dict.fromkeys(("bigram_documents", "capacity", "mqar", "reach", "read_mask", "ruler_like"), NUMBERS),
    "cactus": {"sequence_law": MODEL, "speculative_generate": MODEL},
    "stochastic_approximation": {"TinyAttention": TOKENS, "bayes_predictive": TOKENS}
    | dict.fromkeys(
        ("Coins", "HeavyTailedRenewal", "Mixture", "StepSize", "Telegraph", "mean_field_root", "self_fed_attention",
         "telegraph_variance"),
        NUMBERS,
    ),
    "signal_propagation": {"Sigmas": NUMBERS, "equiangular_tokens": NUMBERS}
    | dict.fromkeys(
        ("ElementwiseKernel", "ErfKernel", "LayerNormKernel", "TanhKernel", "lambda_stretched", "propagate",
         "softmax_growth", "stretch_constant", "vit_variances", "zeta"),
        ARRAYS,
    ),
    "hierarchical_kernel": {"ShallowPredictor": ARRAYS, "evaluate_tokens": TOKENS, "from_text": "text"}
    | dict.fromkeys(("ListOps", "attention_flops"), NUMBERS),
    "task_ecologies": {"MicroGPT": TOKENS, "read_corpus": "a file"}
    | dict.fromkeys(("GPTSize", "bell_number", "language_family", "set_partitions"), NUMBERS)
    | dict.fromkeys(
        ("FiniteEcology", "is_refinement", "letter", "local_threshold", "mix", "optimal_partition", "partition_path",
         "price_terms", "quasispecies", "repeated", "split_gain", "wright_fisher"),
        ARRAYS,
    ),
    "geometric_tax": {"kmer_counts": "letters", "reverse_complement": "letters"}
    | dict.fromkeys(
        ("Size", "fisher_rao_length", "lorenz", "oscillators", "shannon_lower_bound", "waveforms"), NUMBERS
    ),
}  # fmt: skip
