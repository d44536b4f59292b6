"""A server in a process of its own, as a user runs it."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

STARTS_WITHIN = 300.0  # seconds; kernels may have to be compiled, on a machine that is busy


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    def __init__(
        self, database: str, *, port: int | None = None, program: tuple[str, ...] = (), **environment: str
    ) -> None:
        self.port = port or free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115  a pipe that nobody reads would stop the server when full
        command = [sys.executable, *(program or ("-m", "polyarm.cli", "serve"))]
        self.process = subprocess.Popen(
            [*command, "--database", database, "--port", str(self.port), "--quiet"],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), **environment},
            stderr=self.stderr,
        )
        self.http = httpx.Client(base_url=self.address, timeout=30.0)

    def __enter__(self) -> "Server":
        self.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def wait(self) -> "Server":
        end = time.monotonic() + STARTS_WITHIN
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended: {self.errors()}")
            try:
                if self.http.get("/readyz").status_code == 200:
                    return self
            except httpx.TransportError:
                pass
            time.sleep(0.05)
        told = self.errors()
        self.kill()
        raise RuntimeError(f"the server did not become ready: {told}")

    def errors(self) -> str:
        self.stderr.seek(0)
        return self.stderr.read().decode()[-2000:]

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self._ended()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self._ended()

    def _ended(self) -> int:
        code = self.process.wait(60)
        self.stderr.close()
        self.http.close()
        return code


def database_at(folder: Path) -> str:
    return str(folder / "service.db")
