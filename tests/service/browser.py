"""Chromium without a window, driven over its debugging pipe: no package is needed."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or ""
AXE = Path(__file__).parents[2] / "results" / "node" / "node_modules" / "axe-core" / "axe.min.js"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are not among the first ten descriptors, which the browser's are moved onto."""
    ends = os.pipe()
    moved = fcntl.fcntl(ends[0], fcntl.F_DUPFD, 10), fcntl.fcntl(ends[1], fcntl.F_DUPFD, 10)
    for end in ends:
        os.close(end)
    for end in moved:
        os.set_inheritable(end, False)
    return moved


class Browser:
    """One tab."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="polyarm-chromium-")
        theirs_in, self._out = _pipe()
        theirs_out, self._in = reversed(_pipe())
        flags = " ".join(FLAGS)
        self.process = subprocess.Popen(
            [
                "bash",
                "-c",
                f'exec "$0" {flags} --user-data-dir="$1" 3<&{theirs_in} 4>&{theirs_out}',
                CHROMIUM,
                self.folder,
            ],
            pass_fds=(theirs_in, theirs_out),
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(30)
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method: str, **parameters: Any) -> Any:
        """Send a command and wait for its answer; complaints of the page are collected on the way."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._hear(answer)

    def _next(self) -> Any:
        while b"\0" not in self._buffer:
            data = os.read(self._in, 1 << 20)
            if not data:
                raise RuntimeError("the browser ended")
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(line)

    def _hear(self, event: Any) -> None:
        method, given = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(given["exceptionDetails"].get("text")))
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(given["args"]))
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{given['entry']['text']} {given['entry'].get('url', '')}")

    def open(self, address: str) -> float:
        """Load a page; seconds until it stands."""
        start = time.monotonic()
        self.call("Page.navigate", url=address)
        self.until(
            lambda: self.evaluate("document.readyState") == "complete" and self.evaluate("location.href") == address
        )
        return time.monotonic() - start

    def evaluate(self, script: str) -> Any:
        """Value of a script in the page."""
        given = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in given:
            raise RuntimeError(str(given["exceptionDetails"]))
        return given["result"].get("value")

    def until(self, ready: Callable[[], Any], within: float = 20.0) -> Any:
        """Wait for something."""
        end = time.monotonic() + within
        while not (found := ready()):
            assert time.monotonic() < end
            time.sleep(0.02)
        return found

    def size(self, width: int, height: int, *, phone: bool = False) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def picture(self, path: Path) -> None:
        """The whole page as PNG."""
        found = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))

    def faults(self) -> list[str]:
        """What axe-core finds serious or critical."""
        self.evaluate(AXE.read_text() + "; 0")
        script = "axe.run().then(found => found.violations.map(v => [v.impact, v.id, v.nodes.map(n => n.html)]))"
        return [str(found) for found in self.evaluate(script) if found[0] in ("serious", "critical")]
