"""Where reproductions run: one folder that keeps every study, so that targets share them."""

import re
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from polyarm.environments.presets import make_scenario
from polyarm.experiments.comparison import make_study
from polyarm.experiments.running.progress import progress_bar
from polyarm.experiments.running.results import Results
from polyarm.experiments.running.runner import Study, count_missing, open_store, run_study
from polyarm.experiments.running.store import Store


@dataclass(frozen=True)
class StudyFolder:
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

    def results(
        self, scenario: str, policies: Sequence[str], horizon: int, realizations: int, held: Sequence[str] = ()
    ) -> Results:
        """Results of every policy, run as far as the folder does not hold them yet; of `held` ones, what it holds.

        Held ones are shown with as many realisations as the target asks for on its own, however few the others run.
        """
        count = realizations if self.realizations is None else self.realizations
        slow = [label for label in policies if label.startswith("multitask-gp")]
        quick = [label for label in policies if label not in slow]
        groups = ((quick, count), (slow, self.gp_realizations or count))
        found = [self._results(scenario, labels, horizon, number) for labels, number in groups if labels]
        kept = self._held(scenario, held, horizon, max(count, realizations))
        there = set(kept["policy"].unique().to_pylist())
        labels = [*policies, *(label for label in held if label in there)]
        table = pa.concat_tables([*(results.table for results in found), kept])
        return Results(table, {**found[0].settings, "policies": labels})

    def _held(self, scenario: str, policies: Sequence[str], horizon: int, count: int) -> pa.Table:
        _, store = self._study(scenario, policies or ["optimal"], horizon, count)
        rows = store.load()
        wanted = pc.and_(pc.is_in(rows["policy"], pa.array(policies, pa.string())), pc.less(rows["realization"], count))
        return rows.filter(wanted)

    def _study(self, scenario: str, policies: Sequence[str], horizon: int, count: int) -> tuple[Study, Store]:
        study = make_study(make_scenario(scenario, self.data), policies, count, horizon, self.seed, device=self.device)
        name = re.sub("[^a-z0-9.]+", "-", f"{study.scenario.name}-t{horizon}-seed{self.seed}")
        return study, open_store(study, self.folder / "runs" / name)

    def _results(self, scenario: str, policies: Sequence[str], horizon: int, count: int) -> Results:
        study, store = self._study(scenario, policies, horizon, count)
        with progress_bar(f"{scenario}, t = {horizon}", count_missing(study, store), self.progress) as advance:
            return run_study(study, store, self.executor, advance)
