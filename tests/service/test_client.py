"""The clients: the calls of a Bandit, tried again until the service answers, and rewards that are sent together."""

import asyncio
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from polyarm import client as clients
from polyarm.client import AsyncClient, Client, ServiceRefused, ServiceUnavailable
from polyarm.errors import Conflict, UnknownDecision
from tests.service.server import Server

SHOP = {"name": "shop", "arms": ["a", "b"], "context": [{"name": "age"}], "policy": "linear", "window": 60.0}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("client")
    with Server(str(folder / "s.db")) as server:
        server.http.post("/v1/experiments", json=SHOP).raise_for_status()
        yield server.address


def test_a_client_has_the_calls_of_a_bandit(address: str) -> None:
    with Client(address, "shop") as bandit:
        decision = bandit.choose({"age": 3.0}, eligible=["b"], unit="me")
        assert (decision.arm, decision.propensity) == ("b", 1.0)
        assert bandit.learn(decision, 2.0) is True
        assert bandit.learn(decision, 2.0) is False
        with pytest.raises(Conflict, match="must be given once"):
            bandit.learn(decision.id, 3.0)
        with pytest.raises(UnknownDecision, match="got one that is unknown"):
            bandit.learn("nobody", 3.0)
        with pytest.raises(ServiceRefused, match="context"):
            bandit.choose({"weight": 3.0})
        many = bandit.choose_many([{"age": float(age)} for age in range(5)])
        assert bandit.learn_many(many, range(5)) == ["accepted"] * 5
        assert bandit.report()["decisions"] >= 6


def test_an_awaiting_client_has_them_too(address: str) -> None:
    async def run() -> list[str]:
        async with AsyncClient(address, "shop") as bandit:
            decision = await bandit.choose({"age": 1.0})
            assert await bandit.learn(decision, 1.0)
            assert (await bandit.report())["experiment"] == "shop"
            return await bandit.learn_many([decision], [1.0])

    assert asyncio.run(run()) == ["duplicate"]


def test_collected_rewards_are_sent_at_the_end(address: str) -> None:
    with Client(address, "shop", buffer_seconds=600.0) as bandit:
        decision = bandit.choose({"age": 1.0})
        assert bandit.learn(decision, 4.0) is True
    with Client(address, "shop") as bandit:
        assert bandit.learn(decision, 4.0) is False


class Shaky:
    """A server that refuses the first requests, and remembers the keys of all."""

    def __init__(self, refused: int) -> None:
        self.keys: list[str | None] = []
        shaky = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                shaky.keys.append(self.headers["idempotency-key"])
                if len(shaky.keys) == 1:
                    self.close_connection = True  # no answer at all
                    return
                good = len(shaky.keys) > refused
                body = b'{"id":"1","arm":"a","propensity":1,"probabilities":{"a":1},"snapshot":0,"stream":"bandit"}'
                self.send_response(201 if good else 503)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.mark.parametrize("waiting", [False, True])
def test_a_call_is_tried_again_under_one_key(monkeypatch: pytest.MonkeyPatch, waiting: bool) -> None:
    monkeypatch.setattr(clients, "FIRST_WAIT", 0.001)

    async def choose(address: str) -> Any:
        async with AsyncClient(address, "shop") as bandit:
            return await bandit.choose()

    def ask(address: str) -> Any:
        if waiting:
            return asyncio.run(choose(address))
        with Client(address, "shop") as bandit:
            return bandit.choose()

    shaky = Shaky(refused=3)
    assert ask(shaky.address).arm == "a"
    assert len(shaky.keys) == 4
    assert len(set(shaky.keys)) == 1
    assert None not in shaky.keys
    shaky.close()
    dead = Shaky(refused=100)
    with pytest.raises(ServiceUnavailable, match=r"must answer, got .* after 6 tries"):
        ask(dead.address)
    assert len(dead.keys) == clients.TRIES
    dead.close()
