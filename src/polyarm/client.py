"""Clients of the decision service, with the calls of `Bandit`.

`Client` blocks, `AsyncClient` awaits.  Every decision carries an idempotency key, so that a call which is tried again
after a broken connection gets the decision that was made the first time.  Rewards may be collected and sent together;
`close`, or the end of the program, sends what is left.
"""

import asyncio
import atexit
import random
import threading
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from polyarm.errors import Conflict, InvalidArgument, PolyarmError, UnknownDecision, require_extra

TRIES = 6
FIRST_WAIT = 0.05  # seconds before the second try; doubled each time
AT_ONCE = 1000  # rewards that one request may carry
AGAIN = (429, 502, 503, 504)
Context = Mapping[str, float | bool | str | None]


class ServiceUnavailable(PolyarmError, ConnectionError):
    """The service did not answer, however often it was asked."""


class ServiceRefused(InvalidArgument):
    """The service refused a request; the message is the service's."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision of the service."""

    id: str
    arm: str
    propensity: float
    probabilities: Mapping[str, float]
    snapshot: int
    stream: str


def _wait(attempt: int, answer: Any) -> float:
    asked = answer.headers.get("retry-after", "") if answer is not None else ""
    spread = random.uniform(0.5, 1.0)  # clients must not come back all at once
    return float(max(float(asked) if asked.isdigit() else 0.0, FIRST_WAIT * 2**attempt)) * spread


def _checked(answer: Any) -> Any:
    body = answer.json() if answer.headers.get("content-type", "").startswith("application/json") else {}
    if answer.status_code < 400 or "rewards" in body:
        return body
    raise ServiceRefused(f"{body.get('error', f'HTTP {answer.status_code}')}{_at(body)}")


def _at(body: Any) -> str:
    return f" (at {body['field']})" if body.get("field") else ""


def _headers(key: str | None) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


def _decision_body(context: Context | None, eligible: Iterable[str] | None, unit: str | None) -> dict[str, Any]:
    body: dict[str, Any] = {"context": dict(context or {})}
    if eligible is not None:
        body["eligible"] = list(eligible)
    if unit is not None:
        body["unit"] = unit
    return body


def _decisions(bodies: Sequence[Any]) -> list[Decision]:
    return [Decision(**body) for body in bodies]


def _name(decision: Any) -> str:
    return str(getattr(decision, "id", decision))


def _learnt(answer: Mapping[str, Any]) -> bool:
    """What `Bandit.learn` would say: True if taken, False if known, an error otherwise."""
    verdict, decision = answer["verdict"], answer["decision"]
    if verdict == "conflict":
        raise Conflict(f"reward of decision {decision!r} must be given once, got another")
    if verdict in ("unknown", "late"):
        raise UnknownDecision(f"decision {decision!r} must be open, got one that is {verdict}")
    return bool(verdict in ("accepted", "parked"))


@dataclass(slots=True)
class _Call:
    """One request with its tries: what to send, whether the answer will do, and how long to wait if not."""

    method: str
    path: str
    body: Any
    key: str | None = None
    tries: int = 0
    last: Any = None  # the answer or the error of the last try

    def arguments(self) -> dict[str, Any]:
        """What the next try sends: the same key each time, so that a decision is made once."""
        headers = {"idempotency-key": self.key} if self.key else {}
        return {"method": self.method, "url": self.path, "json": self.body, "headers": headers}

    def failed(self, error: Exception) -> float:
        """Seconds until the next try after a broken connection."""
        self.last = error
        return self._wait(None)

    def refused(self, answer: Any) -> float | None:
        """Seconds until the next try after an answer that asks for one; None for any other."""
        self.last = answer
        return self._wait(answer) if answer.status_code in AGAIN else None

    def _wait(self, answer: Any) -> float:
        self.tries += 1
        if self.tries == TRIES:
            raise ServiceUnavailable(f"the service must answer, got {self.last} after {TRIES} tries")
        return _wait(self.tries - 1, answer)


class Client:
    """The service as a bandit: choose, learn, and the report."""

    def __init__(
        self,
        address: str,
        experiment: str,
        key: str | None = None,
        *,
        timeout: float = 5.0,
        buffer_seconds: float = 0.0,
    ) -> None:
        httpx = require_extra("httpx", "client")
        self.experiment = experiment
        self._errors = httpx.TransportError
        self._http = httpx.Client(base_url=address, headers=_headers(key), timeout=timeout)
        self._buffer: list[dict[str, Any]] = []
        self._buffer_seconds = buffer_seconds
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._flusher: threading.Thread | None = None
        if buffer_seconds > 0:
            self._flusher = threading.Thread(target=self._flush_now_and_then, daemon=True)
            self._flusher.start()
        atexit.register(self.close)

    def choose(
        self, context: Context | None = None, *, eligible: Iterable[str] | None = None, unit: str | None = None
    ) -> Decision:
        """Decide in this context."""
        body = _decision_body(context, eligible, unit)
        path = f"/v1/experiments/{self.experiment}/decisions"
        return _decisions([self._send("POST", path, body, str(uuid.uuid4()))])[0]

    def choose_many(self, contexts: Iterable[Context]) -> list[Decision]:
        """Decide in many contexts on one snapshot."""
        body = {"decisions": [_decision_body(context, None, None) for context in contexts]}
        path = f"/v1/experiments/{self.experiment}/decisions/batch"
        return _decisions(self._send("POST", path, body, str(uuid.uuid4()))["decisions"])

    def learn(self, decision: Any, reward: float) -> bool:
        """Report the reward of a decision; True if it was taken, False if it was known.

        With `buffer_seconds` the reward is sent a little later together with others, and the answer is True.
        """
        event = {"decision": _name(decision), "value": float(reward)}
        if self._buffer_seconds > 0:
            with self._lock:
                self._buffer.append(event)
            return True
        return _learnt(self._send("POST", "/v1/rewards", event)["rewards"][0])

    def learn_many(self, decisions: Iterable[Any], rewards: Iterable[float]) -> list[str]:
        """Report many rewards; the verdict on each."""
        events = [{"decision": _name(d), "value": float(y)} for d, y in zip(decisions, rewards, strict=True)]
        verdicts: list[str] = []
        for start in range(0, len(events), AT_ONCE):
            answer = self._send("POST", "/v1/rewards", events[start : start + AT_ONCE])
            verdicts += [reward["verdict"] for reward in answer["rewards"]]
        return verdicts

    def report(self) -> dict[str, Any]:
        """The experiment in numbers."""
        report: dict[str, Any] = self._send("GET", f"/v1/experiments/{self.experiment}/report", None)
        return report

    def flush(self) -> None:
        """Send the rewards that were collected; what cannot be sent stays."""
        with self._lock:
            while self._buffer:
                self._send("POST", "/v1/rewards", self._buffer[:AT_ONCE])
                del self._buffer[:AT_ONCE]

    def close(self) -> None:
        """Send what is left and end."""
        if self._closed.is_set():
            return
        self._closed.set()
        atexit.unregister(self.close)
        try:
            self.flush()
        finally:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _flush_now_and_then(self) -> None:
        while not self._closed.wait(self._buffer_seconds):
            try:
                self.flush()
            except PolyarmError:  # they stay in the buffer, and the next round tries again
                continue

    def _send(self, method: str, path: str, body: Any, key: str | None = None) -> Any:
        call = _Call(method, path, body, key)
        while True:
            try:
                answer = self._http.request(**call.arguments())
                wait = call.refused(answer)
            except self._errors as error:
                wait = call.failed(error)
            if wait is None:
                return _checked(answer)
            time.sleep(wait)


class AsyncClient:
    """As `Client`, for code that awaits; it collects no rewards."""

    def __init__(self, address: str, experiment: str, key: str | None = None, *, timeout: float = 5.0) -> None:
        httpx = require_extra("httpx", "client")
        self.experiment = experiment
        self._errors = httpx.TransportError
        self._http = httpx.AsyncClient(base_url=address, headers=_headers(key), timeout=timeout)

    async def choose(
        self, context: Context | None = None, *, eligible: Iterable[str] | None = None, unit: str | None = None
    ) -> Decision:
        """Decide in this context."""
        body = _decision_body(context, eligible, unit)
        path = f"/v1/experiments/{self.experiment}/decisions"
        return _decisions([await self._send("POST", path, body, str(uuid.uuid4()))])[0]

    async def learn(self, decision: Any, reward: float) -> bool:
        """Report the reward of a decision; True if it was taken, False if it was known."""
        event = {"decision": _name(decision), "value": float(reward)}
        return _learnt((await self._send("POST", "/v1/rewards", event))["rewards"][0])

    async def learn_many(self, decisions: Iterable[Any], rewards: Iterable[float]) -> list[str]:
        """Report many rewards; the verdict on each."""
        events = [{"decision": _name(d), "value": float(y)} for d, y in zip(decisions, rewards, strict=True)]
        verdicts: list[str] = []
        for start in range(0, len(events), AT_ONCE):
            answer = await self._send("POST", "/v1/rewards", events[start : start + AT_ONCE])
            verdicts += [reward["verdict"] for reward in answer["rewards"]]
        return verdicts

    async def report(self) -> dict[str, Any]:
        """The experiment in numbers."""
        report: dict[str, Any] = await self._send("GET", f"/v1/experiments/{self.experiment}/report", None)
        return report

    async def close(self) -> None:
        """End."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _send(self, method: str, path: str, body: Any, key: str | None = None) -> Any:
        call = _Call(method, path, body, key)
        while True:
            try:
                answer = await self._http.request(**call.arguments())
                wait = call.refused(answer)
            except self._errors as error:
                wait = call.failed(error)
            if wait is None:
                return _checked(answer)
            await asyncio.sleep(wait)
