"""Any policies on any scenario."""

import json
import math
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from polyarm.environments.judged import Judged
from polyarm.environments.presets import Scenario, make_scenario
from polyarm.errors import require_count, require_name
from polyarm.experiments.reporting.summary import summary, without_nan
from polyarm.experiments.running.executors import open_executor
from polyarm.experiments.running.policy_specs import Factory, PolicyLike, as_policies, default_policies
from polyarm.experiments.running.progress import progress_bar
from polyarm.experiments.running.results import Results
from polyarm.experiments.running.runner import LARGEST, Study, count_missing, open_store, run_study
from polyarm.models.objectives import MEAN, ObjectiveLike, as_objective
from polyarm.tables import Table
from polyarm.types import Environment

MANY = 1_000_000  # realisations of a study: more would take days and not fit into memory


@dataclass(frozen=True, eq=False)
class Comparison:
    """Results of a comparison, with their verdict."""

    study: Study
    results: Results
    reference: str

    def summary(self) -> dict[str, Any]:
        """The verdict as plain values, as `polyarm compare --json` writes it."""
        found: dict[str, Any] = without_nan(self._verdict())
        return found

    def _verdict(self) -> dict[str, Any]:
        found, environment = summary(self.results, self.reference), self.study.scenario.environment
        if isinstance(environment, Judged):
            found["objective"] = str(environment.objective)
            for policy in found["policies"].values():
                policy["observed_regret"] = {"mean": math.nan, "std": math.nan}  # a reward is no value of an objective
        return found

    def to_json(self) -> str:
        """The verdict as JSON."""
        return json.dumps(self.summary(), indent=2) + "\n"

    def tables(self) -> list[Table]:
        """The verdict as tables: regret, and paired differences where there are two policies or more."""
        verdict = self._verdict()
        return [regret_table(verdict)] + ([difference_table(verdict)] if verdict["differences"] else [])


def compare(
    scenario: str | Scenario | Environment,
    policies: Iterable[PolicyLike] | Mapping[str, Factory] = (),
    realizations: int = 100,
    horizon: int | None = None,
    seed: int = 0,
    *,
    workers: int = 1,
    cluster: str | None = None,
    executor: Executor | None = None,
    out: str | Path | None = None,
    reference: str | None = None,
    only: int | None = None,
    device: str | None = None,
    progress: bool = False,
    objective: ObjectiveLike = "mean",
) -> Comparison:
    """Play every policy in the same worlds of the scenario and judge them by regret.

    With more than one worker, call it under `if __name__ == "__main__":`: each worker imports your script.
    `only` runs the one realisation of that number; `device` ("cpu" or "gpu") is for networks.  With another `objective`
    than the mean regret is measured in it, and policies that can play for it do.

    >>> found = compare("mixture-a", ["uniform", "linear"], realizations=2, horizon=20, seed=0)
    >>> sorted(found.results.labels)
    ['linear', 'uniform']
    """
    study = make_study(judged_by(scenario, objective), policies, realizations, horizon, seed, only, device)
    labels = [spec.label for spec in study.specs]
    reference = require_name(reference or labels[0], labels, "reference")
    with tempfile.TemporaryDirectory() if out is None else nullcontext(str(out)) as folder:
        store = open_store(study, folder)
        missing = count_missing(study, store)
        opened = nullcontext(executor) if executor else open_executor(min(workers, max(missing, 1)), cluster)
        with opened as workplace, progress_bar(study.scenario.name, missing, progress) as advance:
            return Comparison(study, run_study(study, store, workplace, advance), reference)


def make_study(
    scenario: str | Scenario | Environment,
    policies: Iterable[PolicyLike] | Mapping[str, Factory] = (),
    realizations: int = 100,
    horizon: int | None = None,
    seed: int = 0,
    only: int | None = None,
    device: str | None = None,
) -> Study:
    """The study these settings mean; every policy is built once, so that mistakes show at once."""
    setting = as_scenario(scenario)
    require_count(realizations, "realizations", 1, MANY)
    if only is not None:
        require_count(only, "only", 0, LARGEST)
    policies = policies if isinstance(policies, Mapping) else list(policies)
    specs = as_policies(policies) if policies else default_policies(setting)
    for spec in specs:
        if spec.name != "optimal":
            spec.build(setting)
    numbers = (only,) if only is not None else tuple(range(realizations))
    return Study(setting, specs, numbers, setting.horizon if horizon is None else horizon, seed, device)


def as_scenario(scenario: str | Scenario | Environment) -> Scenario:
    """A scenario from its name or from the user's own environment."""
    if isinstance(scenario, Scenario):
        return scenario
    if isinstance(scenario, str):
        return make_scenario(scenario)
    return Scenario(type(scenario).__name__, scenario, n_components=getattr(scenario, "n_components", None))


def judged_by(scenario: str | Scenario | Environment, objective: ObjectiveLike) -> Scenario:
    """The scenario with its arms judged by an objective."""
    setting, judge = as_scenario(scenario), as_objective(objective)
    return setting if judge == MEAN else replace(setting, environment=Judged(setting.environment, judge))


REGRET_HEADS = ("policy", "regret", "± se", "std", "median", "95 %", "best arm", "locked in", "s / run")
DIFFERENCE_HEADS = ("policy", "regret minus", "mean", "95 % CI low", "high", "p (Holm)")


def regret_table(verdict: dict[str, Any]) -> Table:
    """One row per policy: expected regret at the horizon, play and time."""
    measured = f"regret in {verdict['objective']}" if "objective" in verdict else "expected regret"
    title = (
        f"{verdict['scenario']}: cumulative {measured} at t = {verdict['horizon']}, "
        f"R = {verdict['realizations']}, seed {verdict['seed']}"
    )
    return Table(title, REGRET_HEADS, tuple(_regret_row(*item) for item in verdict["policies"].items()))


def _regret_row(label: str, found: dict[str, Any]) -> tuple[str | float, ...]:
    spread = (found["regret"][key] for key in ("mean", "se", "std", "median", "p95"))
    shares = (f"{found[key]:.1%}" for key in ("optimal_arm_share", "lock_in_share"))
    return (label, *spread, *shares, found["seconds_per_realization"])


def difference_table(verdict: dict[str, Any]) -> Table:
    """One row per policy: its paired difference in regret to the reference."""
    rows = tuple(
        (label, found["versus"], found["mean"], *found["ci95"], float(f"{found['p_holm']:.2g}"))
        for label, found in verdict["differences"].items()
    )
    return Table("paired differences (t intervals; p-values corrected for their number)", DIFFERENCE_HEADS, rows)
