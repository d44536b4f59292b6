"""Tables, curves, pictures of what was learnt, and the targets of the paper, through the numbers they show."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest

from polyarm import drawing
from polyarm.environments import make_scenario
from polyarm.errors import InvalidArgument, UnknownName
from polyarm.experiments.comparison import Comparison, compare
from polyarm.experiments.paper import growth
from polyarm.experiments.paper.baselines import baseline_panel
from polyarm.experiments.paper.convergence import ConvergenceTarget, probe_contexts
from polyarm.experiments.paper.linear_curves import curve_panel, curve_rows
from polyarm.experiments.paper.panels import Entry, Outcome, Panel, regret_row, regret_table
from polyarm.experiments.paper.published import CURVE_STEPS, LINEAR_CURVES, ORACLE, SCENARIOS, TABLES
from polyarm.experiments.paper.reproduction import Settings, parse_targets, reproduce
from polyarm.experiments.paper.run_times import published_seconds
from polyarm.experiments.paper.studies import MIXTURE_A
from polyarm.experiments.paper.study_folder import StudyFolder
from polyarm.experiments.paper.targets import NAMES, TARGETS
from polyarm.experiments.reporting.curves import optimal_curves, regret_curves
from polyarm.experiments.reporting.inspection import inspect_run
from polyarm.experiments.running.executors import Inline
from polyarm.experiments.running.policy_specs import NETWORKS, PolicySpec
from polyarm.tables import Table, to_csv, to_html, to_latex, to_markdown

TABLE = Table("A & B", ("policy", "mean", "share"), (("a_b|c", 1234.567, "5.0%"), ("d<e", None, "-")))


@pytest.fixture(scope="module")
def found() -> Comparison:
    return compare("mixture-b", ["uniform", "linear", "optimal"], 6, 50, 1)


def test_tables_in_every_format() -> None:
    assert list(csv.reader(io.StringIO(to_csv(TABLE))))[1] == ["a_b|c", "1234.567", "5.0%"]
    assert to_markdown(TABLE).splitlines()[1:] == [
        "| --- | --: | --: |",
        "| a_b\\|c | 1234.6 | 5.0% |",
        "| d<e | - | - |",
    ]
    latex = to_latex(TABLE)
    assert "\\caption{A \\& B}" in latex
    assert "a\\_b|c & 1234.6 & 5.0\\% \\\\" in latex
    assert "<td>d&lt;e</td><td class=n>-</td>" in to_html(TABLE)


def test_regret_curves_are_means_of_the_rows(found: Comparison) -> None:
    curves = {curve.label: curve for curve in regret_curves(found.results, band="std")}
    values = found.results.curves("uniform")
    assert curves["uniform"].mean == pytest.approx(values.mean(axis=0))
    assert curves["uniform"].high - curves["uniform"].mean == pytest.approx(values.std(axis=0, ddof=1))
    assert (curves["optimal"].mean == 0).all()


def test_optimal_curves_are_shares(found: Comparison) -> None:
    curves = {curve.label: curve for curve in optimal_curves(found.results)}
    assert (curves["optimal"].mean == 1).all()
    widths = np.diff(curves["uniform"].steps, prepend=0)
    total = (curves["uniform"].mean * widths).sum()
    assert total == pytest.approx(found.results.final("uniform", "optimal_plays").mean())


def test_lock_in_is_about_the_last_tenth(found: Comparison) -> None:
    assert found.results.locked_in("optimal").tolist() == [0.0] * 6
    plays = found.results.curves("uniform", "optimal_plays")
    last = plays[:, -1] - plays[:, found.results.steps == 45][:, 0]
    assert (found.results.locked_in("uniform") == (last / 5 < 0.5)).all()


def test_looking_repeats_the_run_and_changes_nothing() -> None:
    scenario, spec = make_scenario("mixture-a"), PolicySpec("nonparametric")
    learnt = inspect_run(scenario, spec, 120, seed=2, realization=3)
    alone = compare("mixture-a", [spec], 1, 120, 2, only=3).results
    assert learnt.steps.tolist() == alone.steps.tolist()
    assert learnt.shares == pytest.approx(alone.curves("nonparametric", "plays")[0] / alone.steps[:, None])
    assert learnt.best.sum(axis=1) == pytest.approx(1)
    assert learnt.n_components is not None
    assert learnt.n_components.shape == (len(learnt.steps), 2)


def test_learnt_density_is_a_density_near_the_truth() -> None:
    learnt = inspect_run(make_scenario("linear-gaussian/a2-1"), PolicySpec("nonparametric"), 400)
    best = learnt.densities[1]
    assert best.truth is not None
    assert np.trapezoid(best.learnt, best.grid) == pytest.approx(1, abs=0.1)
    assert np.abs(best.learnt - best.truth).max() < 0.1
    assert (best.low <= best.high).all()
    assert ((best.low <= best.truth) & (best.truth <= best.high)).mean() > 0.5


def test_rewards_are_moved_where_nothing_is_near() -> None:
    learnt = inspect_run(make_scenario("linear"), PolicySpec("linear"), 300)
    for density in learnt.densities:
        assert density.rewards_are == "rewards, moved to this context"
        assert len(density.rewards) == density.n_plays
        assert np.abs(density.rewards - density.grid[density.learnt.argmax()])[20:].mean() < 0.2


def test_looking_through_initial_pulls() -> None:
    learnt = inspect_run(make_scenario("mixture-a"), PolicySpec("linear-showdown"), 30)
    assert len(learnt.densities) == 2
    with pytest.raises(InvalidArgument, match="policy must be one with an engine"):
        inspect_run(make_scenario("mixture-a"), PolicySpec("uniform"), 5)


def test_published_numbers_are_complete() -> None:
    assert TABLES["mixture-a"]["nonparametric-paper"] == (27.467, 70.723, 500)
    assert TABLES["oncology"]["bnn-alpha"].mean == 1917.583
    assert "linear-showdown" not in TABLES["linear"]
    assert [len(TABLES[name]) for name in SCENARIOS] == [9, 9, 10, 10, 10, 10, 10]
    assert len(ORACLE) == 18
    assert len(set(NAMES)) == len(TARGETS) == 18


def test_z_scores_by_hand() -> None:
    entry = MIXTURE_A.panels[0].entries[0]
    results = compare("mixture-a", ["nonparametric-paper:gibbs_max=1"], 4, 30).results
    outcome = Outcome(MIXTURE_A.panels[0], results)
    assert regret_row(outcome, entry)[-1] == "not run"
    row = regret_row(outcome, entry._replace(policy="nonparametric-paper:gibbs_max=1"))
    values = results.final("nonparametric-paper:gibbs_max=1")
    se = np.hypot(values.std(ddof=1) / 2, 70.723 / 500**0.5)
    assert row[-2] == pytest.approx((values.mean() - 27.467) / se)


def test_figures_draw_every_policy_once() -> None:
    results = compare("mixture-a", ["uniform", "linear"], 2, 20).results
    entries = (Entry("linear", "ours"), Entry("uniform", "a row of the table only", None, drawn=False))
    outcome = Outcome(Panel("mixture-a", 20, entries), results)
    assert [curve.label for curve in outcome.named(regret_curves(results))] == ["ours"]
    assert [row[1] for row in regret_table("", [outcome]).rows] == ["ours", "a row of the table only"]
    for scenario in SCENARIOS:
        drawn = [entry.name for entry in baseline_panel(scenario).entries if entry.drawn]
        assert len(drawn) == len(set(drawn)) == 13


def test_published_curves_by_hand() -> None:
    policy = "nonparametric-paper:gibbs_max=1"
    results = compare("linear", [policy], 3, 120).results
    outcome = Outcome(Panel("linear", 120, (Entry(policy, "ours"),)), results)
    rows = curve_rows(outcome)
    assert [row[:3] for row in rows] == [("ours", 3, step) for step in CURVE_STEPS]
    before, after = (int(np.flatnonzero(side)[i]) for side, i in ((results.steps <= 50, -1), (results.steps >= 50, 0)))
    regret = results.curves(policy)
    weight = (50 - results.steps[before]) / max(results.steps[after] - results.steps[before], 1)
    at_50 = (1 - weight) * regret[:, before] + weight * regret[:, after]
    assert rows[0][3] == pytest.approx(at_50.mean())
    assert rows[0][4] == pytest.approx(at_50.std(ddof=1) / 3**0.5)
    assert rows[0][5] == LINEAR_CURVES["nonparametric-paper"][0] == 63.4
    observed = results.curves(policy, "observed_regret")
    noise = ((1 - weight) * observed[:, before] + weight * observed[:, after]).std(ddof=1) / 500**0.5
    assert rows[0][6] == pytest.approx((at_50.mean() - 63.4) / np.hypot(at_50.std(ddof=1) / 3**0.5, noise))
    assert {entry.name for entry in curve_panel().entries} == set(LINEAR_CURVES)


def test_network_rows_wait_for_the_networks() -> None:
    entries = MIXTURE_A.panels[0].entries
    assert {entry.policy for entry in entries if entry.is_network} > set(NETWORKS)  # some with other settings too
    assert {entry.name for entry in entries if entry.is_network} == set(NETWORKS)
    assert all(entry.published for entry in entries if entry.is_network)


def test_reproduce_writes_every_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "docs").mkdir()
    settings = Settings(tmp_path / "out", 2, summary=tmp_path / "docs" / "reproduction.md", command="polyarm me")
    sections = reproduce(["gaussian"], settings)
    assert [section.name for section in sections] == ["gaussian"]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "runs",
        "report.html",
        *(f"gaussian{suffix}" for suffix in (".csv", ".md", ".tex", ".png", ".pdf")),
    }
    page = (tmp_path / "out" / "report.html").read_text()
    assert "polyarm me" in page
    assert 'src="data:image/png;base64,' in page
    assert "http" not in page
    summary = (tmp_path / "docs" / "reproduction.md").read_text()
    assert "`polyarm me`" in summary
    assert "![Gaussian bandits without context against the oracle](figures/gaussian.png)" in summary
    assert (tmp_path / "docs" / "figures" / "gaussian.png").stat().st_size < 100_000
    assert "gaussian/0.1" in capsys.readouterr().out


def test_targets_with_their_own_number() -> None:
    assert parse_targets(["gaussian:7", "all"], 3) == dict.fromkeys(NAMES, 3) | {"gaussian": 7}
    assert parse_targets(["gaussian"], None) == {"gaussian": None}
    with pytest.raises(InvalidArgument, match="target must be a name, or a name with a number"):
        parse_targets(["gaussian:many"], 3)


def test_unknown_target_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="target must be one of"):
        reproduce(["everything"], Settings(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_seconds_beside_the_published_ones() -> None:
    entry = MIXTURE_A.panels[0].entries[0]
    assert published_seconds("mixture-a", entry._replace(shown="Gibbs_max 5")) == 3476
    assert published_seconds("mixture-a", entry) is None
    assert published_seconds("exponential", entry._replace(shown="Gibbs_max 5")) is None


def test_growth_on_a_short_horizon(tmp_path: Path) -> None:
    target = growth.GrowthTarget(scenarios=("gaussian/1",), horizon=600, realizations=4)
    section = target.run(StudyFolder(tmp_path, Inline()))
    powers = [row[3] for row in section.table.rows]
    assert all(isinstance(power, float) and power < 0.6 for power in powers)


def test_fitted_growth_of_planted_curves() -> None:
    steps = np.geomspace(1, 20_000, 60)
    curves = np.outer([0.9, 1.0, 1.1], np.sqrt(steps) * np.log(steps + 1))
    found, interval = growth.fit_curves(steps, curves)
    assert found.log_power == pytest.approx(1, abs=0.01)
    assert interval[0, 1] <= found.log_power + 1e-9


def test_densities_converge_where_the_model_holds_and_not_where_it_does_not(tmp_path: Path) -> None:
    target = ConvergenceTarget(scenarios=("heavy-tailed",), counts=(10, 400), realizations=2)
    nonparametric, linear = target.decays(StudyFolder(tmp_path, Inline()))
    assert nonparametric.distances[:, 1].max() < 0.1
    assert linear.distances[:, 1].min() > 0.3
    assert nonparametric.distances.shape == (2, 2)
    assert probe_contexts(1).shape == (1, 1)


def test_many_curves_stay_apart() -> None:
    styles = {(style["color"], str(style["linestyle"])) for style in map(drawing.style_of, range(20))}
    assert len(styles) == 20
