"""The HTTP interface, in the process of the tests: every route, every verdict, every refusal."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from polyarm.bandit import Bandit
from polyarm.service import keys
from polyarm.service.app import Service, make_app
from polyarm.service.database import open_database
from polyarm.service.openapi import OPERATIONS

SHOP = {
    "name": "shop",
    "arms": ["a", "b", "c"],
    "context": [
        {"name": "age"},
        {"name": "member", "kind": "flag"},
        {"name": "device", "kind": "category", "categories": ["phone", "desktop"]},
        {"name": "hour", "kind": "cyclic", "period": 24.0, "optional": True},
    ],
    "window": 0.0,
    "learn": "at-close",
    "min_propensity": 0.05,
    "default_reward": 0.0,
    "seed": 3,
}
CONTEXT = {"age": 30.0, "member": True, "device": "phone", "hour": 7.0}


@pytest.fixture
def service(address: str) -> Service:
    return Service.over(open_database(address), open_to_all=True)


@pytest.fixture
def client(service: Service) -> Iterator[TestClient]:
    with TestClient(make_app(service)) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared_client(shared_address: str) -> Iterator[TestClient]:
    """A client with one experiment, for requests that must change nothing."""
    with TestClient(make_app(Service.over(open_database(shared_address), open_to_all=True))) as opened:
        opened.post("/v1/experiments", json=SHOP)
        yield opened


def decide(client: Any, name: str = "shop", **options: Any) -> httpx.Response:
    headers = {"idempotency-key": options.pop("key")} if "key" in options else {}
    response: httpx.Response = client.post(
        f"/v1/experiments/{name}/decisions", json={"context": CONTEXT, **options}, headers=headers
    )
    return response


def test_from_experiment_to_snapshot(client: TestClient, service: Service, tmp_path: Path) -> None:
    assert client.post("/v1/experiments", json=SHOP | {"window": 30.0}).status_code == 201
    made = [decide(client).json() for _ in range(20)]
    assert all(sum(d["probabilities"].values()) == pytest.approx(1, abs=1e-12) for d in made)
    assert all(d["propensity"] == d["probabilities"][d["arm"]] >= 0.05 for d in made)
    for i, decision in enumerate(made):
        answer = client.post("/v1/rewards", json={"decision": decision["id"], "value": float(i)})
        assert answer.json()["rewards"][0]["verdict"] == "accepted"
    assert client.patch("/v1/experiments/shop", json={"window": 0.0}).status_code == 200
    last = decide(client).json()
    service.learner.tick()
    explained = client.get(f"/v1/decisions/{last['id']}/explain").json()
    assert (explained["arm_agrees"], explained["probabilities_agree"]) == (True, True)
    assert explained["outcome"]["source"] == "default"
    report = client.get("/v1/experiments/shop/report").json()
    assert (report["decisions"], report["open_decisions"], report["learnt"]) == (21, 20, 1)
    listed = client.get("/v1/experiments/shop/snapshots").json()
    assert listed[0]["apply_seq"] == 1
    with service.database.reading.connect() as connection:
        from polyarm.service.snapshots import latest

        (tmp_path / "model.polyarm").write_bytes(latest(connection, "shop").content)
    assert Bandit.load(tmp_path / "model.polyarm").arms == ("a", "b", "c")


def test_a_retry_gets_the_same_decision(client: TestClient) -> None:
    client.post("/v1/experiments", json=SHOP)
    first, again = decide(client, key="k1"), decide(client, key="k1")
    assert first.json() == again.json()
    assert decide(client, key="k1", eligible=["a"]).status_code == 409
    batch = {"decisions": [{"context": CONTEXT}] * 3}
    headers = {"idempotency-key": "batch"}
    answers = [
        client.post("/v1/experiments/shop/decisions/batch", json=batch, headers=headers).json() for _ in range(2)
    ]
    assert answers[0] == answers[1]
    assert len({d["id"] for d in answers[0]["decisions"]}) == 3


def test_arms_come_and_go(client: TestClient, service: Service) -> None:
    client.post("/v1/experiments", json=SHOP)
    assert client.post("/v1/experiments/shop/arms", json={"arm": "d"}).status_code == 202
    service.learner.tick()
    client.portal.call(service.replica.refresh)  # type: ignore[union-attr]
    assert "d" in decide(client).json()["probabilities"]
    assert client.post("/v1/experiments/shop/arms/a:retire").status_code == 200
    assert all(decide(client).json()["probabilities"]["a"] == 0.0 for _ in range(5))
    only = decide(client, eligible=["b"]).json()
    assert (only["arm"], only["propensity"]) == ("b", 1.0)
    assert client.post("/v1/experiments/shop/arms/a:resume").status_code == 422
    assert client.post("/v1/experiments/shop/arms/a:explode").status_code == 404


def test_a_rollback_leaves_out_what_was_learnt_since(client: TestClient, service: Service) -> None:
    client.post("/v1/experiments", json=SHOP)
    for _ in range(6):
        decide(client)
        service.learner.tick()
    newest = client.get("/v1/experiments/shop/snapshots").json()
    old = next(s for s in newest if s["apply_seq"] == 3)
    assert client.post("/v1/experiments/shop:rollback", json={"snapshot": old["version"]}).status_code == 202
    service.learner.tick()
    now = client.get("/v1/experiments/shop/snapshots").json()[0]
    assert now["sha256"] == old["sha256"]
    assert now["version"] > newest[0]["version"]
    assert client.post("/v1/experiments/shop:rollback", json={"snapshot": 999}).status_code == 404


def test_pause_and_resume(client: TestClient) -> None:
    client.post("/v1/experiments", json=SHOP)
    client.post("/v1/experiments/shop:pause")
    assert decide(client).status_code == 409
    client.post("/v1/experiments/shop:resume")
    assert decide(client).status_code == 201


def test_a_shadow_decision_logs_what_another_system_played(client: TestClient) -> None:
    client.post("/v1/experiments", json=SHOP)
    made = decide(client, played="c").json()
    assert (made["arm"], made["stream"]) == ("c", "shadow")
    assert decide(client, played="z").status_code == 422


def test_a_holdout_plays_the_control(client: TestClient) -> None:
    client.post("/v1/experiments", json=SHOP | {"holdout": 1.0, "control": "b"})
    assert {(d["arm"], d["stream"], d["propensity"]) for d in (decide(client).json() for _ in range(5))} == {
        ("b", "holdout", 1.0)
    }


DEEP = b'{"context": ' + b"[" * 5000 + b"]" * 5000 + b"}"
HOSTILE: dict[str, bytes] = {
    "NaN": b'{"context": {"age": NaN}}',
    "1e999": b'{"context": {"age": 1e999}}',
    "a number as text": b'{"context": {"age": "1.0", "member": true, "device": "phone"}}',
    "true as a number": b'{"context": {"age": true, "member": true, "device": "phone"}}',
    "deep": DEEP,
    "NUL": b'{"context": {"age": 1, "member": true, "device": "\\u0000"}}',
    "lone surrogate": b'{"context": {"age": 1, "member": true, "device": "\\ud800"}}',
    "a name twice": b'{"context": {"age": 1, "age": 2, "member": true, "device": "phone"}}',
    "an unknown column": b'{"context": {"age": 1, "member": true, "device": "phone", "more": 1}}',
    "a missing column": b'{"context": {"age": 1}}',
    "an unknown category": b'{"context": {"age": 1, "member": true, "device": "fridge"}}',
    "an unknown field": b'{"contexts": {}}',
    "no JSON": b"hello",
    "half": b'{"context": {',
    "not UTF-8": b'{"context": {"age": 1, "member": true, "device": "\xff"}}',
    "empty": b"",
    "10 MB": b'{"unit": "' + b"x" * 10_000_000 + b'"}',
    "control characters": b'{"unit": "a\\nb", "context": {"age": 1, "member": true, "device": "phone"}}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bodies_change_nothing(shared_client: TestClient, name: str) -> None:
    answer = shared_client.post("/v1/experiments/shop/decisions", content=HOSTILE[name])
    assert 400 <= answer.status_code < 500
    assert answer.json()["error"]
    assert shared_client.get("/v1/experiments/shop/report").json()["decisions"] == 0


def test_a_huge_integer_is_a_number_like_any_other(client: TestClient) -> None:
    client.post("/v1/experiments", json=SHOP)
    body = b'{"context": {"age": 123456789012345678901234567890, "member": true, "device": "phone"}}'
    assert client.post("/v1/experiments/shop/decisions", content=body).status_code in (201, 422)


@pytest.mark.parametrize(
    "wrong",
    [
        {"arms": []},
        {"arms": ["a", "a"]},
        {"name": "No Spaces"},
        {"policy": "clairvoyant"},
        {"options": {"nonsense": 1}},
        {"min_propensity": 0.5},
        {"control": "z"},
        {"window": -1},
        {"context": [{"name": "x"}, {"name": "x"}]},
        {"context": [{"name": "x", "kind": "cyclic"}]},
        {"context": [{"name": "x", "kind": "category", "categories": ["one"]}]},
        {"objective": "nonsense"},
    ],
)
def test_settings_that_cannot_be_are_refused(shared_client: TestClient, wrong: dict[str, Any]) -> None:
    answer = shared_client.post("/v1/experiments", json=SHOP | {"name": "new"} | wrong)
    assert answer.status_code == 422, answer.text
    assert shared_client.get("/v1/experiments").json() == ["shop"]


def test_rewards_answer_with_their_status(client: TestClient) -> None:
    client.post("/v1/experiments", json=SHOP | {"window": 60.0})
    made = decide(client).json()["id"]
    statuses = [
        client.post("/v1/rewards", json={"decision": name, "value": value}).status_code
        for name, value in ((made, 1.0), (made, 1.0), (made, 2.0), ("nobody", 1.0))
    ]
    assert statuses == [200, 200, 409, 404]
    many = client.post("/v1/rewards", json=[{"decision": made, "value": 1.0}, {"decision": "nobody", "value": 1.0}])
    assert [r["verdict"] for r in many.json()["rewards"]] == ["duplicate", "unknown"]


SCOPE_CASES = [op for op in OPERATIONS if op.scope is not None]


def test_every_route_asks_for_its_scope(address: str) -> None:
    database = open_database(address)
    with database.writing.begin() as connection:
        by_scope = {scope: keys.add_key(connection, scope, [scope]) for scope in keys.SCOPES}
    service = Service.over(database)
    with TestClient(make_app(service)) as client:
        for operation in SCOPE_CASES:
            path = operation.path.format(experiment="none", arm="a", decision="d")
            call: dict[str, Any] = {"method": operation.method.upper(), "url": path, "content": b"{}"}
            assert client.request(**call).status_code == 401, operation.path
            assert client.request(**call, headers={"authorization": "Bearer pak_wrong"}).status_code == 401
            for scope, key in by_scope.items():
                answer = client.request(**call, headers={"authorization": f"Bearer {key}"})
                allowed = scope in (operation.scope, "admin")
                assert (answer.status_code != 403) == allowed, (operation.path, scope, answer.text)
        assert client.get("/metrics").status_code == 401
        assert client.get("/", follow_redirects=False).headers["location"] == "/login"


def test_the_rate_limit_is_per_key(tmp_path: Path) -> None:
    database = open_database(str(tmp_path / "s.db"))
    with database.writing.begin() as connection:
        one, two = (keys.add_key(connection, name, ["read"]) for name in ("one", "two"))
    with TestClient(make_app(Service.over(database, rate_limit=3))) as client:
        statuses = [
            client.get("/v1/experiments", headers={"authorization": f"Bearer {key}"}).status_code
            for key in (one, one, one, one, two)
        ]
    assert statuses == [200, 200, 200, 429, 200]


def test_the_description_names_every_route(shared_client: TestClient) -> None:
    described = shared_client.get("/openapi.json").json()
    assert described["openapi"] == "3.1.0"
    assert {(op.method, op.path) for op in OPERATIONS} == {
        (method, path) for path, methods in described["paths"].items() for method in methods
    }
    assert json.dumps(described)


def test_headers_guard_every_page(client: TestClient) -> None:
    client.post("/v1/experiments", json=SHOP)
    for path in ("/", "/experiments/shop", "/audit", "/healthz", "/v1/experiments"):
        answer = client.get(path)
        assert answer.status_code == 200, path
        assert answer.headers["content-security-policy"].startswith("default-src 'self'")
        assert answer.headers["x-frame-options"] == "DENY"
    assert client.get("/nothing").status_code == 404
    assert b"polyarm_decisions_total" in client.get("/metrics").content


def test_forms_need_the_token_of_the_page(client: TestClient) -> None:
    client.post("/v1/experiments", json=SHOP)
    act = "/experiments/shop/action"
    assert client.post(act, data={"action": "pause", "token": "guess"}).status_code == 403
    page = client.get("/experiments/shop").text
    token = page.split('name="token" value="')[1].split('"')[0]
    assert client.post(act, data={"action": "pause", "token": token}, follow_redirects=False).status_code == 303
    assert decide(client).status_code == 409


@pytest.mark.parametrize(("body", "status"), [(b"key=" + b"x" * 70_000, 413), (b"key=%ff%fe\xff", 400), (b"", 401)])
def test_forms_are_read_within_limits(shared_client: TestClient, body: bytes, status: int) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert shared_client.post("/login", content=body, headers=headers).status_code == status
