"""The numbers behind the dashboard's pictures: what the model says of each arm in a context."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from polyarm.bandit.figures import LEAST_REST, MOST_NAMED
from polyarm.bandit.learnt import interval
from polyarm.bandit.lottery import rng_at
from polyarm.service.dashboard.charts import Bars, Curve
from polyarm.service.messages import Column, ExperimentSettings
from polyarm.service.model import Model
from polyarm.types import Array

N_DRAWS = 400
N_CONTEXTS = 20  # over which the probability of being best is averaged
N_POINTS = 161


class Beliefs(NamedTuple):
    """What the model believes of an arm in one context."""

    mean: float
    low: float
    high: float
    best: float


def middle(columns: Sequence[Column], spans: Mapping[str, tuple[float, float]]) -> dict[str, Any]:
    """A context to begin with: the middle of numbers, false, the first category."""
    start: dict[str, Any] = {}
    for column in columns:
        if column.name in spans:
            start[column.name] = sum(spans[column.name]) / 2
        else:
            start[column.name] = column.categories[0] if column.kind == "category" else False
    return start


def context_from(settings: ExperimentSettings, given: Mapping[str, str], start: Mapping[str, Any]) -> dict[str, Any]:
    """A context from the fields of a form; what cannot be read stays as it was."""
    context = dict(start)
    for column in settings.context:
        text = given.get(column.name)
        if text is None:
            continue
        if column.kind == "flag":
            context[column.name] = text == "true"
        elif column.kind == "category":
            context[column.name] = text if text in column.categories else context[column.name]
        else:
            try:
                context[column.name] = float(text)
            except ValueError:
                continue
    return context


def engine_of(model: Model) -> tuple[Any, Any] | None:
    """Engine and state of the model, where its policy has one."""
    policy: Any = model.learner.policy
    if not hasattr(policy, "engine"):
        return None
    return policy.engine, policy.engine_state(model.learner.state)


def beliefs(model: Model, context: Mapping[str, Any]) -> dict[str, Beliefs] | None:
    """Mean with its 95 % interval, and the probability of being best, of every arm."""
    found = engine_of(model)
    if found is None:
        return None
    engine, state = found
    rng = rng_at(model.settings.seed, "dashboard", "looking")
    means: Array = engine.draw_means(state, model.features(context), N_DRAWS, rng)
    low, high = interval(means)
    best = np.bincount(means.argmax(axis=1), minlength=len(model.arms)) / N_DRAWS
    return {
        arm: Beliefs(float(means[:, i].mean()), float(low[i]), float(high[i]), float(best[i]))
        for i, arm in enumerate(model.arms)
    }


def probability_best(model: Model, contexts: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Probability of being best, averaged over contexts."""
    found = [beliefs(model, context) for context in contexts[:N_CONTEXTS]]
    known = [here for here in found if here is not None]
    return {arm: sum(here[arm].best for here in known) / len(known) for arm in model.arms} if known else {}


def next_rewards(model: Model, context: Mapping[str, Any], active: Sequence[str]) -> dict[str, Any]:
    """Predictive distribution of the reward of every active arm, where the model has one."""
    found = engine_of(model)
    if found is None or not hasattr(found[0], "predictive"):
        return {}
    engine, state = found
    x = model.features(context)
    return {arm: engine.predictive(state, x, model.arms.index(arm)) for arm in active if arm in model.arms}


def is_barred(law: Any) -> bool:
    """Whether a distribution has a few single values, which are drawn as bars."""
    return 0 < len(getattr(law, "values", ())) <= MOST_NAMED


def single_values(model: Model, context: Mapping[str, Any], laws: Mapping[str, Any]) -> tuple[list[float], list[Bars]]:
    """The single values of all arms, and their probabilities with 95 % intervals."""
    barred = {arm: law for arm, law in laws.items() if is_barred(law)}
    values = sorted({value for law in barred.values() for value in law.values.tolist()})
    bars = []
    for arm, law in barred.items():
        shares = [law.probability(value) for value in values]
        bars.append(Bars(arm, shares, *intervals(model, context, arm, values, shares), model.arms.index(arm)))
    return values, bars


def intervals(
    model: Model, context: Mapping[str, Any], arm: str, values: Sequence[float], shares: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Ends of the 95 % intervals of the probabilities of single values; the shares themselves where none are drawn."""
    low, high = list(shares), list(shares)
    found = engine_of(model)
    if found is None or not hasattr(found[0], "draw_jumps"):
        return low, high
    engine, state = found
    rng = rng_at(model.settings.seed, "single values", "looking")
    drawn, draws = engine.draw_jumps(state, model.features(context), model.arms.index(arm), N_DRAWS, rng)
    for value, first, last in zip(drawn.tolist(), *interval(draws), strict=True):
        low[values.index(value)], high[values.index(value)] = float(first), float(last)
    return low, high


def densities(model: Model, laws: Mapping[str, Any]) -> list[Curve]:
    """Densities of rewards, where there are others than a few single values."""
    shown = {arm: law for arm, law in laws.items() if not is_barred(law) or law.continuous_weight > LEAST_REST}
    if not shown:
        return []
    ends = [np.asarray(law.quantile([0.005, 0.25, 0.75, 0.995])).ravel() for law in shown.values()]
    low = min(max(e[0], e[1] - 4 * (e[2] - e[1])) for e in ends)
    high = max(min(e[3], e[2] + 4 * (e[2] - e[1])) for e in ends)
    if not high > low:
        low, high = low - 0.5, high + 0.5
    grid = np.linspace(low, high, N_POINTS)
    return [
        Curve(arm, grid.tolist(), density_of(law, grid).tolist(), series=model.arms.index(arm))
        for arm, law in shown.items()
    ]


def density_of(law: Any, grid: Array) -> Array:
    """Density at the grid's points; the many single values of counts and marks are spread over what is nearest."""
    many = len(getattr(law, "values", ())) > MOST_NAMED
    return np.asarray(law.spread_pdf(grid) if many else law.pdf(grid))


def effects(model: Model, context: Mapping[str, Any], column: Column, limits: tuple[float, float]) -> list[Curve]:
    """How the expected reward of every arm moves with one number, the other columns held."""
    found = engine_of(model)
    if found is None or column.kind not in ("number", "cyclic"):
        return []
    engine, state = found
    grid = np.linspace(*limits, 33)
    means = np.array(
        [engine.expected_means(state, model.features({**context, column.name: float(value)})) for value in grid]
    )
    return [Curve(arm, grid.tolist(), means[:, i].tolist()) for i, arm in enumerate(model.arms)]


def span(column: Column, contexts: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Where a slider of a number begins and ends: at the least and the largest value of late."""
    if column.kind == "cyclic":
        return 0.0, float(column.period or 1.0)
    values = [float(here[column.name]) for here in contexts if here.get(column.name) is not None]
    low, high = (min(values), max(values)) if values else (-1.0, 1.0)
    return (low, high) if high > low else (low - 1.0, high + 1.0)
