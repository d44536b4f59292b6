"""Pages of the dashboard, and the fragments that its script asks for when something changed."""

import asyncio
import contextlib
import hashlib
import hmac
import secrets
from collections.abc import AsyncIterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, select_autoescape
from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from polyarm.errors import PolyarmError
from polyarm.service import catalog, reports
from polyarm.service.clock import SECOND
from polyarm.service.dashboard import charts, figures
from polyarm.service.door import HEADERS, Refused, read_form, refusal
from polyarm.service.keys import Caller
from polyarm.service.offpolicy import always_each_arm
from polyarm.service.replica import Live

if TYPE_CHECKING:
    from polyarm.service.app import Service

PING = 15.0  # seconds between signs of life on an event stream
LOOK = 2.0  # seconds between looks at counts, which change without a new snapshot
COOKIE = "polyarm_key"
SINGLE_VALUES = "Probability of single values in this context, with 95 % intervals"
DENSITY = "Density of the reward in this context"
NOTHING = "\N{EN DASH}"


class Dashboard:
    """Handlers of the pages."""

    def __init__(self, service: "Service") -> None:
        self.service = service
        self.templates = Environment(
            loader=PackageLoader("polyarm.service.dashboard"), autoescape=select_autoescape(default=True)
        )
        self.templates.globals.update(version=version("polyarm"))
        self.templates.filters.update(number=_number, percent=_percent, ago=_ago, moment=_moment)
        self._secret = secrets.token_bytes(32)

    def routes(self) -> list[BaseRoute]:
        """Paths of the pages."""
        experiment = "/experiments/{experiment}"
        return [
            Route("/", self._page(self.home)),
            Route("/login", self.login, methods=["GET", "POST"]),
            Route("/logout", self.logout, methods=["POST"]),
            Route("/audit", self._page(self.audit)),
            Route(experiment, self._page(self.experiment)),
            Route(experiment + "/live", self._page(self.live)),
            Route(experiment + "/model", self._page(self.model)),
            Route(experiment + "/events", self.events),
            Route(experiment + "/action", self._page(self.act, "admin"), methods=["POST"]),
            Mount("/static", StaticFiles(directory=Path(__file__).parent / "static")),
        ]

    def _page(self, handler: Any, scope: str = "read") -> Any:
        async def page(request: Request) -> Response:
            try:
                caller = await self.service.door.admit(request, scope)
                response: Response = await handler(request, caller)
                return response
            except Refused as error:
                if error.status == 401 and request.method == "GET":
                    return RedirectResponse("/login", 303, HEADERS)
                return self._render("failed.html", error.status, error=str(error))
            except PolyarmError as error:
                answer = refusal(error)
                return self._render("failed.html", answer.status_code if answer else 500, error=str(error))

        return page

    def _render(self, name: str, status: int = 200, **values: Any) -> Response:
        return Response(self.templates.get_template(name).render(**values), status, HEADERS, "text/html")

    def _token(self, caller: Caller) -> str:
        return hmac.new(self._secret, caller.name.encode(), hashlib.sha256).hexdigest()

    async def home(self, _request: Request, caller: Caller) -> Response:
        """All experiments."""

        def read(connection: Connection) -> list[Any]:
            names = catalog.experiment_names(connection)
            return [reports.make_report(connection, catalog.get_experiment(connection, name)) for name in names]

        return self._render("home.html", reports=await self.service.read(read), caller=caller)

    async def experiment(self, request: Request, caller: Caller) -> Response:
        """One experiment."""
        live = self.service.replica.find(request.path_params["experiment"])
        values = await self._live_values(live)
        values |= await self._model_values(live, request)
        snapshots = await self.service.read(lambda c: reports.snapshot_list(c, live.experiment.name, 8))
        return self._render(
            "experiment.html", caller=caller, token=self._token(caller), snapshots=snapshots, live=live, **values
        )

    async def live(self, request: Request, caller: Caller) -> Response:
        """The part of the page that changes with traffic."""
        live = self.service.replica.find(request.path_params["experiment"])
        values = await self._live_values(live)
        return self._render("live.html", live=live, token=self._token(caller), caller=caller, **values)

    async def model(self, request: Request, _caller: Caller) -> Response:
        """The part of the page that changes with the context chosen."""
        live = self.service.replica.find(request.path_params["experiment"])
        return self._render("model.html", **await self._model_values(live, request))

    async def _live_values(self, live: Live) -> dict[str, Any]:
        name = live.experiment.name

        def read(connection: Connection) -> tuple[Any, Any, Any, Any]:
            experiment = catalog.get_experiment(connection, name)
            return (
                reports.make_report(connection, experiment),
                reports.history(connection, name),
                always_each_arm(connection, experiment),
                reports.recent_contexts(connection, name, figures.N_CONTEXTS),
            )

        report, history, values, contexts = await self.service.read(read)
        best = await asyncio.to_thread(figures.probability_best, live.model, contexts)
        known = [value for value in values if value.interval is not None]
        return {
            "report": report,
            "best": best,
            "allocation": _allocation(history, list(live.experiment.arms)),
            "rewards": _rewards(history, list(live.experiment.arms)),
            "offpolicy": charts.forest(
                [value.arm for value in known],
                [value.mean for value in known],
                [value.interval[0] for value in known],
                [value.interval[1] for value in known],
                "Estimated mean reward of always playing one arm",
                [list(live.experiment.arms).index(value.arm) for value in known],
            ),
            "offpolicy_rows": values,
        }

    async def _model_values(self, live: Live, request: Request) -> dict[str, Any]:
        settings = live.experiment.settings
        contexts = await self.service.read(lambda c: reports.recent_contexts(c, settings.name))
        numbers = [column for column in settings.context if column.kind in ("number", "cyclic")]
        spans = {column.name: figures.span(column, contexts) for column in numbers}
        start = figures.middle(settings.context, spans)
        context = figures.context_from(settings, request.query_params, start)

        def draw() -> dict[str, Any]:
            laws = figures.next_rewards(live.model, context, live.experiment.active)
            values, bars = figures.single_values(live.model, context, laws)
            curves = figures.densities(live.model, laws)
            return {
                "beliefs_here": figures.beliefs(live.model, context) or {},
                "single_values": charts.bars([f"{value:g}" for value in values], bars, SINGLE_VALUES) if bars else "",
                "densities": charts.lines(curves, DENSITY, least=0.0) if curves or not bars else "",
                "effects": [
                    (
                        column.name,
                        charts.lines(
                            figures.effects(live.model, context, column, spans[column.name]),
                            f"Mean reward by {column.name}",
                        ),
                    )
                    for column in numbers
                ],
            }

        columns = [(column, spans.get(column.name)) for column in settings.context]
        return {"columns": columns, "context": context, **await asyncio.to_thread(draw)}

    async def events(self, request: Request) -> Response:
        """A stream that says `changed` whenever counts or the snapshot did."""
        try:
            await self.service.door.admit(request, "read")
            self.service.replica.find(request.path_params["experiment"])
        except PolyarmError as error:
            answer = refusal(error)
            return answer if answer is not None else Response(status_code=500)
        return StreamingResponse(self._changes(request), headers=HEADERS, media_type="text/event-stream")

    async def _changes(self, request: Request) -> AsyncIterator[str]:
        replica, name = self.service.replica, request.path_params["experiment"]
        changed = asyncio.Event()
        replica.listeners.add(changed)
        seen: tuple[Any, ...] = ()
        quiet = 0.0
        try:
            while not await request.is_disconnected():
                now = await self.service.read(lambda c: _mark(c, name))
                if now != seen:
                    seen, quiet = now, 0.0
                    yield "event: changed\ndata: {}\n\n"
                elif quiet >= PING:
                    quiet = 0.0
                    yield ": still here\n\n"
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(changed.wait(), LOOK)
                changed.clear()
                quiet += LOOK
        finally:
            replica.listeners.discard(changed)

    async def audit(self, _request: Request, caller: Caller) -> Response:
        """Who changed what."""
        entries = await self.service.read(reports.audit_entries)
        return self._render("audit.html", entries=entries, caller=caller)

    async def act(self, request: Request, caller: Caller) -> Response:
        """A button was pressed: pause, resume, or retire an arm."""
        form = await read_form(request)
        if not hmac.compare_digest(form.get("token", ""), self._token(caller)):
            raise Refused(403, "the form must be one of this session, got another; load the page again")
        name, action, arm = request.path_params["experiment"], form.get("action", ""), form.get("arm", "")
        if action in ("pause", "resume"):
            status = "paused" if action == "pause" else "active"
            await self.service.change(lambda c: catalog.set_status(c, name, status, caller.name))
        elif action in ("retire-arm", "pause-arm", "resume-arm"):
            status = {"retire-arm": "retired", "pause-arm": "paused", "resume-arm": "active"}[action]
            await self.service.change(lambda c: catalog.set_arm_status(c, name, arm, status, caller.name))
        else:
            raise Refused(422, f"action must be one that the page offers, got {action!r}", "action")
        return RedirectResponse(f"/experiments/{name}", 303, HEADERS)

    async def login(self, request: Request) -> Response:
        """Take a key into a cookie."""
        if request.method == "GET":
            return self._render("login.html", error=None)
        try:
            key = (await read_form(request)).get("key", "").strip()
        except Refused as error:
            return self._render("failed.html", error.status, error=str(error))
        if not key or await self.service.door.caller(key) is None:
            return self._render("login.html", 401, error="This key is not in use.")
        response = RedirectResponse("/", 303, HEADERS)
        secure = request.url.scheme == "https"
        response.set_cookie(COOKIE, key, httponly=True, samesite="strict", secure=secure, max_age=12 * 3600)
        return response

    async def logout(self, _request: Request) -> Response:
        """Forget the key."""
        response = RedirectResponse("/login", 303, HEADERS)
        response.delete_cookie(COOKIE)
        return response


def dashboard_routes(service: "Service") -> list[BaseRoute]:
    """Paths of the dashboard of a service."""
    return Dashboard(service).routes()


def _mark(connection: Connection, name: str) -> tuple[Any, ...]:
    """Something that changes whenever the page would."""
    sums = reports.arm_sums(connection, name)
    return tuple(sorted((key, row.plays, row.rewards) for key, row in sums.items()))


def _allocation(history: list[reports.Minute], arms: list[str]) -> str:
    times = sorted({minute.time for minute in history})
    plays = {(minute.time, minute.arm): float(minute.plays) for minute in history}
    counts = [[plays.get((time, arm), 0.0) for time in times] for arm in arms]
    return charts.stacked(arms, [float(time) for time in times], counts, "Share of decisions by arm")


def _rewards(history: list[reports.Minute], arms: list[str]) -> str:
    curves = []
    times = sorted({minute.time for minute in history})
    by_place = {(minute.arm, minute.time): minute for minute in history}
    for arm in arms:
        n, total, squares = 0, 0.0, 0.0
        points: list[tuple[float, float, float, float]] = []
        for time in times:
            minute = by_place.get((arm, time))
            if minute is None or not minute.rewards:
                continue
            n, total, squares = n + minute.rewards, total + minute.total, squares + minute.squares
            level, bounds = reports.interval(n, total, squares)
            if level is not None and bounds is not None:
                points.append((float(time), level, *bounds))
        at, mean, low, high = zip(*points, strict=True) if points else ((), (), (), ())
        curves.append(charts.Curve(arm, at, mean, low, high))
    long = bool(times) and times[-1] - times[0] > 2 * 86_400
    return charts.lines(curves, "Mean reward so far, with 95 % interval", charts.day if long else charts.moment)


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _percent(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.1f} %"


def _ago(seconds: float) -> str:
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return f"{seconds:.0f} s ago"


def _moment(micros: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(micros / SECOND, UTC).strftime("%Y-%m-%d %H:%M:%S")
