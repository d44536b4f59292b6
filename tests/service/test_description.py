"""The interface keeps to its own description, whatever is sent: schemathesis with every check."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from polyarm.service import keys
from polyarm.service.database import open_database
from tests.service.server import Server

LONG = bool(os.environ.get("POLYARM_CRASHES"))
EXAMPLES = "100" if LONG else "4"
slow = pytest.mark.skipif(not LONG, reason="slow: make crashes runs it")
SHOP = {"name": "shop", "arms": ["a", "b"], "policy": "gaussian", "window": 60.0}


@pytest.mark.parametrize("with_keys", [True, pytest.param(False, marks=slow)])
def test_schemathesis_finds_nothing(tmp_path: Path, with_keys: bool) -> None:
    address = str(tmp_path / "s.db")
    options = []
    if with_keys:
        database = open_database(address)
        with database.writing.begin() as connection:
            key = keys.add_key(connection, "all", list(keys.SCOPES))
        database.close()
        options = ["--header", f"Authorization: Bearer {key}"]
    with Server(address) as server:
        headers = {"authorization": f"Bearer {key}"} if with_keys else {}
        server.http.post("/v1/experiments", json=SHOP, headers=headers).raise_for_status()
        command = [sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()", "run"]
        command += [server.address + "/openapi.json", "--phases", "examples,coverage,fuzzing", "--seed", "1"]
        command += ["--max-examples", EXAMPLES, "--continue-on-failure", *options]
        # what no schema can say (that an arm must exist, say) is refused with 422 too
        command += ["--checks", "all", "--exclude-checks", "positive_data_acceptance"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
        assert server.http.get("/healthz").status_code == 200
    assert done.returncode == 0, done.stdout[-6000:]
    generated = re.search(r"(\d+) generated", done.stdout)
    assert generated is not None
    print(f"{generated.group(1)} requests")
    assert int(generated.group(1)) > 200
