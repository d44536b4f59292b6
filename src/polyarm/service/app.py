"""The HTTP interface: parses, calls one function, answers."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from sqlalchemy import Connection, text
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from polyarm.errors import UnknownName, require
from polyarm.service import catalog, openapi, reports
from polyarm.service.clock import SECOND, now
from polyarm.service.database import Database
from polyarm.service.door import BATCH_LIMIT, HEADERS, Door, Refused, decode, guarded, read_body, refusal, reply
from polyarm.service.explain import explain
from polyarm.service.keys import Caller
from polyarm.service.learner import Learner
from polyarm.service.messages import (
    ArmRequest,
    BatchAnswer,
    BatchRequest,
    DecisionAnswer,
    DecisionRequest,
    ErrorAnswer,
    ExperimentPatch,
    ExperimentSettings,
    RewardRequest,
    Rewards,
    RewardsAnswer,
    RollbackRequest,
    StatusAnswer,
)
from polyarm.service.metrics import Metrics
from polyarm.service.model import Model
from polyarm.service.news import announce
from polyarm.service.replica import Replica
from polyarm.service.snapshots import add_snapshot
from polyarm.service.writer import Writer

T = TypeVar("T")
STALE = 10 * SECOND  # a replica that has not seen the database for so long is not ready
REWARD_STATUS = {"conflict": 409, "unknown": 404, "parked": 202}
_decision: msgspec.json.Decoder[DecisionRequest] = msgspec.json.Decoder(DecisionRequest)
_batch: msgspec.json.Decoder[BatchRequest] = msgspec.json.Decoder(BatchRequest)
_rewards: msgspec.json.Decoder[RewardRequest | list[RewardRequest]] = msgspec.json.Decoder(Rewards)
_settings: msgspec.json.Decoder[ExperimentSettings] = msgspec.json.Decoder(ExperimentSettings)
_patch: msgspec.json.Decoder[ExperimentPatch] = msgspec.json.Decoder(ExperimentPatch)
_arm: msgspec.json.Decoder[ArmRequest] = msgspec.json.Decoder(ArmRequest)
_rollback: msgspec.json.Decoder[RollbackRequest] = msgspec.json.Decoder(RollbackRequest)
_KEY = msgspec.json.Decoder(str)


@dataclass(eq=False)
class Service:
    """Everything behind the interface, and its handlers."""

    database: Database
    writer: Writer
    learner: Learner
    replica: Replica
    door: Door
    metrics: Metrics

    @classmethod
    def over(cls, database: Database, *, rate_limit: float | None = None, open_to_all: bool = False) -> "Service":
        """The service on a database."""
        writer = Writer(database)
        learner = Learner(database, writer)
        replica = Replica(database, writer, learner)
        return cls(database, writer, learner, replica, Door(database, rate_limit, open_to_all), Metrics(replica))

    @contextlib.asynccontextmanager
    async def running(self, _app: Any = None) -> AsyncIterator[None]:
        """Start everything; at the end write what waits and give the lease back."""
        self.writer.start()
        await self.replica.start()
        self.learner.start()
        try:
            yield
        finally:
            await self.replica.stop()
            await asyncio.to_thread(self.learner.stop)
            await asyncio.to_thread(self.writer.stop)
            self.database.close()

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run a query in a thread of its own."""

        def run() -> T:
            with self.database.reading.connect() as connection:
                return work(connection)

        return await asyncio.to_thread(run)

    async def change(self, work: Callable[[Connection], T]) -> T:
        """Run a change in a transaction and take it over at once."""

        def announced(connection: Connection) -> T:
            result = work(connection)
            announce(connection)
            return result

        result = await self.writer.run(announced)
        await self.replica.refresh()
        self.learner.wake()
        return result

    async def list_experiments(self, request: Request) -> Response:
        """GET /v1/experiments."""
        await self.door.admit(request, "read")
        return reply(await self.read(catalog.experiment_names))

    async def add_experiment(self, request: Request) -> Response:
        """POST /v1/experiments."""
        caller = await self.door.admit(request, "admin")
        settings = decode(await read_body(request), _settings)
        await self.create(settings, caller)
        return reply(settings, 201)

    async def create(self, settings: ExperimentSettings, caller: Caller) -> None:
        """Add an experiment with its first snapshot."""
        catalog.check_settings(settings)
        content = await asyncio.to_thread(_first_content, settings)

        def add(connection: Connection) -> None:
            catalog.add_experiment(connection, settings, caller.name)
            add_snapshot(connection, settings.name, 0, 0, content)

        await self.change(add)

    async def get_experiment(self, request: Request) -> Response:
        """GET /v1/experiments/NAME."""
        await self.door.admit(request, "read")
        name = request.path_params["experiment"]
        return reply((await self.read(lambda connection: catalog.get_experiment(connection, name))).settings)

    async def change_experiment(self, request: Request) -> Response:
        """PATCH /v1/experiments/NAME."""
        caller = await self.door.admit(request, "admin")
        name, patch = request.path_params["experiment"], decode(await read_body(request), _patch)
        changed = await self.change(lambda c: catalog.change_experiment(c, name, patch, caller.name))
        return reply(changed.settings)

    async def add_arm(self, request: Request) -> Response:
        """POST /v1/experiments/NAME/arms."""
        caller = await self.door.admit(request, "admin")
        name, arm = request.path_params["experiment"], decode(await read_body(request), _arm).arm
        live = self.replica.find(name)
        require(
            hasattr(live.model.learner.policy, "with_arm"),
            "policy",
            "one that takes new arms",
            live.model.settings.policy,
        )
        await self.change(lambda connection: catalog.add_arm(connection, name, arm, caller.name))
        return reply(ArmRequest(arm), 202)

    async def act_on_arm(self, request: Request) -> Response:
        """POST /v1/experiments/NAME/arms/ARM:retire, :pause or :resume."""
        caller = await self.door.admit(request, "admin")
        name = request.path_params["experiment"]
        arm, _, action = request.path_params["arm"].rpartition(":")
        status = {"retire": "retired", "pause": "paused", "resume": "active"}.get(action)
        if status is None or not arm:
            raise Refused(404, f"the action must be retire, pause or resume, got {action!r}")
        await self.change(lambda connection: catalog.set_arm_status(connection, name, arm, status, caller.name))
        return reply(ArmRequest(arm))

    async def act_on_experiment(self, request: Request) -> Response:
        """POST /v1/experiments/NAME:pause, :resume or :rollback."""
        caller = await self.door.admit(request, "admin")
        name, _, action = request.path_params["experiment"].rpartition(":")
        if action == "rollback":
            asked = decode(await read_body(request), _rollback)
            await self.change(lambda connection: catalog.ask_rollback(connection, name, asked.snapshot, caller.name))
            return reply(asked, 202)
        status = {"pause": "paused", "resume": "active"}.get(action)
        if status is None or not name:
            raise Refused(404, f"the action must be pause, resume or rollback, got {action!r}")
        await self.change(lambda connection: catalog.set_status(connection, name, status, caller.name))
        return reply(StatusAnswer(status))

    async def decide(self, request: Request) -> Response:
        """POST /v1/experiments/NAME/decisions."""
        await self.door.admit(request, "decide")
        asked = decode(await read_body(request), _decision)
        (answer,) = await self.replica.decide(request.path_params["experiment"], [asked], _idempotency_key(request))
        self._count(request, [answer])
        return reply(answer, 201)

    async def decide_many(self, request: Request) -> Response:
        """POST /v1/experiments/NAME/decisions/batch."""
        await self.door.admit(request, "decide")
        asked = decode(await read_body(request, BATCH_LIMIT), _batch)
        answers = await self.replica.decide(
            request.path_params["experiment"], asked.decisions, _idempotency_key(request)
        )
        self._count(request, answers)
        return reply(BatchAnswer(answers), 201)

    def _count(self, request: Request, answers: list[DecisionAnswer]) -> None:
        for answer in answers:
            self.metrics.decisions.labels(request.path_params["experiment"], answer.arm, answer.stream).inc()

    async def take_rewards(self, request: Request) -> Response:
        """POST /v1/rewards."""
        await self.door.admit(request, "reward")
        asked = decode(await read_body(request, BATCH_LIMIT), _rewards)
        one = isinstance(asked, RewardRequest)
        answers = await self.replica.take_rewards([asked] if isinstance(asked, RewardRequest) else asked)
        for answer in answers:
            self.metrics.rewards.labels(answer.verdict).inc()
        return reply(RewardsAnswer(answers), REWARD_STATUS.get(answers[0].verdict, 200) if one else 200)

    async def report(self, request: Request) -> Response:
        """GET /v1/experiments/NAME/report."""
        await self.door.admit(request, "read")
        name = request.path_params["experiment"]
        return reply(await self.read(lambda c: reports.make_report(c, catalog.get_experiment(c, name))))

    async def snapshots(self, request: Request) -> Response:
        """GET /v1/experiments/NAME/snapshots."""
        await self.door.admit(request, "read")
        name = request.path_params["experiment"]

        def find(connection: Connection) -> list[dict[str, Any]]:
            catalog.get_experiment(connection, name)
            return reports.snapshot_list(connection, name)

        return reply(await self.read(find))

    async def explain(self, request: Request) -> Response:
        """GET /v1/decisions/ID/explain."""
        await self.door.admit(request, "read")
        return reply(await self.read(lambda connection: explain(connection, request.path_params["decision"])))

    async def healthz(self, _request: Request) -> Response:
        """GET /healthz."""
        return reply(StatusAnswer("alive"))

    async def readyz(self, _request: Request) -> Response:
        """GET /readyz."""
        age = now() - self.replica.seen_at
        if age > STALE:
            return reply(ErrorAnswer(f"the database was last seen {age / SECOND:.0f} seconds ago"), 503)
        await self.writer.run(lambda connection: connection.execute(text("SELECT 1")).scalar_one())
        detail = {"learner": self.learner.lease is not None, "learner_failure": self.learner.failure}
        return reply(StatusAnswer("ready", detail))

    async def metrics_text(self, request: Request) -> Response:
        """GET /metrics."""
        await self.door.admit(request, "read")
        return Response(self.metrics.text(), headers=HEADERS, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def openapi_json(self, _request: Request) -> Response:
        """GET /openapi.json."""
        return reply(openapi.description(keys=not self.door.open_to_all))

    def routes(self) -> list[BaseRoute]:
        """All paths."""
        table: list[tuple[str, str, Callable[[Request], Any]]] = [
            ("POST", "/v1/experiments/{experiment}/decisions", self.decide),
            ("POST", "/v1/experiments/{experiment}/decisions/batch", self.decide_many),
            ("POST", "/v1/rewards", self.take_rewards),
            ("GET", "/v1/experiments", self.list_experiments),
            ("POST", "/v1/experiments", self.add_experiment),
            ("GET", "/v1/experiments/{experiment}/report", self.report),
            ("GET", "/v1/experiments/{experiment}/snapshots", self.snapshots),
            ("POST", "/v1/experiments/{experiment}/arms", self.add_arm),
            ("POST", "/v1/experiments/{experiment}/arms/{arm}", self.act_on_arm),
            ("GET", "/v1/decisions/{decision}/explain", self.explain),
            ("GET", "/v1/experiments/{experiment}", self.get_experiment),
            ("PATCH", "/v1/experiments/{experiment}", self.change_experiment),
            ("POST", "/v1/experiments/{experiment}", self.act_on_experiment),
            ("GET", "/healthz", self.healthz),
            ("GET", "/readyz", self.readyz),
            ("GET", "/metrics", self.metrics_text),
            ("GET", "/openapi.json", self.openapi_json),
        ]
        return [Route(path, self._timed(path, guarded(handler)), methods=[method]) for method, path, handler in table]

    def _timed(self, path: str, handler: Callable[[Request], Any]) -> Callable[[Request], Any]:
        seconds = self.metrics.seconds.labels(path)

        async def timed(request: Request) -> Response:
            start = time.perf_counter()
            response: Response = await handler(request)
            seconds.observe(time.perf_counter() - start)
            if response.status_code >= 400:
                self.metrics.refusals.labels(str(response.status_code)).inc()
            return response

        return timed


def _first_content(settings: ExperimentSettings) -> bytes:
    try:
        return Model.new(settings).to_bytes()
    except UnknownName as error:  # of a policy or objective: no missing page, but a field that breaks its rule
        raise Refused(422, str(error)) from None


def _idempotency_key(request: Request) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is not None and not (0 < len(key) <= 128 and key.isascii() and key.isprintable()):
        raise Refused(422, "Idempotency-Key must be 1 to 128 printable ASCII characters, got another")
    return key


async def _no_route(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    if status == 405 and (methods := openapi.methods_of(request.url.path)):
        headers = {"allow": ", ".join(methods)}
    return reply(
        ErrorAnswer("there is no such path" if status == 404 else f"{getattr(error, 'detail', 'error')}"),
        status,
        headers,
    )


async def _failed(_request: Request, error: Exception) -> Response:
    return refusal(error) or reply(ErrorAnswer("the service failed; the log of the process says more"), 500)


def make_app(service: Service) -> Starlette:
    """The application that a server runs."""
    from polyarm.service.dashboard.pages import dashboard_routes

    return Starlette(
        routes=[*service.routes(), *dashboard_routes(service)],
        lifespan=service.running,
        exception_handlers={HTTPException: _no_route, Exception: _failed},
    )
