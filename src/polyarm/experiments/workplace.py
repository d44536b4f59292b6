"""Where reproductions run: one folder that keeps every study, so that targets share them."""

import re
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from polyarm.environments.presets import make_scenario
from polyarm.experiments.comparison import make_study
from polyarm.experiments.contenders import PolicyLike
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

    def results(self, scenario: str, policies: list[PolicyLike], horizon: int, realizations: int) -> Results:
        """Results of a study, run as far as the folder does not hold it yet."""
        count = realizations if self.realizations is None else self.realizations
        study = make_study(make_scenario(scenario, self.data), policies, count, horizon, self.seed, device=self.device)
        name = re.sub("[^a-z0-9.]+", "-", f"{study.scenario.name}-t{horizon}-seed{self.seed}")
        store = Store(require_folder(self.folder / "runs" / name), study.identity)
        with progress_bar(f"{scenario}, t = {horizon}", count_missing(study, store), self.progress) as advance:
            return run_study(study, store, self.executor, advance)
