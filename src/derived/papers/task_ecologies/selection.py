"""Selection: drawing parents, the quasispecies, drift of recipes, and trained populations (TE-10, E3)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from scipy import stats as scipy_stats
from torch import Tensor

from derived.lab import stats
from derived.lab.claims import RECORDED, at_least, on_page, statistic
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import chosen
from derived.lab.plot import BLUE, DASHED, GREEN, INK, MUTED, RED, THEORY, beside, largest, mean_and_reach, panel_label
from derived.lab.rng import stream
from derived.lab.stats import Estimate

from .data.languages import LanguageFamily, excess, language_family
from .fits import build, falling, fit_texts
from .model.ecology import FiniteEcology
from .model.gpt import GPTSize, MicroGPT
from .model.partitions import is_refinement, set_partitions
from .model.selection import first_order_quasispecies, price_terms, selection_moments, wright_fisher
from .model.selection import quasispecies as quasispecies_shares


@dataclass(frozen=True, kw_only=True)
class Sampling(Experiment):
    """One Wright-Fisher generation of K models. The realised change of the mean loss is compared with its
    exact mean and variance given the fitness: e^-loss ("loss"), or pure noise ("noise").

    Rows: fitness, replicate, z (realised less expected change over its standard deviation), covered (|z| <= 1.96).
    """

    replicates: int = 40_000
    models: int = 20

    tiny: ClassVar = {"replicates": 20_000}

    def conditions(self) -> list[dict]:
        return [{"fitness": name} for name in ("loss", "noise")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        draw = stream(seed, "sampling")
        normal = lambda: torch.randn(self.replicates, self.models, generator=draw, dtype=torch.float64).numpy()  # noqa: E731
        loss, noise = 2.7 + 0.1 * normal(), 2.7 + 0.1 * normal()
        fitness = np.exp(-(loss if condition["fitness"] == "loss" else noise))
        mean, variance = selection_moments(fitness, loss, self.models)
        parents = wright_fisher(fitness, self.models, stream(seed, "sampling parents"))
        change = np.take_along_axis(loss, parents, axis=1).mean(axis=1) - loss.mean(axis=1)
        z = (change - mean) / np.sqrt(variance)
        return rows({"replicate": range(self.replicates)}, {"z": z, "covered": np.abs(z) <= 1.959964})


@dataclass(frozen=True, kw_only=True)
class Quasispecies(Experiment):
    """TE-10.d: all codes of four worlds as types, fitness C - excess, mutation by one split or one merge.

    "one optimum": random ecologies whose worlds all differ; the Perron vector against its first order in epsilon.
    "planted": two worlds alike, so that the quotient and the identity map are equally fit. Rows: case, instance,
    epsilon, type, cells, excess, share (of the Perron vector), first_order, error (largest relative error of the first
    order over the types that one mutation makes, of the instance; NaN where planted), quotient (is it the quotient).
    """

    instances: int = 10
    epsilons: tuple[float, ...] = (1e-3, 1e-4, 1e-5, 1e-6)
    worlds: int = 4

    tiny: ClassVar = {"instances": 4}
    deterministic: ClassVar = {"excess": 1e-9, "share": 1e-7, "first_order": 1e-7}

    def conditions(self) -> list[dict]:
        return [{"case": case, "epsilon": each} for case in ("one optimum", "planted") for each in self.epsilons]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        codes, planted = set_partitions(self.worlds), condition["case"] == "planted"
        rates, epsilon = one_step_rates(codes), condition["epsilon"]
        tables = []
        for instance in range(self.instances):
            ecology = self.ecology(stream(seed, "quasispecies", instance), planted)
            lost = np.array([ecology.js_excess(code) for code in codes]).clip(min=0)
            lost[lost < 1e-12] = 0.0
            fitness = 1.0 - lost
            share = quasispecies_shares(fitness, np.eye(len(codes)) + epsilon * rates)
            first = np.full(len(codes), np.nan) if planted else first_order_quasispecies(fitness, rates, epsilon)
            near = first > 0
            columns = {
                "instance": instance,
                "cells": codes.max(axis=1) + 1,
                "excess": lost,
                "share": share,
                "first_order": first,
                "error": np.nan if planted else np.abs(share[near] / first[near] - 1).max(),
                "quotient": [tuple(code) == tuple(ecology.quotient()) for code in codes],
            }
            tables.append(rows({"type": range(len(codes))}, columns))
        return pd.concat(tables, ignore_index=True)

    def ecology(self, draw: torch.Generator, planted: bool) -> FiniteEcology:
        laws = torch.rand(self.worlds, 3, 3, generator=draw, dtype=torch.float64) + 0.05
        laws[1] = laws[0] if planted else laws[1]
        laws = laws / laws.sum(dim=-1, keepdim=True)
        return FiniteEcology(np.full(self.worlds, 1 / self.worlds), np.full(3, 1 / 3), laws.numpy())


def one_step_rates(codes: np.ndarray) -> np.ndarray:
    """Rate 1 from a code to each that splits one of its cells in two or merges two: rows sum to zero."""
    cells = codes.max(axis=1)
    beside = np.abs(cells[:, None] - cells) == 1
    rates = np.zeros(beside.shape)
    for i, j in zip(*np.nonzero(beside), strict=True):
        rates[i, j] = is_refinement(codes[i], codes[j]) or is_refinement(codes[j], codes[i])
    return rates - np.diag(rates.sum(axis=1))


# The two published runs of recipe populations: population, generations, step of mutation, and what the network at each
# of SHARES scored (summary cross-entropy, NLL discrimination); the mean share that was reported
SHARES = {"exp 6": (0, 0.05, 0.1, 0.25, 0.5, 0.75, 1), "exp 7": (0, 0.1, 0.25, 0.5, 0.75, 0.9, 1)}
PUBLISHED = {
    "exp 6": (12, 20, 0.10, (25.567, 1.826, 0.8094, 0.5697, 0.2842, 0.3576, 0.1871)),
    "exp 7": (14, 25, 0.12, (-0.0016, 0.4622, 0.5170, 0.5813, 0.7130, 0.6908, 0.7848)),
}
REPORTED = {"exp 6": 0.916, "exp 7": 0.890}


@dataclass(frozen=True, kw_only=True)
class Drift(Experiment):
    """Simulate the two published recipe populations: shares start uniform, parents are drawn in proportion to
    fitness, a normal step is added and cut to [0, 1]. "neutral": equal fitness; "selected": the published static curve.

    Rows: published, arm, simulation, final (mean share in the last generation), reported (the paper's), reached.
    """

    simulations: int = 10_000

    tiny: ClassVar = {"simulations": 2000}

    def conditions(self) -> list[dict]:
        return [{"published": name, "arm": arm} for name in PUBLISHED for arm in ("neutral", "selected")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        name, arm = condition["published"], condition["arm"]
        models, generations, step, scores = PUBLISHED[name]
        draw = stream(seed, "drift", name)
        log_fitness = -np.asarray(scores) if name == "exp 6" else np.asarray(scores)
        alpha = torch.rand(self.simulations, models, generator=draw, dtype=torch.float64).numpy()
        for _ in range(generations - 1):  # the last table is printed before its parents are drawn
            fitness = np.exp(np.interp(alpha, SHARES[name], log_fitness)) if arm == "selected" else np.ones_like(alpha)
            alpha = np.take_along_axis(alpha, wright_fisher(fitness, models, draw), axis=1)
            noise = torch.randn(alpha.shape, generator=draw, dtype=torch.float64).numpy()
            alpha = np.clip(alpha + step * noise, 0, 1)
        final = alpha.mean(axis=1)
        columns = {"final": final, "reported": REPORTED[name], "reached": final >= REPORTED[name]}
        return rows({"simulation": range(self.simulations)}, columns)


SMALL = {"letters": 6, "length": 12}


@dataclass(frozen=True, kw_only=True)
class Population(Experiment):
    """TE-E3, after the population of exp 3: models that are copied by their loss, trained a little and perturbed.

    Founders are trained on one language each; the risk is the mean KL from the true laws over held-out texts of all
    languages, fitness e^(-strength risk). "shuffled": the same fitness values, dealt out among the models at random.
    Each replicate has five languages of its own; both arms have the same founders, texts and noise. Rows: strength,
    arm, replicate, generation, risk (before parents are drawn), expected, selection (change of the mean risk by drawing
    parents: its mean, as realised), development (by training), mutation (by noise), variance (of the risk among the
    models), final (after the last generation the mean risk on other texts, which never set fitness; NaN before).
    """

    replicates: int = 24
    models: int = 20
    generations: int = 50
    founding: int = 100
    lifetime: int = 20
    length: int = 31
    letters: int = 26
    held_out: int = 8
    noise: float = 0.001
    strengths: tuple[float, ...] = (1.0, 10.0)

    tiers: ClassVar = {
        "ci": {**dict.fromkeys(("replicates", "models", "generations"), 4), "founding": 20, "lifetime": 5, **SMALL},
        "cpu": {"models": 8, "generations": 12, "lifetime": 10, "letters": 12, "length": 20},
        "gpu": {},
    }
    tiny: ClassVar = {"replicates": 3, "generations": 3, "founding": 5, "lifetime": 2, "held_out": 2}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"strength": each, "arm": arm} for each in self.strengths for arm in ("selected", "shuffled")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        family = self.families(seed)
        size = GPTSize(vocabulary=family.vocabulary, block=self.length)
        model = build(size, self.replicates * self.models, seed, device, dtype, "population")
        founding, living = falling(0.008, self.founding), lambda step: 0.005
        own = 5 * torch.arange(self.replicates).repeat_interleave(self.models)  # each model's first language
        founders = torch.randint(5, (model.K,), generator=stream(seed, "founders")) + own
        self.train(model, family, founders.expand(self.founding, -1), stream(seed, "founding"), founding)
        judge, final = (self.judge(family, seed, name, device, dtype) for name in ("held out", "final"))
        draw, deal = stream(seed, "parents", condition["arm"]), stream(seed, "dealt")
        risk, found = judge(model), []
        for generation in range(self.generations):
            fitness = np.exp(-condition["strength"] * risk)
            if condition["arm"] == "shuffled":
                order = torch.rand(risk.shape, generator=deal).argsort(dim=1).numpy()
                fitness = np.take_along_axis(fitness, order, axis=1)
            parents = wright_fisher(fitness, self.models, draw)
            drawn = np.take_along_axis(risk, parents, axis=1)
            places = parents + self.models * np.arange(self.replicates)[:, None]
            model.replace(torch.as_tensor(places).flatten().to(device))
            lived = torch.randint(5, (self.lifetime, model.K), generator=stream(seed, "languages", generation)) + own
            self.train(model, family, lived, stream(seed, "lifetime", generation), living)
            trained = judge(model)
            model.perturb(self.noise, stream(seed, "mutation", generation))
            after = judge(model)
            mean = lambda each: each.mean(axis=1)  # noqa: E731
            columns = {
                "risk": mean(risk),
                "expected": price_terms(fitness, risk).selection,
                "selection": mean(drawn) - mean(risk),
                "development": mean(trained) - mean(drawn),
                "mutation": mean(after) - mean(trained),
                "variance": risk.var(axis=1),
                "final": mean(final(model)) if generation == self.generations - 1 else np.nan,
            }
            found.append(rows({"replicate": range(self.replicates)}, columns).assign(generation=generation))
            risk = after
        return pd.concat(found, ignore_index=True)

    def train(
        self, model: MicroGPT, family: LanguageFamily, languages: Tensor, draw: torch.Generator, rate: Callable
    ) -> None:
        """One text a step, of the language of that step, (steps, K); moments of the optimiser begin at zero."""
        fit_texts(model, family.texts(languages, self.length, draw).to(next(model.parameters()).device), rate=rate)

    def families(self, seed: int) -> LanguageFamily:
        """Five languages for each replicate, those of replicate r from place 5 r."""
        draws = (stream(seed, "population family", replicate) for replicate in range(self.replicates))
        each = [language_family(generator=draw, letters=self.letters) for draw in draws]
        return LanguageFamily(*(torch.cat([getattr(one, name) for one in each]) for name in ("first", "transitions")))

    def judge(self, family: LanguageFamily, seed: int, name: str, device, dtype):
        """A function from models to their risks, (replicates, models), on texts that stay the same."""
        languages = torch.arange(5 * self.replicates).view(self.replicates, 5).repeat_interleave(self.held_out, dim=1)
        texts = family.texts(languages, self.length, stream(seed, "population", name))[..., :-1]
        laws = family.laws(languages, texts).to(device, dtype).unsqueeze(1)  # (replicates, 1, texts, T, V)
        texts = texts.repeat_interleave(self.models, dim=0).to(device)  # of each model

        @torch.no_grad()
        def risk(model: MicroGPT) -> np.ndarray:
            each = excess(model(texts).unflatten(0, (self.replicates, self.models)), laws)
            return each.mean(dim=-1).double().cpu().numpy()

        return risk


# Claims: TE-10, 11 and E3: what selection prefers, recipes as traits, and trained populations. TE-10.d and 11 are
# decided by the check cells of their statements.


def final_difference(rows: pd.DataFrame, strength: float) -> Estimate:
    """The mean risk at the end, on texts that set no fitness, with dealt-out fitness less that with true fitness."""
    last = chosen(rows, f"strength == {strength} and generation == generation.max()")
    wide = last.pivot(index="replicate", columns="arm", values="final")
    return stats.mean(wide["shuffled"] - wide["selected"])


def two_controls(rows: pd.DataFrame) -> Estimate:
    """The same difference of the controls at the two strengths: fitness is dealt out at random in both."""
    last = chosen(rows, "arm == 'shuffled' and generation == generation.max()")
    wide = last.pivot(index="replicate", columns="strength", values="final")
    return stats.mean(wide[1.0] - wide[10.0])


FINAL = (
    "mean risk after the last generation on texts that set no fitness, control less selected, replicate by replicate"
)
WHERE = (
    "generated languages, a family for each replicate; a run on one family had been seen. What matters is what drawing parents takes off in the paper in twelve "
    "generations, 0.0015 in each (tier gpu has fifty, so that the limit is strict there); it was set when the rows had been seen"
)
RISK = {"unit": "nats", "judged_at": RECORDED, "control": two_controls, "matters": 0.018}

CLAIMS = (
    on_page("TE-10.d", where="a reading of Propositions 43 and 44 with Theorem 50"),
    on_page(
        "TE-11.a",
        source="paper",
        where="Proposition 75 (b)",
        plain="Selection favours recipes with more of the second ecology whenever that lowers their loss.",
    ),
    on_page("TE-11.b", amends="TE-11.a"),
    statistic(
        "TE-E3.a",
        "At the end of a run, training and noise included, a population of trained models whose parents were drawn by $e^{-R}$ has a lower mean risk than one whose parents were drawn by the same numbers dealt out at random.",
        Population,
        lambda rows: final_difference(rows, 1.0),
        FINAL,
        at_least(0),
        source="paper",
        where="Figure 3; " + WHERE,
        paper_value="risk 2.934 to 2.690, no control",
        plain="Copying models in proportion to their fitness leaves a population with a lower loss than copying at random.",
        **RISK,
    ),
    statistic(
        "TE-E3.b",
        "With fitness ten times as steep, $e^{-10R}$, the population under selection has a lower mean risk at the end than the control.",
        Population,
        lambda rows: final_difference(rows, 10.0),
        FINAL,
        at_least(0),
        where=WHERE,
        **RISK,
    ),
)


# Figures: Selection in populations: rows in, a figure with its alt text as label out.
#
# mark                  meaning
# filled, open marker   recorded, live; bars are 99.9 % intervals over replicates
# line in INK           theory
# dashed                zero, or a published value


def coverage(rows: pd.DataFrame) -> Figure:
    """The standardised selection change where fitness is the loss and where it is noise; rows of ``Sampling``."""
    rows = largest(rows)
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 2.9), sharex=True, sharey=True)
    grid, words = np.linspace(-4, 4, 161), []
    names = {"loss": "fitness $e^{-R}$", "noise": "fitness pure noise"}
    for ax, (fitness, name), color in zip(axes, names.items(), (BLUE, RED), strict=True):
        part = rows[rows["fitness"] == fitness]
        ax.hist(part["z"], bins=np.linspace(-4, 4, 49), density=True, color=color, alpha=0.5)
        ax.plot(grid, scipy_stats.norm.pdf(grid), **THEORY)
        share = part["covered"].mean()
        ax.annotate(f"{share:.3f} within ±1.96", (0.03, 0.9), xycoords="axes fraction", fontsize=8, color=color)
        ax.set_xlabel("realised less expected, in standard deviations")
        panel_label(ax, name)
        words.append(f"fitness by {fitness}: {share:.3f} within 1.96, standard deviation {part['z'].std():.3f}")
    axes[0].set_ylabel("density")
    figure.set_label(f"Standardised selection change over {len(part)} generations each; {'; '.join(words)}.")
    return figure


def quasispecies(rows: pd.DataFrame) -> Figure:
    """Left: relative error of the first order in the mutation rate. Right: what codes of no excess keep at equal
    fitness; rows of ``Quasispecies``."""
    rows = largest(rows)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.1))
    one = rows[(rows["case"] == "one optimum") & (rows["type"] == 0)]
    for _, part in one.groupby("instance"):
        left.plot(part["epsilon"], part["error"], "o-", color=BLUE, alpha=0.4, markersize=3, linewidth=0.8)
    ends = np.array([one["epsilon"].min(), one["epsilon"].max()])
    left.plot(ends, ends * float(np.median(one["error"] / one["epsilon"])), **THEORY)
    left.set(xscale="log", yscale="log", xlabel=r"mutation rate $\varepsilon$", ylabel="largest relative error")
    free = rows[(rows["case"] == "planted") & (rows["excess"] == 0)]
    shares = {}
    for quotient, name, color in ((True, "quotient", GREEN), (False, "identity map", RED)):
        share = free[free["quotient"] == quotient].groupby("epsilon")["share"].mean()
        right.plot(share.index, share, "o-", color=color)
        called = name if quotient else f"{name}, finer"
        beside(right, share.index[0], share.iloc[0], called, color, (4, 9))
        shares[name] = share.iloc[0]
    right.set(xscale="log", xlabel=r"mutation rate $\varepsilon$", ylabel="share of the population", ylim=(0, 1))
    panel_label(left, "first-order formula: its error\nfalls with the mutation rate")
    panel_label(right, f"rare mutation: a finer code\nkeeps a share of {shares['identity map']:.2f}")
    figure.set_label(
        f"Left: the error of the first order falls in proportion to the mutation rate, to {one['error'].min():.1g}. "
        f"Right: at the smallest rate the quotient has {shares['quotient']:.2f} of the population and the equally fit "
        f"identity map {shares['identity map']:.2f}: mutation, not selection, sets these shares."
    )
    return figure


def drift(rows: pd.DataFrame) -> Figure:
    """Where mixing shares end without selection and with the published fitness curve; rows of ``Drift``."""
    rows = largest(rows)
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.0), sharex=True, sharey=True)
    words = []
    for ax, (name, part) in zip(axes, rows.groupby("published"), strict=True):
        for arm, color in (("neutral", MUTED), ("selected", BLUE)):
            final = part[part["arm"] == arm]["final"]
            ax.hist(final, bins=np.linspace(0, 1, 41), density=True, histtype="step", color=color, label=arm)
            reached = part[part["arm"] == arm]["reached"].mean()
            words.append(f"{name} {arm} mean {final.mean():.2f}, {reached:.3f} reach the published value")
        ax.axvline(part["reported"].iloc[0], **DASHED)
        beside(ax, part["reported"].iloc[0], 0.3, "published", MUTED, (-4, 0), ha="right", fontsize=8)
        ax.set_xlabel(r"final mean share $\bar\alpha$")
        panel_label(ax, name.replace("exp", "experiment"))
    axes[0].set_ylabel("density of runs")
    axes[0].legend(fontsize=8, loc="upper left")
    figure.set_label(f"Final mean shares of simulated recipe populations: {'; '.join(words)}.")
    return figure


PARTS = {"selection": ("selection", BLUE), "development": ("training", GREEN), "mutation": ("perturbation", RED)}


def changes(rows: pd.DataFrame) -> Figure:
    """What selection, training and noise take off the mean risk in a run; rows of ``Population``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(5.5, 3.6))
    words, totals, ticks, place = [], [], {}, 0.0
    for strength in sorted(rows["strength"].unique()):
        power = "R" if strength == 1 else f"{strength:g}R"
        ax.annotate(rf"fitness $e^{{-{power}}}$", (0, place - 0.5), va="center")
        for arm, name in (("selected", "true fitness"), ("shuffled", "dealt out")):
            part = rows[(rows["strength"] == strength) & (rows["arm"] == arm)]
            taken, begin = -part.groupby("replicate")[[*PARTS]].sum(), 0.0
            for cause, (said, color) in PARTS.items():
                mean = taken[cause].mean()
                ax.barh(place, mean, 0.62, begin, color=color, edgecolor=color, alpha=0.8)
                if mean > 0.03:
                    beside(ax, begin, place, said, "#ffffff", (5, 0))
                begin += mean
                words.append(f"strength {strength:g}, {arm}, {said} {-mean:+.3f}")
            mean, reach = mean_and_reach(taken.sum(axis="columns"))
            ax.errorbar(mean, place, xerr=reach, fmt="D", color=INK, markersize=4, capsize=3)
            totals.append(mean)
            ticks[place] = name
            place += 1
        place += 0.8
    ax.set_yticks([*ticks], [*ticks.values()])
    ax.set(ylim=(place - 1.2, -1.0), xlim=(min(0, ax.get_xlim()[0]), None))
    ax.tick_params(axis="y", length=0)
    ax.set(xlabel="taken off the mean risk in a run (nats)", ylabel="parents drawn by")
    panel_label(ax, f"Selected or not, the risk falls by {min(totals):.3f} to {max(totals):.3f} nats")
    figure.set_label(
        "Change of the mean risk since the founders by its three causes, under selection and with fitness dealt out at "
        f"random: {'; '.join(words)}; in all it falls by {min(totals):.3f} to {max(totals):.3f}."
    )
    return figure
