"""The dashboard in a real browser: pages load under their own security policy, and the live parts come alive."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.service.server import Server

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--v=0",
    "--timeout=4000",
]
SHOP = {
    "name": "shop",
    "arms": ["plain <b>", "b"],
    "context": [{"name": "age"}, {"name": "device", "kind": "category", "categories": ["phone", "desktop"]}],
    "window": 0.0,
    "default_reward": 1.0,
    "min_propensity": 0.1,
}


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: run scripts/install-test-services")
def test_pages_load_and_come_alive(tmp_path: Path) -> None:
    def look(address: str) -> str:
        """The page after its scripts have run; a complaint in the console is an error."""
        folder = tmp_path / "profile"
        done = subprocess.run(
            [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder}", "--dump-dom", address],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        assert not complaints
        return done.stdout

    with Server(str(tmp_path / "s.db")) as server:
        assert "No experiment yet" in look(server.address + "/")
        assert server.http.post("/v1/experiments", json=SHOP).status_code == 201
        for age in range(8):
            body = {"context": {"age": float(age), "device": "phone"}}
            assert server.http.post("/v1/experiments/shop/decisions", json=body).status_code == 201
        with server.http.stream("GET", "/experiments/shop/events") as events:  # what tells the page to look again
            assert next(events.iter_lines()) == "event: changed"
        page = look(server.address + "/experiments/shop")
        assert "plain &lt;b&gt;" in page
        assert page.count("<svg") >= 4
        model = server.http.get("/experiments/shop/model", params={"age": 3, "device": "desktop"}).text
        assert model != server.http.get("/experiments/shop/model", params={"age": 7, "device": "desktop"}).text
        assert "add experiment" in look(server.address + "/audit")
        assert "must be one that exists" in look(server.address + "/experiments/none")
