"""What the dashboard draws: bars of single values, densities of all other rewards, arms in their colours."""

import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from starlette.testclient import TestClient

from polyarm.drawing import share_label
from polyarm.service.app import Service, make_app
from polyarm.service.dashboard import charts
from polyarm.service.database import open_database
from polyarm.types import Rng

BARS, DENSITY = "Probability of single values", "Density of the reward"
REWARDS: dict[str, tuple[Callable[[Rng, bool], float], bool, bool]] = {  # reward of an arm, whether bars, a density
    "clicks": (lambda rng, good: float(rng.random() < (0.6 if good else 0.2)), True, False),
    "purchases": (lambda rng, good: float((rng.random() < 0.5) * rng.gamma(3.0, 5.0 + good)), True, True),
    "ratings": (lambda rng, good: float(rng.integers(1, 6)), False, True),
    "amounts": (lambda rng, good: float(rng.normal(good)), False, True),
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A service with an experiment for every kind of reward."""
    service = Service.over(open_database(str(tmp_path_factory.mktemp("service") / "s.db")), open_to_all=True)
    with TestClient(make_app(service)) as opened:
        for name, (reward, *_) in REWARDS.items():
            rng = np.random.default_rng(0)
            asked = {"name": name, "arms": ["a", "b", "c"], "window": 3600.0, "learn": "on-arrival", "seed": 3}
            opened.post("/v1/experiments", json=asked).raise_for_status()
            answer = opened.post(f"/v1/experiments/{name}/decisions/batch", json={"decisions": [{}] * 40})
            made = answer.raise_for_status().json()["decisions"]
            values = [{"decision": one["id"], "value": reward(rng, one["arm"] == "b")} for one in made]
            opened.post("/v1/rewards", json=values).raise_for_status()
        service.learner.tick()
        yield opened


@pytest.mark.parametrize("name", REWARDS)
def test_every_kind_of_reward_has_its_pictures(client: TestClient, name: str) -> None:
    _, bars, density = REWARDS[name]
    page = client.get(f"/experiments/{name}/model").raise_for_status().text
    assert (BARS in page, DENSITY in page) == (bars, density)
    assert ("All other rewards" in page) == (bars and density)
    if bars:
        assert page.count("<rect") == 3 * (2 if name == "clicks" else 1)
        assert 'class="whisker"' in page


def test_arms_keep_their_colours_when_one_leaves(client: TestClient) -> None:
    client.post("/v1/experiments/purchases/arms/a:retire").raise_for_status()
    page = client.get("/experiments/purchases/model").raise_for_status().text
    assert set(re.findall(r'<rect class="area (series-\d)"', page)) == {"series-1", "series-2"}
    assert set(re.findall(r'<path class="line (series-\d)"', page)) == {"series-1", "series-2"}


def test_two_dozen_arms_look_different() -> None:
    looks = [charts.colour_of(series) for series in range(25)]
    assert looks[:2] == ["series-0", "series-1"], "the first ones are plain hues"
    assert len(set(looks[:24])) == 24
    assert looks[24] == looks[0]
    names = [f"arm {i}" for i in range(12)]
    drawn = charts.stacked(names, [0.0, 60.0], [[1.0, 2.0]] * 12, "Shares")
    areas, swatches = (re.findall(f'class="{what} ([^"]+)"', drawn) for what in ("area", "swatch"))
    assert areas == swatches == looks[:12], "an arm looks the same in the picture and beside its name"


def test_bars_are_as_high_as_their_shares() -> None:
    found = [charts.Bars("a", [0.25, 0.75], [0.2, 0.7], [0.3, 0.8], 0), charts.Bars("b", [1.0, 0.0], [1, 0], [1, 0], 5)]
    drawn = charts.bars(["0", "1"], found, "Shares")
    heights = [float(height) for height in re.findall(r'height="([\d.]+)"', drawn)]
    assert np.allclose(np.array(heights) / heights[2], [0.25, 0.75, 1.0, 0.0], atol=2e-3)
    assert drawn.count("whisker") == 2, "a share that is known has no interval"
    assert "nothing to show" in charts.bars([], [], "Shares")


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (0.00123, "0.12 %"), (0.0667, "6.7 %"), (0.0996, "10 %"), (0.93, "93 %"), (1, "100 %")],
)
def test_labels_of_shares(share: float, text: str) -> None:
    assert share_label(share) == text
