"""Scripts in processes of their own that need not load Numba first: copies of one that has, and nothing of polyarm.

Run as a program, it takes one script per line and answers with one line; Numba reads its settings again in each copy.
"""

import ctypes
import json
import os
import resource
import runpy
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from numba.core import config

DROP_CAPABILITY = 24  # of prctl
OVERRIDE, READ_SEARCH = 1, 2  # what lets root write where the mode forbids it


class Done(NamedTuple):
    """What a script left."""

    code: int
    out: str
    errors: str


class Copies:
    """The process that is copied; file modes bind it and its copies, also where the tests run as root."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-B", "-W", "error", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"},
            preexec_fn=obey_modes,
        )

    def run(self, script: Path, environment: Mapping[str, str], full_disk: bool) -> Done:
        """Run a script in a copy."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        wanted = {"script": str(script), "environment": dict(environment), "full_disk": full_disk}
        print(json.dumps(wanted), file=self.process.stdin, flush=True)
        return Done(*json.loads(self.process.stdout.readline()))

    def close(self) -> None:
        """End it."""
        self.process.communicate()


def obey_modes() -> None:
    """Let file modes bind what the process becomes."""
    for capability in (OVERRIDE, READ_SEARCH):
        ctypes.CDLL(None).prctl(DROP_CAPABILITY, capability, 0, 0, 0)


def fill_disk() -> None:
    """Let every write of more than nothing fail."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def copied(wanted: dict[str, Any]) -> Done:
    """What a script leaves that runs in a copy of this process; it writes less than a pipe holds."""
    pipes = [os.pipe() for _ in range(2)]
    child = os.fork()
    if child == 0:
        for (_, end), number in zip(pipes, (1, 2), strict=True):
            os.dup2(end, number)
        become(**wanted)
    for _, end in pipes:
        os.close(end)
    texts = []
    for start, _ in pipes:
        with os.fdopen(start) as pipe:
            texts.append(pipe.read())
    return Done(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), *texts)


def become(script: str, environment: dict[str, str], full_disk: bool) -> None:
    """Run the script as if this process had just begun, and end."""
    code = 1
    try:
        os.environ.clear()
        os.environ.update(environment)
        config.reload_config()
        tempfile.tempdir = None
        sys.argv, sys.path[0] = [script], str(Path(script).parent)
        if full_disk:
            fill_disk()
        runpy.run_path(script, run_name="__main__")
        code = 0
    finally:
        if code != 0:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(copied(json.loads(line))), flush=True)
