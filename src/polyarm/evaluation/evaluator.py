"""One pass over a log: what would other policies have earned?"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyarm.errors import InvalidArgument
from polyarm.evaluation.bounds import Limits, difference_of, interval_of, standard_error
from polyarm.evaluation.diagnosis import LogDiagnosis, TargetDiagnosis, diagnose
from polyarm.evaluation.estimators import WITH_MODEL
from polyarm.evaluation.intervals import Interval
from polyarm.evaluation.ledger import Ledger
from polyarm.evaluation.log import Names
from polyarm.evaluation.passing import LOG, Pass
from polyarm.evaluation.propensities import fit_propensities
from polyarm.evaluation.result import Difference, Estimate, Evaluation
from polyarm.evaluation.reward_models import make_model
from polyarm.evaluation.settings import Settings
from polyarm.evaluation.survey import Survey, survey
from polyarm.evaluation.targets import arms_of_bandits, columns_of, loaded, make_target, named_targets

ESTIMATED = "estimated propensities"


def evaluate(
    log: Any,
    target: Any,
    estimators: Sequence[str] | str = ("snips", "dr"),
    interval: str = "bootstrap",
    level: float = 0.95,
    *,
    arm: str = "arm",
    reward: str = "reward",
    propensity: str | None = "propensity",
    probabilities: str | None = "probabilities",
    id: str | None = "id",
    time: str | None = "time",
    context: Sequence[str] | None = None,
    arms: Sequence[Any] | None = None,
    model: Any = "auto",
    reward_range: Sequence[float] | None = None,
    min_propensity: float | None = None,
    clip: float | None = None,
    switch: float | None = None,
    seed: int = 0,
) -> Evaluation:
    """What a target, or several, would have earned per decision had it decided instead of the log's own policy.

    log         a path (CSV, Parquet, a folder of Parquet, a saved bandit), an Arrow table or dataset, a pandas or
                Polars frame, columns by name, or a Bandit; read in batches, never whole
    target      "uniform", "arm:NAME", "column:NAME" (the target's arm, its probability of the played arm, or a list of
                all), a policy's name (trained on other rows of the log), "replay:POLICY" (learns as it goes), a Bandit
                or the file of one, a function of a context, `Vectorised` of many; or a list or dict of these
    estimators  replay, ips, clipped, snips, direct, dr, switch; quantile:P and shortfall:P of the reward
    interval    bootstrap, normal, empirical-bernstein or betting (valid at all times at once); the last two hold for
                rewards in `reward_range`
    arm, reward, propensity, probabilities, id, time, context
                names of the log's columns; without `context` all other columns are
    arms        all arms, where some were never played
    model       reward model of direct, dr and switch: "auto", "ridge", "robust", "none", or anything fitted on other
                data with a method predict(contexts) -> (n, n_arms)
    min_propensity   smallest propensity that the logger allows (default: the smallest seen)
    clip, switch     limits of the weights for `clipped` and `switch` (default: the square root of the number of rows)

    >>> log = {"arm": ["red", "blue"] * 50, "reward": [0.0, 1.0] * 50, "propensity": [0.5] * 100}
    >>> found = evaluate(log, "arm:blue", "snips")
    >>> found["arm:blue", "snips"].value
    1.0
    """
    settings = Settings.of(estimators, interval, level, clip, switch, reward_range, min_propensity, seed)
    names = Names(arm, reward, propensity, probabilities, id, time, None if context is None else tuple(context))
    asked = loaded(named_targets(target))
    try:
        looking, fitting, playing, drawing, resampling = np.random.default_rng(seed).spawn(5)
    except (TypeError, ValueError):
        raise InvalidArgument(f"seed must be a non-negative integer, got {seed!r}") from None
    seen = survey(log, names, arms, columns_of(asked), arms_of_bandits(asked), looking)
    if not len(seen.sample):
        raise InvalidArgument(f"log must have rows that can be used, got none: {first_reason(seen)}")
    known = bool(seen.log.names.propensity or seen.log.names.probabilities)
    guess = None if known else fit_propensities(seen)
    if guess is not None:
        smallest = float(guess.probabilities(seen.sample).min())
        seen = Survey(seen.log, seen.sample, seen.counts, smallest, seen.reward_range)
    needs_model = any(name in WITH_MODEL for name in settings.means)
    rewards = make_model(model, seen, fitting) if needs_model else None
    targets = [
        make_target(name, one, seen, stream)
        for (name, one), stream in zip(asked.items(), playing.spawn(len(asked)), strict=True)
    ]
    limits = limits_of(settings, seen)
    run = Pass(seen.log, targets, settings, limits, rewards, guess, drawing)
    ledger = Ledger()
    for rows in seen.log.rows(ledger):
        run.add(rows)
    if not run.moments.n:
        raise InvalidArgument("log must have rows that can be used, got none")
    return conclude(run, seen, ledger, settings, limits, known, resampling)


def first_reason(seen: Survey) -> str:
    """Why rows of the log cannot be used."""
    ledger = Ledger()
    for _ in seen.log.rows(ledger):
        pass
    return next(iter(ledger.lines()), "it is empty")


def limits_of(settings: Settings, seen: Survey) -> Limits:
    """What is known of rewards and weights before a row is used, from the caller or from the first look."""
    low, high = settings.reward_range or seen.reward_range
    if settings.reward_range and not (low <= seen.reward_range[0] and seen.reward_range[1] <= high):
        raise InvalidArgument(
            f"reward_range must be a range that holds all rewards, got {seen.reward_range} in the log"
        )
    if low == high:
        low, high = low - 0.5, high + 0.5
    smallest = settings.min_propensity or seen.smallest_propensity
    if smallest > seen.smallest_propensity * (1 + 1e-9):
        raise InvalidArgument(
            f"min_propensity must be at most the smallest in the log, {seen.smallest_propensity:g}, got {smallest}"
        )
    root = math.sqrt(seen.n_rows)
    return Limits(Interval(low, high), 1 / smallest, root if settings.clip is None else settings.clip)


def conclude(
    run: Pass, seen: Survey, ledger: Ledger, settings: Settings, limits: Limits, known: bool, rng: np.random.Generator
) -> Evaluation:
    """Estimates, differences and diagnosis from what the pass has kept."""
    label = "" if known else ESTIMATED
    method = (settings.interval, settings.level, rng)
    estimates, differences = [], []
    for name in (LOG, *(target.name for target in run.targets)):
        for quantity in run.quantities(name):
            found, how = interval_of(quantity, run.moments, run.blocks, run.sequence(name, quantity), limits, *method)
            se = standard_error(run.moments, quantity.functional.gradient(run.moments.mean))
            value = quantity.value(run.moments.mean)
            rests = label if name != LOG else ""
            estimates.append(Estimate(name, quantity.estimator, value, se, *found, how, rests))
        estimates += run.tail_estimates(name, limits, label)
    for first, second in run.pairs():
        for one, other in run.matched(first, second):
            sequence = run.difference_sequence(first, second, one)
            args = (one, other, run.moments, run.blocks, sequence, limits)
            found, how = difference_of(*args, *method)
            gradient = one.functional.gradient(run.moments.mean) - other.functional.gradient(run.moments.mean)
            value = one.value(run.moments.mean) - other.value(run.moments.mean)
            se = standard_error(run.moments, gradient)
            differences.append(Difference(first, second, one.estimator, value, se, *found, how, label))
    log = describe(run, seen, ledger, known)
    diagnoses = [diagnose_one(run, target.name, log) for target in run.targets]
    notes = [*missing_notes(seen), *run.notes(), *notes_of(settings, limits)]
    return Evaluation(
        tuple(estimates),
        tuple(differences),
        tuple(diagnoses),
        log,
        settings.level,
        run.model_name,
        tuple(notes),
        {target.name: run.weights[target.name] for target in run.targets},
    )


def notes_of(settings: Settings, limits: Limits) -> list[str]:
    """What the asked-for intervals rest on."""
    out = []
    if settings.interval in ("empirical-bernstein", "betting") and settings.reward_range is None:
        low, high = limits.rewards
        out.append(
            f"The intervals take the rewards' range from the log ({low:g} to {high:g}); they hold for sure only with a "
            "range known beforehand: reward_range."
        )
    if "direct" in settings.means:
        out.append("The interval of the direct estimate leaves out the error of the reward model.")
    if settings.interval == "betting" and {"clipped", "switch", "direct"} & set(settings.means):
        out.append("There is no confidence sequence for clipped, switch and direct estimates, which are biased.")
    return out


def missing_notes(seen: Survey) -> list[str]:
    """Context columns that have gaps; their rows are used."""
    return [
        f"Context {column.name} is missing or no sane number in some rows, which are used and marked for the models."
        for column in seen.log.encoder.columns
        if column.n_missing
    ]


def describe(run: Pass, seen: Survey, ledger: Ledger, known: bool) -> LogDiagnosis:
    """What the log is like."""
    log = seen.log
    return LogDiagnosis(
        n_rows=ledger.n_rows,
        n_used=run.moments.n,
        set_aside=dict(ledger.reasons),
        set_aside_lines=tuple(ledger.lines()),
        arms=log.arms,
        plays={arm: int(count) for arm, count in zip(log.arms, run.test.plays, strict=True)},
        context=tuple(log.encoder.names),
        left_out=log.encoder.left_out,
        propensities="logged" if known else "estimated",
        smallest_propensity=seen.smallest_propensity,
        test=run.test.verdict(log.arms),
        n_duplicates=run.duplicates.count if log.names.id else None,
        duplicates_exact=run.duplicates.is_exact,
        duplicate_examples=tuple(run.duplicates.examples),
        reward_range=seen.reward_range,
    )


def diagnose_one(run: Pass, name: str, log: LogDiagnosis) -> TargetDiagnosis:
    """How much the log says about one target."""
    weights = run.weights[name]
    known = weights.n - weights.unknown
    return diagnose(name, weights, log, run.never_played(name) if known else None)
