"""How many durable decisions and rewards a second the service takes, beside the same server without durability.

    python -m benchmarks.service_load [--database sqlite postgresql] [--seconds 8] [--clients 64] [--json FILE]

One run starts a server of each kind in turn on an empty database and lets the same clients loose on it:

durable   as `polyarm serve` runs: answered after the commit has reached the disk
cached    the same, but a commit does not wait for the disk
silent    nothing is written: what HTTP, the model and the answer cost by themselves

`flood` sends the next request when the last is answered; `paced` sends at a fixed rate whatever the answers do, and
counts the time from when a request was due, so that a stall is charged to every request that it held up.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import uvloop
from tests.service.postgres import Postgres, find_programs
from tests.service.server import free_port

KINDS = ("durable", "cached", "silent")
NAME = "load"
SETTINGS = {
    "name": NAME,
    "arms": ["basic", "bundle", "premium"],
    "context": [{"name": "basket"}, {"name": "returning", "kind": "flag"}],
    "min_propensity": 0.01,
    "seed": 7,
}
IN_A_BATCH = 100
LEARNT = 300  # outcomes before anything is timed
WARM = 1.0  # seconds before counting starts


class Rate(NamedTuple):
    """What one phase gave: things done a second, and the time of a request in milliseconds."""

    per_second: float
    p50: float
    p99: float
    worst: float
    refused: int
    server_cpu: float  # cores
    clients_cpu: float


def request(path: str, body: Any, key: str = "") -> bytes:
    content = json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "host: x", "content-type: application/json", f"content-length: {len(content)}"]
    if key:
        lines.append(f"idempotency-key: {key}")
    return "\r\n".join([*lines, "", ""]).encode() + content


class Connection(asyncio.Protocol):
    """One client: sends a request when told to, and hands the answer over.  Far cheaper than any library."""

    def __init__(self, answered: Callable[["Connection", int, bytes], None]) -> None:
        self.answered = answered
        self.transport: Any = None
        self.buffer = b""
        self.due = 0.0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def send(self, content: bytes, due: float) -> None:
        self.due = due
        self.transport.write(content)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.buffer[:end].lower()
        length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        if len(self.buffer) < end + 4 + length:
            return
        body, self.buffer = self.buffer[end + 4 :], b""
        self.answered(self, int(head[9:12]), body)


class Clients:
    """Many connections that send what `make` gives them."""

    def __init__(self, port: int, make: Callable[[], bytes | None], keep: Callable[[bytes], None]) -> None:
        self.port, self.make, self.keep = port, make, keep
        self.times: list[float] = []
        self.refused = 0
        self.counting = self.running = False
        self.idle: list[Connection] = []
        self.waiting: list[float] = []

    async def _connect(self, n: int) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(n):
            _, made = await loop.create_connection(lambda: Connection(self._answered), "127.0.0.1", self.port)
            self.idle.append(made)

    def _answered(self, connection: Connection, status: int, body: bytes) -> None:
        if self.counting:
            self.times.append(time.perf_counter() - connection.due)
        if status >= 400:
            self.refused += 1
        else:
            self.keep(body)
        self.next(connection)

    def next(self, connection: Connection) -> None:
        raise NotImplementedError

    async def run(self, n: int, seconds: float, pid: int) -> Rate:
        await self._connect(n)
        self.running = True
        self.begin()
        await asyncio.sleep(WARM)
        self.counting = True
        before = (time.perf_counter(), cpu(pid), time.process_time())
        while self.running and time.perf_counter() - before[0] < seconds:
            await asyncio.sleep(0.05)
        self.counting = self.running = False
        wall, server, clients = time.perf_counter() - before[0], cpu(pid) - before[1], time.process_time() - before[2]
        await asyncio.sleep(0.3)
        times = sorted(self.times) or [math.nan]
        return Rate(
            len(times) / wall,
            1000 * statistics.median(times),
            1000 * times[int(0.99 * len(times))],
            1000 * times[-1],
            self.refused,
            server / wall,
            clients / wall,
        )

    def begin(self) -> None:
        raise NotImplementedError


class Flood(Clients):
    """Each client asks again at once."""

    def begin(self) -> None:
        for connection in self.idle:
            self.next(connection)

    def next(self, connection: Connection) -> None:
        content = self.make() if self.running else None
        if content is None:
            self.running = False
        else:
            connection.send(content, time.perf_counter())


class Paced(Clients):
    """Requests come at random times, so many a second, and wait for a free client if there is none."""

    def __init__(self, rate: float, *rest: Any) -> None:
        super().__init__(*rest)
        self.rate = rate

    def begin(self) -> None:
        self._task = asyncio.create_task(self._arrive())

    async def _arrive(self) -> None:
        due = time.perf_counter()
        while self.running:
            due += random.expovariate(self.rate)
            if due > time.perf_counter():
                await asyncio.sleep(due - time.perf_counter())
            self.waiting.append(due)
            self._match()

    def next(self, connection: Connection) -> None:
        self.idle.append(connection)
        self._match()

    def _match(self) -> None:
        while self.waiting and self.idle and self.running:
            content = self.make()
            if content is None:
                self.running = False
                return
            self.idle.pop().send(content, self.waiting.pop(0))


def cpu(pid: int) -> float:
    """Processor seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """Megabytes that a process holds."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def wait_until_ready(http: httpx.Client, pause: float) -> None:
    """Ask a server again after every pause until it says that it is ready."""
    while True:
        with contextlib.suppress(httpx.TransportError):
            if http.get("/readyz").status_code == 200:
                return
        time.sleep(pause)


@contextlib.contextmanager
def server(kind: str, database: str, window: float) -> Iterator[tuple[int, int]]:
    """A server of one kind with the experiment on it: its port and process."""
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.service_kinds", kind, "--database", database, "--port", str(port)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([*command, "--quiet"], env=environment)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60.0) as http:
            wait_until_ready(http, 0.1)
            _begin(http, window)
        yield port, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _begin(http: httpx.Client, window: float) -> None:
    """Add the experiment, and let the model learn a little: an empty one would be quicker than any in use."""
    http.post("/v1/experiments", json=SETTINGS | {"window": 1.0}).raise_for_status()
    batch = {"decisions": [context() for _ in range(LEARNT)]}
    made = http.post(f"/v1/experiments/{NAME}/decisions/batch", json=batch).raise_for_status().json()["decisions"]
    events = [{"decision": decision["id"], "value": random.lognormvariate(2.0, 0.6)} for decision in made]
    http.post("/v1/rewards", json=events).raise_for_status()
    http.patch(f"/v1/experiments/{NAME}", json={"window": window}).raise_for_status()
    time.sleep(5.0)


def more(port: int, n: int) -> list[str]:
    """Ids of decisions that wait for a reward."""
    ids: list[str] = []
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60.0) as http:
        while len(ids) < n:
            batch = {"decisions": [context() for _ in range(1000)]}
            made = http.post(f"/v1/experiments/{NAME}/decisions/batch", json=batch).raise_for_status().json()
            ids += [decision["id"] for decision in made["decisions"]]
    return ids


def context() -> dict[str, Any]:
    return {"context": {"basket": random.gammavariate(2.0, 0.6), "returning": random.random() < 0.4}}


def measure(kind: str, database: str, options: argparse.Namespace) -> dict[str, Any]:
    """Every phase on one server."""
    ids: list[str] = []
    path = f"/v1/experiments/{NAME}/decisions"
    numbers = itertools.count()

    def decide() -> bytes:
        return request(path, context(), f"{kind}-{next(numbers)}")

    def keep(body: bytes) -> None:
        ids.append(body[body.index(b'"id":"') + 6 :][:36].decode())

    def reward() -> bytes | None:
        return request("/v1/rewards", {"decision": ids.pop(), "value": random.gauss(5.0, 1.0)}) if ids else None

    def rewards() -> bytes | None:
        if len(ids) < IN_A_BATCH:
            return None
        events = [{"decision": ids.pop(), "value": random.gauss(5.0, 1.0)} for _ in range(IN_A_BATCH)]
        return request("/v1/rewards", events)

    def both() -> bytes:
        event = reward() if random.random() < 0.5 else None
        return decide() if event is None else event

    def keep_decisions(body: bytes) -> None:
        if body.startswith(b'{"id"') or b'"arm"' in body:
            keep(body)

    def drop(_: bytes) -> None:
        pass

    found: dict[str, Any] = {}

    def phase(name: str, clients: Clients, n: int = options.clients, each: int = 1) -> None:
        rate = asyncio.run(clients.run(n, options.seconds, pid))
        found[name] = rate._replace(per_second=rate.per_second * each)._asdict()
        print(
            f"{kind:8} {name:22} " + " ".join(f"{key} {value:8.2f}" for key, value in found[name].items()), flush=True
        )

    with server(kind, database, options.window) as (port, pid):
        phase("decisions, flood", Flood(port, decide, keep))
        if kind == "durable":
            phase("decisions, paced 1000", Paced(1000.0, port, decide, keep))
            phase("decisions, paced 1500", Paced(1500.0, port, decide, keep))
            phase("decisions, paced 2000", Paced(2000.0, port, decide, keep))
        if kind != "silent":
            ids += more(port, int(6_000 * (options.seconds + WARM)) - len(ids))
            phase("rewards, flood", Flood(port, reward, drop))
            ids += more(port, int(25_000 * (options.seconds + WARM)) - len(ids))
            phase("rewards in batches", Flood(port, rewards, drop), 4, IN_A_BATCH)
            phase("both, flood", Flood(port, both, keep_decisions))
            phase("both, paced 1500", Paced(1500.0, port, both, keep_decisions))
        found["memory_mb"] = memory(pid)
        print(f"{kind:8} memory {found['memory_mb']:.0f} MB", flush=True)
    return found


@contextlib.contextmanager
def places(kind: str) -> Iterator[Callable[[str], str]]:
    """Gives addresses of empty databases of a kind."""
    with tempfile.TemporaryDirectory() as folder:
        if kind == "sqlite":
            yield lambda name: f"{folder}/{name}.db"
            return
        programs = find_programs()
        if programs is None:
            raise SystemExit("PostgreSQL is not installed: run scripts/install-test-services")
        postgres = Postgres(programs)
        try:
            yield postgres.create
        finally:
            postgres.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", nargs="+", choices=["sqlite", "postgresql"], default=["sqlite", "postgresql"])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--seconds", type=float, default=8.0, help="of every phase (default 8)")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--window", type=float, default=86_400.0, help="seconds; below a minute the learner learns too")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    random.seed(0)
    found: dict[str, Any] = {}
    for database in options.database:
        print(database)
        with places(database) as address:
            found[database] = {kind: measure(kind, address(kind), options) for kind in options.kinds}
        decisions = {kind: phases["decisions, flood"]["per_second"] for kind, phases in found[database].items()}
        for kind in decisions.keys() - {"durable"}:
            if "durable" in decisions:
                print(f"decisions, durable / {kind}: {decisions['durable'] / decisions[kind]:.2f}")
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
