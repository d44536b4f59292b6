"""The lemma: learnt reward densities approach the true ones as rewards accumulate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polyarm import drawing
from polyarm.environments.presets import make_scenario
from polyarm.experiments.paper.panels import grid_of
from polyarm.experiments.paper.sections import Section
from polyarm.experiments.paper.study_folder import StudyFolder
from polyarm.experiments.reporting import figures
from polyarm.experiments.reporting.statistics import fit_growth, summarize, total_variation
from polyarm.experiments.running.policy_specs import parse_policy
from polyarm.experiments.running.progress import progress_bar
from polyarm.experiments.running.seeds import policy_rng, world_rng
from polyarm.policies import engine_of
from polyarm.tables import Cell, Table
from polyarm.types import Array, World

COUNTS = (5, 10, 20, 50, 100, 200, 500, 1000, 2000)
POLICIES = ("dirichlet", "linear")
SCENARIOS = ("linear-gaussian/a3-0.5", "mixture-a", "mixture-b", "heavy-tailed", "exponential")
NOTE = (
    "Every arm sees the same number of rewards.  Total variation between the posterior predictive density and the "
    "truth, averaged over arms and 16 contexts; the lemma's rate is n^(-1/2) up to logarithms.  On exponential "
    "rewards no mixture of linear Gaussians is the truth, and on all but the first scenario one Gaussian is not."
)


class Job(NamedTuple):
    """One realisation of one policy: what a worker is handed."""

    scenario: str
    policy: str
    counts: tuple[int, ...]
    seed: int
    realization: int


def distances(job: Job) -> Array:
    """Mean total variation after each number of rewards per arm."""
    scenario = make_scenario(job.scenario)
    world = scenario.environment.sample(max(job.counts), world_rng(job.seed, job.realization))
    policy = parse_policy(job.policy).build(scenario)
    engine, state = engine_of(policy, policy.init())
    rng = policy_rng(job.seed, job.realization, job.policy)
    found = []
    for step in range(max(job.counts)):
        for arm in range(scenario.environment.n_arms):
            state = engine.update(state, world.contexts[step], arm, float(world.rewards[step, arm]), rng)
        if step + 1 in job.counts:
            found.append(mean_distance(scenario.environment, engine, state, world))
    return np.array(found)


def mean_distance(environment: Any, engine: Any, state: Any, world: World) -> float:
    """Total variation between learnt and true density, averaged over arms and a grid of contexts."""
    found = []
    for arm in range(environment.n_arms):
        grid = wide_grid(world.rewards[:, arm])
        for context in probe_contexts(environment.context_dim):
            learnt = engine.predictive(state, context, arm).pdf(grid)
            found.append(total_variation(learnt, environment.density(context, arm, grid), grid))
    return float(np.mean(found))


def probe_contexts(context_dim: int) -> Array:
    """A 4 by 4 grid inside the unit square; without context, the constant."""
    if context_dim == 1:
        return np.ones((1, 1))
    ticks = np.array([0.2, 0.4, 0.6, 0.8])
    return np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)


def wide_grid(rewards: Array) -> Array:
    """Grid over all rewards, dense where they are."""
    low, high = rewards.min(), rewards.max()
    margin = 0.5 * (high - low)
    dense = np.quantile(rewards, np.linspace(0, 1, 600))
    bulk = np.linspace(np.quantile(rewards, 0.01), np.quantile(rewards, 0.99), 600)
    return np.unique(np.concatenate([dense, bulk, np.linspace(low - margin, high + margin, 600)]))


class Decay(NamedTuple):
    """Distances (realisations, counts) of one policy on one scenario."""

    scenario: str
    policy: str
    counts: tuple[int, ...]
    distances: Array


def decay_row(decay: Decay) -> tuple[Cell, ...]:
    """Distance after few and many rewards, and the fitted power of n from 20 rewards on."""
    counts = np.array(decay.counts, dtype=np.float64)
    mean = decay.distances.mean(axis=0)
    late = counts >= 20
    first, last = (summarize(decay.distances[:, i]) for i in (0, -1))
    return (decay.scenario, decay.policy, first.mean, last.mean, last.se, fit_growth(counts[late], mean[late]).power)


def draw_decay(axes: Any, decays: Sequence[Decay]) -> None:
    """Mean distance against the number of rewards, on logarithmic axes."""
    for position, decay in enumerate(decays):
        style = drawing.style_of(position)
        low, high = np.quantile(decay.distances, [0.05, 0.95], axis=0)
        axes.loglog(decay.counts, decay.distances.mean(axis=0), label=decay.policy, linewidth=1.6, marker="o", **style)
        axes.fill_between(decay.counts, low, high, color=style["color"], alpha=0.12, linewidth=0)
    counts = np.array(decays[0].counts)
    slope = decays[0].distances.mean() * np.sqrt(counts[len(counts) // 2] / counts)
    axes.loglog(counts, slope, color="#444444", linestyle=":", linewidth=1.2, label="slope of n^(-1/2)")
    axes.set(xlabel="rewards per arm n", ylabel="total variation", title=decays[0].scenario)
    axes.set_ylim(figures.decades(np.concatenate([decay.distances.mean(axis=0) for decay in decays])))
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.legend(fontsize="small", frameon=False)


@dataclass(frozen=True)
class ConvergenceTarget:
    """Distance between learnt and true densities."""

    name: str = "convergence"
    title: str = "Convergence of the learnt reward densities"
    scenarios: Sequence[str] = SCENARIOS
    counts: tuple[int, ...] = COUNTS
    realizations: int = 20

    def decays(self, place: StudyFolder) -> list[Decay]:
        """Distances of every policy on every scenario."""
        count = self.realizations if place.realizations is None else min(place.realizations, self.realizations)
        jobs = [
            Job(scenario, policy, self.counts, place.seed, number)
            for scenario in self.scenarios
            for policy in POLICIES
            for number in range(count)
        ]
        found = []
        with progress_bar(self.name, len(jobs), place.progress) as advance:
            for values in place.executor.map(distances, jobs):
                found.append(values)
                advance(1)
        groups = [(jobs[i], np.array(found[i : i + count])) for i in range(0, len(jobs), count)]
        return [Decay(job.scenario, job.policy, job.counts, values) for job, values in groups]

    def run(self, place: StudyFolder) -> Section:
        """Table and figure of the distances."""
        decays = self.decays(place)
        heads = ("scenario", "policy", f"TV at n = {self.counts[0]}", f"at n = {self.counts[-1]}", "± se", "power of n")
        table = Table(self.title, heads, tuple(decay_row(decay) for decay in decays))
        figure, axes = drawing.new_figure(*grid_of(len(self.scenarios)), scale=0.8)
        for i, panel in enumerate(axes.flat):
            mine = decays[i * len(POLICIES) : (i + 1) * len(POLICIES)]
            if mine:
                draw_decay(panel, mine)
            panel.set_visible(bool(mine))
        figures.share_legend(figure, axes.flat[: len(self.scenarios)])
        figure.suptitle(f"{self.title} (mean; shaded: 5 to 95 % of realisations)")
        return Section(self.name, self.title, NOTE, table, figure)


TARGET = ConvergenceTarget()
