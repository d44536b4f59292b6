"""What was learnt: numbers that do not depend on the moment of looking, tables, pictures, and one page."""

import html
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyarm import Bandit, evaluate
from polyarm.bandit import figures
from polyarm.bandit.looks import Look
from polyarm.errors import InvalidArgument
from polyarm.inference.chains import are_alive
from tests.bandit.shapes import ARMS, COLUMNS, played

CONTEXT = {"hour": 20, "age": None, "device": "desktop", "member": False, "price": 99.5}


@pytest.fixture(scope="module")
def bandit() -> Bandit:
    made = played(Bandit(ARMS, COLUMNS, policy="linear", seed=7), 80)
    made.retire_arm("short")
    return made


def test_a_prediction_has_every_arm_that_is_played(bandit: Bandit) -> None:
    found = bandit.predict(CONTEXT)
    assert list(found) == ["long", "video"]
    assert sum(row.probability_best for row in found.values()) == pytest.approx(1)
    assert all(row.low < row.mean < row.high for row in found.values())
    assert sum(bandit.summary()[arm].plays for arm in ARMS) == 80
    policy: Any = bandit._learner.policy
    exact = policy.engine.expected_means(bandit._learner.state, bandit._seen_as(bandit._schema.codes(CONTEXT)))
    assert [found[arm].mean for arm in found] == pytest.approx(exact[1:], abs=0.05)


@pytest.mark.parametrize("policy", ["linear", "nonparametric"])
def test_a_summary_over_equal_contexts_is_as_unsure_as_a_prediction_in_one(policy: str) -> None:
    made = Bandit(["a", "b"], policy=policy, seed=8)
    rewards = np.random.default_rng(4).normal([1.0, 2.0], [0.3, 3.0], (60, 2))
    made.learn_logged([{}] * 120, ["a", "b"] * 60, rewards.ravel())
    looks = [(made.summary(look=i), made.predict(look=i)) for i in range(8)]  # of one the error is 0.035 of a width
    for arm in "ab":
        width = np.mean([told[arm].high - told[arm].low for told, _ in looks])
        expected = np.mean([once[arm].high - once[arm].low for _, once in looks])
        assert width == pytest.approx(expected, rel=0.1)
        gap = np.mean([told[arm].mean - once[arm].mean for told, once in looks])
        assert gap == pytest.approx(0.0, abs=0.05 * float(expected))


def test_looking_changes_nothing_and_looking_twice_shows_the_same(bandit: Bandit) -> None:
    before = bandit.to_bytes()
    first, second = bandit.predict(CONTEXT), bandit.predict(CONTEXT)
    assert dict(first) == dict(second)
    other = bandit.predict(CONTEXT, look=1)
    assert dict(other) != dict(first)
    assert max(abs(other[arm].probability_best - first[arm].probability_best) for arm in first) < 0.02
    bandit.summary()
    bandit.density("long", CONTEXT)
    bandit.effects("long")
    assert bandit.to_bytes() == before


def test_a_sampled_posterior_is_looked_at_from_many_states() -> None:
    bandit = played(Bandit(ARMS, seed=7), 40)
    before = bandit.to_bytes()
    first, second = (bandit.predict(look=look) for look in (0, 1))
    gaps = [abs(first[arm].probability_best - second[arm].probability_best) for arm in ARMS]
    assert max(gaps) < 4 * np.hypot(first.standard_error, second.standard_error) + 1e-3
    assert bandit.to_bytes() == before


def test_a_look_needs_one_chain_and_says_what_all_of_them_do() -> None:
    learner = played(Bandit(ARMS, seed=7), 40)._learner
    policy: Any = learner.policy
    assert are_alive(learner.state.rest, learner.state.other_chains)
    look = Look.at(policy, learner.state, 7, 40)
    assert not are_alive(look.state.rest, look.state.other_chains)
    x = np.zeros((1, policy.engine.context_dim))
    one, all_of_them = look.means(x, 1000)[0], replace(look, state=learner.state).means(x, 1000)[0]
    sd = all_of_them.std(axis=0)
    np.testing.assert_allclose(one.mean(axis=0), all_of_them.mean(axis=0), atol=0.15 * float(sd.min()))
    np.testing.assert_allclose(one.std(axis=0), sd, rtol=0.15)


def test_tables_read_well_in_a_terminal_and_in_a_notebook(bandit: Bandit) -> None:
    lines = repr(bandit.predict(CONTEXT)).splitlines()
    assert re.match(r"arm +mean +95 % +best with +plays", lines[0])
    assert len(lines) == 3
    summary = bandit.summary()
    assert "short (retired)" in repr(summary)
    assert summary["short"].active is False
    assert summary["long"].learnt + summary["long"].open == summary["long"].plays
    assert bandit.predict(CONTEXT)._repr_html_().startswith("<table>")
    assert "<td" in summary._repr_html_()
    shown = bandit.decision("d3")._repr_html_()
    assert "d3: " in shown
    assert "(played)" in shown


def test_markup_in_names_is_only_text() -> None:
    bandit = played(Bandit(["<b>", "&"], policy="uniform", seed=1), 0)
    decision = bandit.choose(id="<script>")
    assert "<b>" not in decision._repr_html_()
    assert "<script>" not in decision._repr_html_()
    assert "<b>" not in bandit.summary()._repr_html_()


def test_a_density_is_one_and_lies_in_its_band(bandit: Bandit) -> None:
    found = bandit.density("video", CONTEXT)
    assert np.trapezoid(found.density, found.grid) == pytest.approx(1, abs=0.03)
    inside = (found.low <= found.density) & (found.density <= found.high)
    assert inside.mean() > 0.95
    assert len(bandit.density("video", CONTEXT, [0.0, 1.0]).density) == 2


def test_effects_follow_the_columns(bandit: Bandit) -> None:
    found = {effect.column: effect for effect in bandit.effects("video")}
    assert list(found) == list(COLUMNS)
    assert found["device"].values == ["phone", "desktop", "tablet"]
    assert found["member"].values == [False, True]
    assert found["hour"].mean[0] == pytest.approx(found["hour"].mean[-1]), "the day is a circle"
    line = found["price"]
    slopes = np.diff(line.mean) / np.diff(line.values)
    assert np.allclose(slopes, slopes.mean()), "the model is linear"


def test_history_tells_what_happened(bandit: Bandit) -> None:
    history = bandit.history(n_looks=4)
    assert history.steps[-1] == 80
    assert np.allclose(history.shares.sum(axis=1), 1)
    assert np.allclose(history.played.sum(axis=1), 1)
    assert history.learnt.tolist() == [19, 38, 57, 77]
    assert np.allclose(history.best.sum(axis=1), 1)


def test_pictures_show_the_numbers(bandit: Bandit) -> None:
    densities = [bandit.density(arm, CONTEXT, np.linspace(-4, 8, 50)) for arm in bandit.arms]
    lines = figures.draw_densities(densities).axes[0].get_lines()
    assert [line.get_label() for line in lines] == ["long", "video"]
    assert np.array_equal(lines[0].get_ydata(), densities[0].density)
    effects = [effect for arm in bandit.arms for effect in bandit.effects(arm)]
    assert [a.get_xlabel() for a in figures.draw_effects(effects).axes if a.get_visible()] == list(COLUMNS)
    assert len(figures.draw_history(bandit.history(2)).axes) == 3


def test_a_report_is_one_file_without_network(bandit: Bandit, tmp_path: Path) -> None:
    text = bandit.report(tmp_path / "report.html").read_text()
    assert text.count("data:image/png;base64,") == 3
    assert not re.search(r"(src|href)=\"?(https?:)?//", text)
    assert "80 decisions, 77 rewards learnt, 3 open, 0 dropped" in text
    without_model = played(Bandit(ARMS, policy="ucb-v", seed=1), 12)
    assert "What the bandit learnt" in without_model.report(tmp_path / "other.html").read_text()


def test_a_report_can_show_what_others_would_have_earned(tmp_path: Path) -> None:
    bandit = played(Bandit(ARMS, policy="ucb-v", min_propensity=0.2, seed=1), 60)
    found = evaluate(bandit, "uniform")
    text = bandit.report(tmp_path / "report.html", evaluation=found).read_text()
    assert "What others would have earned" in text
    assert html.escape(found.verdict) in text
    with pytest.raises(InvalidArgument, match="evaluation must be None or what `evaluate` gave, got 'uniform'"):
        bandit.report(tmp_path / "none.html", evaluation="uniform")
    assert not (tmp_path / "none.html").exists()


def test_a_policy_without_a_model_says_what_is_missing() -> None:
    bandit = played(Bandit(ARMS, policy="ucb-v", seed=1), 12)
    with pytest.raises(InvalidArgument, match="policy must be one with a model of the rewards, got UCBV"):
        bandit.predict()
    assert np.isnan(bandit.summary()["short"].mean)
    assert bandit.summary()["short"].plays > 0


def test_a_bandit_that_knows_nothing_can_be_looked_at() -> None:
    bandit = Bandit(ARMS, COLUMNS, policy="linear", seed=1)
    assert bandit.predict(CONTEXT)["long"].plays == 0
    assert bandit.summary()["long"].learnt == 0
    assert len(bandit.history().steps) == 0
    assert len(bandit.effects("long")) == 5


def test_rewards_of_single_values_have_their_probabilities(tmp_path: Path) -> None:
    bandit = Bandit(["a", "b"], seed=3)
    rng, seen = np.random.default_rng(0), {"a": [1, 1], "b": [1, 1]}
    for i in range(60):
        decision = bandit.choose(id=str(i))
        reward = int(rng.random() < (0.7 if decision.arm == "a" else 0.2))
        bandit.learn(decision, float(reward))
        seen[decision.arm][1 - reward] += 1
    found = bandit.density("a")
    assert list(found.jumps) == [0.0, 1.0]
    assert sum(found.jumps.values()) == pytest.approx(1)
    assert found.jumps[1.0] == pytest.approx(0.7, abs=0.2)
    # without context a rate has a Beta distribution
    a, b = (rng.beta(float(ones), float(zeros), 100_000) for ones, zeros in seen.values())
    assert bandit.predict()["a"].probability_best == pytest.approx(float((a > b).mean()), abs=0.03)
    assert list(found.jump_bands) == [0.0, 1.0]
    assert all(low < found.jumps[value] < high for value, (low, high) in found.jump_bands.items())
    assert sum(found.jump_bands[0.0]) == pytest.approx(2 - sum(found.jump_bands[1.0]), abs=1e-6)
    (panel,) = figures.draw_densities([found]).axes  # no other reward: no density
    assert [bar.get_height() for bar in panel.patches] == list(found.jumps.values())
    assert [tick.get_text() for tick in panel.get_xticklabels()] == ["0", "1"]
    again = Bandit.load(bandit.save(tmp_path / "clicks.polyarm"))
    assert again.to_bytes() == bandit.to_bytes()
    assert again.recompute("59") == bandit.decision("59")


def test_pictures_of_purchases_show_nothing_and_amounts() -> None:
    bandit = Bandit(["a", "b"], seed=3)
    rng = np.random.default_rng(0)
    for i in range(60):
        decision = bandit.choose(id=str(i))
        bandit.learn(decision, float((rng.random() < 0.4) * rng.gamma(3.0, 10.0)))
    bars, curves = bandit.plot_densities().axes
    assert [bar.get_height() for bar in bars.patches] == [bandit.density(arm).jumps[0.0] for arm in bandit.arms]
    assert [line.get_label() for line in curves.get_lines()] == ["a", "b"]
    assert "other rewards" in curves.get_title()
    alone = figures.draw_densities([bandit.density("b")], {"a": 0, "b": 1})
    assert alone.axes[0].patches[0].get_facecolor() == bars.patches[1].get_facecolor()


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_windfalls_have_their_probability_beside_the_bulk(side: float, tmp_path: Path) -> None:
    bandit = Bandit(["a", "b"], seed=3)
    rng = np.random.default_rng(0)
    for i in range(200):
        decision = bandit.choose(id=str(i))
        bandit.learn(decision, side * float(rng.normal() + 60.0 * (rng.random() < 0.1)))
    found = [bandit.density(arm) for arm in bandit.arms]
    for one in found:
        far = one.windfalls
        assert far is not None
        assert far.side == side
        assert 4.0 < side * far.limit < 50.0
        assert far.low < far.share < far.high
        assert far.low < 0.1 < far.high
        assert side * one.grid[-1 if side > 0 else 0] < 1.2 * side * far.limit  # the bulk alone
        assert one.jumps == {}
    shares, curves = bandit.plot_densities().axes
    assert [bar.get_height() for bar in shares.patches] == [one.windfalls.share for one in found if one.windfalls]
    assert ("above" if side > 0 else "below") in shares.get_title()
    assert "other rewards" in curves.get_title()
    assert bandit.predict()["a"].mean * side > 1.0
    again = Bandit.load(bandit.save(tmp_path / "windfalls.polyarm"))
    assert again.to_bytes() == bandit.to_bytes()
    assert Bandit(["a", "b"], seed=3, options={"windfalls": False}).density("a").windfalls is None


def test_counts_have_the_probabilities_of_their_values(tmp_path: Path) -> None:
    bandit = Bandit(["a", "b"], seed=3)
    rng = np.random.default_rng(0)
    for i in range(80):
        decision = bandit.choose(id=str(i))
        bandit.learn(decision, float(rng.poisson(5.0 if decision.arm == "a" else 3.0)))
    found = bandit.density("a")
    assert len(found.jumps) > 4
    assert found.jump_bands == {}
    assert max(found.jumps, key=lambda value: found.jumps[value]) in (3.0, 4.0, 5.0, 6.0)
    (line,) = figures.draw_densities([found]).axes[0].get_lines()
    assert line.get_label() == "a"
    assert line.get_ydata().max() == pytest.approx(max(found.jumps.values()))  # the step is 1
    again = Bandit.load(bandit.save(tmp_path / "counts.polyarm"))
    assert again.to_bytes() == bandit.to_bytes()
    assert again.recompute("79") == bandit.decision("79")


def test_a_picture_of_densities_shows_every_arm_whole() -> None:
    made = Bandit(["near", "far"], policy="linear", seed=3, options={"intercept": False})
    rng = np.random.default_rng(0)
    for arm, centre in (("near", 0.0), ("far", 30.0)):
        made.learn_logged(60, [arm] * 60, rng.normal(centre, 1.0, 60))
    lines = made.plot_densities().axes[0].lines
    for line, arm in zip(lines, ("near", "far"), strict=False):
        x, y = line.get_data()
        assert (y.max() > 20 * np.array([y[0], y[-1]])).all(), f"the density of {arm} begins and ends near 0"
        assert np.trapezoid(y, x) == pytest.approx(1.0, abs=0.03)
