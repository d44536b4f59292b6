"""Where reproductions run: one folder that keeps every study, so that targets share them."""

import re
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from polyarm.environments.presets import make_scenario
from polyarm.experiments.comparison import make_study
from polyarm.experiments.progress import progress_bar
from polyarm.experiments.results import Results
from polyarm.experiments.runner import count_missing, run_study
from polyarm.experiments.store import Store, require_folder


@dataclass(frozen=True)
class Workplace:
    """A folder, an executor, and what all studies done there share."""

    folder: Path
    executor: Executor
    realizations: int | None = None
    seed: int = 0
    data: str | None = None
    networks: bool = False
    device: str | None = None
    progress: bool = False
    gp_realizations: int | None = None  # the Gaussian process costs more than all the others together

    def results(self, scenario: str, policies: Sequence[str], horizon: int, realizations: int) -> Results:
        """Results of every policy, run as far as the folder does not hold them yet."""
        count = realizations if self.realizations is None else self.realizations
        slow = [label for label in policies if label.startswith("multitask-gp")]
        quick = [label for label in policies if label not in slow]
        groups = ((quick, count), (slow, self.gp_realizations or count))
        found = [self._results(scenario, labels, horizon, number) for labels, number in groups if labels]
        table = pa.concat_tables([results.table for results in found])
        return Results(table, {**found[0].settings, "policies": list(policies)})

    def _results(self, scenario: str, policies: Sequence[str], horizon: int, count: int) -> Results:
        study = make_study(make_scenario(scenario, self.data), policies, count, horizon, self.seed, device=self.device)
        name = re.sub("[^a-z0-9.]+", "-", f"{study.scenario.name}-t{horizon}-seed{self.seed}")
        store = Store(require_folder(self.folder / "runs" / name), study.identity)
        with progress_bar(f"{scenario}, t = {horizon}", count_missing(study, store), self.progress) as advance:
            return run_study(study, store, self.executor, advance)
