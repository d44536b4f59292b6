"""Classification tables as bandits."""

import sys
from pathlib import Path

import numpy as np
import pytest

from polyarm.environments import ClassificationBandit, make_scenario
from polyarm.environments.classification import from_classes, packaged, principal, standardized
from polyarm.errors import BrokenFile, InvalidArgument, MissingExtra


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("digits", (10, 20, 1797)),
        ("digits/20", (10, 20, 1797)),
        ("digits/64", (10, 64, 1797)),
        ("breast-cancer", (2, 30, 569)),
        ("wine", (3, 13, 178)),
    ],
)
def test_a_world_is_one_pass(name: str, shape: tuple[int, int, int]) -> None:
    scenario = make_scenario(name)
    bandit = scenario.environment
    assert isinstance(bandit, ClassificationBandit)
    assert (bandit.n_arms, bandit.context_dim, scenario.horizon) == shape
    world = bandit.sample(scenario.horizon, np.random.default_rng(1))
    assert np.array_equal(world.rewards, world.means)
    assert (world.rewards.sum(axis=1) == 1).all()
    assert set(np.unique(world.rewards)) == {0.0, 1.0}
    assert np.array_equal(np.sort(world.contexts, axis=0), np.sort(bandit.contexts, axis=0))
    spread = bandit.contexts.std(axis=0)
    assert ((np.abs(spread - 1) < 1e-9) | (spread == 0)).all()
    assert np.abs(bandit.contexts.mean(axis=0)).max() < 1e-9


def test_rows_are_shuffled_by_the_seed_and_come_again_only_after_all_others() -> None:
    bandit = ClassificationBandit(np.arange(7.0)[:, None], np.array([0, 1, 2, 0, 1, 2, 0]))
    one, same, other = (bandit.sample(17, np.random.default_rng(seed)).contexts[:, 0] for seed in (1, 1, 2))
    assert one.tolist() == same.tolist() != other.tolist()
    assert sorted(one[:7]) == sorted(one[7:14]) == list(range(7))
    assert bandit.sample(0, np.random.default_rng(1)).rewards.shape == (0, 3)
    for context, reward in zip(one, bandit.sample(17, np.random.default_rng(1)).rewards, strict=True):
        assert reward.argmax() == bandit.classes[int(context)]


def test_principal_components_are_ordered_uncorrelated_and_have_a_sign() -> None:
    rng = np.random.default_rng(3)
    columns = rng.standard_normal((200, 5)) @ rng.standard_normal((5, 5))
    scores = principal(columns, 3)
    covariance = np.cov(scores.T)
    assert np.diag(covariance).tolist() == sorted(np.diag(covariance), reverse=True)
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() < 1e-9
    assert np.allclose(principal(columns[::-1], 3)[::-1], scores)
    assert (standardized(np.full((4, 1), 0.1)) == 0).all()


def test_a_file_with_numbers_and_categories(tmp_path: Path) -> None:
    file = tmp_path / "mushrooms.csv"
    file.write_text("class,cap,size\np,x,1\ne,b,2\ne,x,3\np,?,4\n")
    scenario = make_scenario(f"classes:{file}")
    assert (scenario.name, scenario.horizon) == ("mushrooms", 4)
    bandit = from_classes(file)
    assert bandit.classes.tolist() == [1, 0, 0, 1]
    assert bandit.contexts[:, :3].tolist() == [[0, 0, 1], [0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert bandit.contexts[:, 3] == pytest.approx((np.arange(4) - 1.5) / np.std(np.arange(4)))
    assert "rows=4, arms=2" in repr(bandit)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be a table with a header"),
        ("class,a\n", "must be a table with a header"),
        ("a,b\n1,2\n", "must have a column named class"),
        ("class\nx\ny\n", "must have a column named class and at least one more"),
        ("class,a\nx,1\ny\n", "must have 2 values in every line, got 1 in line 3"),
    ],
)
def test_broken_files_are_told(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "table.csv"
    file.write_text(text)
    with pytest.raises(BrokenFile, match=message):
        from_classes(file)


def test_a_missing_file_and_bad_tables_are_told(tmp_path: Path) -> None:
    with pytest.raises(BrokenFile, match="must be a readable CSV file"):
        from_classes(tmp_path / "nowhere.csv")
    with pytest.raises(InvalidArgument, match="classes must be at least two, numbered"):
        ClassificationBandit(np.ones((2, 1)), np.array([1, 1]))
    with pytest.raises(InvalidArgument, match="contexts must be finite"):
        ClassificationBandit(np.array([[np.nan], [1.0]]), np.array([0, 1]))


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingExtra, match=r"polyarm\[datasets\]"):
        packaged("wine")
