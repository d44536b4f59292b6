"""All that is kept of a log while its rows go by."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from polyarm.evaluation.betting import ConfidenceSequence
from polyarm.evaluation.bounds import Limits, Quantity
from polyarm.evaluation.distribution import WeightedRewards
from polyarm.evaluation.duplicates import Duplicates
from polyarm.evaluation.estimators import RATIOS, WITH_MODEL, Functional, functional, terms
from polyarm.evaluation.intervals import Interval
from polyarm.evaluation.log import Log, Rows
from polyarm.evaluation.moments import Blocks, Moments
from polyarm.evaluation.outlook import Outlook, Target
from polyarm.evaluation.propensities import PropensityModel
from polyarm.evaluation.propensity_test import PropensityTest
from polyarm.evaluation.result import Estimate
from polyarm.evaluation.reward_models import CrossFitted, Given, Scales
from polyarm.evaluation.settings import Settings
from polyarm.evaluation.weights import Weights
from polyarm.types import Array, Rng

LOG = "the log"
TESTED_COLUMNS = 20  # context entries that the test of the propensities looks at


class Pass:
    """Accumulators of every target; all of constant size."""

    def __init__(
        self,
        log: Log,
        targets: Sequence[Target],
        settings: Settings,
        limits: Limits,
        rewards: CrossFitted | Given | None,
        guess: PropensityModel | None,
        rng: Rng,
    ) -> None:
        self.log, self.targets, self.settings, self.limits = log, list(targets), settings, limits
        self.rewards, self.guess, self.rng = rewards, guess, rng
        self.columns: list[str] = ["reward"]
        self.weights = {target.name: Weights() for target in targets}
        self.outside = np.zeros((len(targets), len(log.arms)))  # probability given to each arm
        self.blind = np.zeros(len(targets))  # probability given to arms that the log's own vector rules out
        self.tails: dict[str, WeightedRewards] = {}
        self.without_model: set[str] = set()
        self.sequences: dict[tuple[str, ...], ConfidenceSequence] = {}
        self.duplicates = Duplicates()
        width = min(log.encoder.width, TESTED_COLUMNS)
        self.test = PropensityTest(len(log.arms), ("all rows", "the time", *entry_names(log)[:width]), log.n_rows)
        self.scales: Scales | None = None
        self.moments = Moments(0)
        self.blocks: Blocks | None = None

    @property
    def model_name(self) -> str:
        """Which reward model was used."""
        return "none" if self.rewards is None else self.rewards.name

    def add(self, rows: Rows) -> None:
        """Take in a batch of rows."""
        if not len(rows):
            return
        if self.guess is not None:
            p = self.guess.probabilities(rows)
            rows = replace(rows, propensities=p[np.arange(len(rows)), rows.arms])
        self._check_log(rows)
        expected = None if self.rewards is None else self.rewards.expected(rows)
        if expected is not None and self.settings.interval in ("empirical-bernstein", "betting"):
            expected = np.clip(expected, *self.limits.rewards)
        found = {"reward": rows.rewards}
        lots = self.rng.random(len(rows))
        for i, target in enumerate(self.targets):
            for name, column in self._target(i, target, rows, expected, lots).items():
                found[f"{target.name}\n{name}"] = column
        self._accumulate(found)

    def _check_log(self, rows: Rows) -> None:
        if self.scales is None:
            self.scales = Scales.of(rows.contexts[:, :TESTED_COLUMNS])
        time = 2 * rows.numbers / max(self.log.n_rows - 1, 1) - 1
        standard = self.scales.standard(rows.contexts[:, :TESTED_COLUMNS])
        self.test.add(rows, np.column_stack([np.ones(len(rows)), time, standard]))
        if self.log.names.id:
            self.duplicates.add(rows.batch.column(self.log.names.id))

    def _target(self, i: int, target: Target, rows: Rows, expected: Array | None, lots: Array) -> dict[str, Array]:
        outlook = target.outlook(rows)
        weights = outlook.played / rows.propensities
        self.weights[target.name].add(weights, rows.rewards, rows.numbers)
        self._support(i, target, rows, outlook)
        kept = lots < weights / self.limits.largest_weight if outlook.kept is None else outlook.kept
        own = played = None
        if expected is not None and outlook.whole is not None:
            own = np.einsum("ij,ij->i", outlook.whole, expected)
            played = expected[np.arange(len(rows)), rows.arms]
        switch = self.settings.switch
        limit = np.sqrt(self.log.n_rows) if switch is None else switch
        if self.settings.tails:
            self.tails.setdefault(target.name, WeightedRewards()).add(weights, rows.rewards)
            if i == 0:
                self.tails.setdefault(LOG, WeightedRewards()).add(np.ones(len(rows)), rows.rewards)
        return terms(weights, rows.rewards, own, played, kept.astype(np.float64), self.limits.clip, float(limit))

    def _support(self, i: int, target: Target, rows: Rows, outlook: Outlook) -> None:
        if outlook.whole is None:
            self.weights[target.name].unknown += len(rows)
            return
        self.outside[i] += outlook.whole.sum(axis=0)
        if rows.probabilities is not None:
            self.blind[i] += float(outlook.whole[rows.probabilities == 0].sum())

    def never_played(self, name: str) -> float:
        """Share of a target's choices on arms that the log never has, or by its own account cannot have."""
        i = [target.name for target in self.targets].index(name)
        n = self.weights[name].n - self.weights[name].unknown
        absent = float(self.outside[i][self.test.plays == 0].sum())
        return max(absent, float(self.blind[i])) / n if n else 0.0

    def _accumulate(self, found: dict[str, Array]) -> None:
        if self.moments.width == 0:
            self.columns = list(found)
            self.moments = Moments(len(found))
            self.blocks = Blocks(len(found)) if self.settings.interval == "bootstrap" else None
        table = np.column_stack([found[name] for name in self.columns])
        self.moments.add(table)
        if self.blocks is not None:
            self.blocks.add(table)
        if self.settings.interval == "betting":
            self._bet(found)

    def _bet(self, found: dict[str, Array]) -> None:
        rewards = found["reward"]
        self._sequence((LOG, "reward")).add_values(rewards)
        for target in self.targets:
            weights = found[f"{target.name}\nweight"]
            if {"ips", "snips"} & set(self.settings.means):
                self._sequence((target.name, "ips")).add_weighted(weights, rewards)
            if "replay" in self.settings.means:
                self._sequence((target.name, "replay")).add_values(rewards[found[f"{target.name}\nkept"] > 0])
            if "dr" in self.settings.means and f"{target.name}\ndr" in found:
                slack = self.limits.largest_weight - 1
                self._sequence((target.name, "dr"), slack).add_values(found[f"{target.name}\ndr"])
        for first, second in self.pairs():
            self._bet_on_difference(first, second, found)

    def _bet_on_difference(self, first: str, second: str, found: dict[str, Array]) -> None:
        low, width = self.limits.rewards.low, self.limits.width
        largest = self.limits.largest_weight
        if {"ips", "snips"} & set(self.settings.means):
            weights = found[f"{first}\nweight"] - (1.0 if second == LOG else found[f"{second}\nweight"])
            share = (found["reward"] - low) / width
            slack = 0.0 if second == LOG else 0.5 * (largest - 1)
            self._difference((first, second, "ips"), slack).add_pair(weights * share, -weights * (1 - share))
        if "dr" in self.settings.means and f"{first}\ndr" in found and (second == LOG or f"{second}\ndr" in found):
            other = found["reward"] if second == LOG else found[f"{second}\ndr"]
            gain = (found[f"{first}\ndr"] - other) / width
            slack = (0.5 if second == LOG else 1.0) * (largest - 1)
            self._difference((first, second, "dr"), slack).add_pair(gain, gain)

    def _sequence(self, key: tuple[str, ...], slack: float = 0.0) -> ConfidenceSequence:
        if key not in self.sequences:
            self.sequences[key] = ConfidenceSequence(self.limits.rewards, self.settings.level, slack)
        return self.sequences[key]

    def _difference(self, key: tuple[str, ...], slack: float) -> ConfidenceSequence:
        if key not in self.sequences:
            limits = Interval(-self.limits.width, self.limits.width)
            self.sequences[key] = ConfidenceSequence(limits, self.settings.level, slack)
        return self.sequences[key]

    def sequence(self, name: str, quantity: Quantity) -> ConfidenceSequence | None:
        """Confidence sequence of one estimator."""
        column = {"snips": "ips"}.get(quantity.estimator, quantity.estimator)
        return self.sequences.get((name, column))

    def difference_sequence(self, first: str, second: str, quantity: Quantity) -> ConfidenceSequence | None:
        """Confidence sequence of a difference."""
        column = {"snips": "ips"}.get(quantity.estimator, quantity.estimator)
        return self.sequences.get((first, second, column))

    def quantities(self, name: str) -> list[Quantity]:
        """The estimators that can be had for a target; for the log, its own mean."""
        if name == LOG:
            return [Quantity("reward", Functional(0, None))]
        return [
            Quantity(estimator, functional(estimator, self.columns, f"{name}\n"))
            for estimator in self.settings.means
            if f"{name}\n{RATIOS.get(estimator, (estimator,))[0]}" in self.columns
        ]

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Every target beside the log, then beside the first target."""
        for target in self.targets:
            yield target.name, LOG
        for target in self.targets[1:]:
            yield target.name, self.targets[0].name

    def matched(self, first: str, second: str) -> Iterator[tuple[Quantity, Quantity]]:
        """Estimators of two targets that go together; the log has one for all."""
        others = {quantity.estimator: quantity for quantity in self.quantities(second)}
        for quantity in self.quantities(first):
            other = others.get("reward" if second == LOG else quantity.estimator)
            if other is not None:
                yield quantity, other

    def tail_estimates(self, name: str, limits: Limits, label: str) -> list[Estimate]:
        """Quantiles and shortfalls of a target's reward."""
        out: list[Estimate] = []
        for tail in self.settings.tails:
            rewards = self.tails[name]
            largest = 1.0 if name == LOG else limits.largest_weight
            level, how = self.settings.level, "normal"
            if tail.kind == "quantile":
                value = rewards.quantile(tail.share)
                bounds = rewards.quantile_normal(tail.share, level)
                if self.settings.interval == "empirical-bernstein":
                    bounds, how = rewards.quantile_bernstein(tail.share, largest, level), self.settings.interval
            else:
                value = rewards.shortfall(tail.share)
                bounds = rewards.shortfall_normal(tail.share, level)
            rests = "" if name == LOG else label
            out.append(Estimate(name, tail.name, value, float("nan"), bounds.low, bounds.high, how, rests))
        return out

    def notes(self) -> list[str]:
        """Estimators that could not be had, and how far learning targets came."""
        out = []
        for target in self.targets:
            missing = [e for e in self.settings.means if e in WITH_MODEL and f"{target.name}\n{e}" not in self.columns]
            if missing:
                why = (
                    "no reward model"
                    if self.rewards is None
                    else "all the target's probabilities, not the played arm's"
                )
                need = "a reward model" if self.rewards is None else why
                out.append(f"{target.name}: {', '.join(missing)} left out; they need {need}.")
            accepted: Any = getattr(target, "n_accepted", None)
            if accepted is not None:
                out.append(
                    f"{target.name}: it learnt from {accepted} accepted rows; values are those of its first steps."
                )
        return out


def entry_names(log: Log) -> list[str]:
    """Name of every context entry."""
    return [column.name for column in log.encoder.columns for _ in range(column.width)]
