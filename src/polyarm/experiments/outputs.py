"""The files a comparison leaves in its folder."""

from pathlib import Path

from polyarm import drawing
from polyarm.experiments.comparison import Comparison
from polyarm.experiments.reporting import figures
from polyarm.experiments.reporting.curves import optimal_curves, regret_curves
from polyarm.experiments.reporting.inspection import inspect_run
from polyarm.experiments.running.policy_specs import PolicySpec
from polyarm.tables import write_files

LOOKED_INTO = ("nonparametric", "nonparametric-paper", "pitman-yor", "oracle-mixture")


def write_outputs(comparison: Comparison, folder: Path) -> list[Path]:
    """Write the table and the figures; give the figures' PNG files."""
    for table, name in zip(comparison.tables(), ("table", "differences"), strict=False):
        write_files(table, folder / name)
    drawn = [_regret(comparison, folder)]
    spec = next((c for c in comparison.study.specs if c.name in LOOKED_INTO and c.factory is None), None)
    return drawn + (_learnt(comparison, spec, folder) if spec else [])


def _regret(comparison: Comparison, folder: Path) -> Path:
    results = comparison.results
    title = f"{comparison.study.scenario.name}, R = {len(results.realizations)}"
    figure = figures.regret_figure(regret_curves(results), optimal_curves(results), title)
    drawing.save(figure, folder / "regret")
    return folder / "regret.png"


def _learnt(comparison: Comparison, spec: PolicySpec, folder: Path) -> list[Path]:
    study = comparison.study
    number = study.realizations[0]
    learnt = inspect_run(study.scenario, spec, study.horizon, study.seed, number)
    title = f"{study.scenario.name}: {spec.label} after {study.horizon} steps of realisation {number}"
    drawing.save(figures.density_figure(learnt, title), folder / "densities")
    drawing.save(figures.learning_figure(learnt, title), folder / "learning")
    return [folder / "densities.png", folder / "learning.png"]
