"""The dashboard in a real browser: pages load under their own security policy, and the live parts come alive."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.browser import AXE, CHROMIUM, Browser
from tests.service.server import Server

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed: run scripts/install-test-services")
SHOP = {
    "name": "shop",
    "arms": ["plain <b>", "b"],
    "context": [{"name": "age"}, {"name": "device", "kind": "category", "categories": ["phone", "desktop"]}],
    "window": 0.0,
    "default_reward": 1.0,
    "min_propensity": 0.1,
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(str(tmp_path / "s.db")) as started:
        yield started


def decide(server: Server, n: int) -> None:
    for age in range(n):
        body = {"context": {"age": float(age), "device": "phone"}}
        assert server.http.post("/v1/experiments/shop/decisions", json=body).status_code == 201


def test_pages_load_and_come_alive(server: Server) -> None:
    with Browser() as browser:
        browser.open(server.address + "/")
        assert "No experiment yet" in browser.evaluate("document.body.innerText")
        assert server.http.post("/v1/experiments", json=SHOP).status_code == 201
        decide(server, 8)
        page = server.address + "/experiments/shop"
        browser.open(page)
        assert "plain <b>" in browser.evaluate("document.body.innerText")
        browser.until(lambda: browser.evaluate("document.getElementById('connection').textContent") == "live")
        count = "document.getElementById('n-decisions').textContent"
        browser.until(lambda: browser.evaluate(count) == "8")
        decide(server, 3)
        browser.until(lambda: browser.evaluate(count) == "11")  # nobody loaded the page again
        browser.until(lambda: browser.evaluate("document.querySelectorAll('svg').length") >= 4)  # its model comes too
        drawn = browser.evaluate("document.querySelector('#model svg').outerHTML")
        browser.evaluate(
            "(() => { const slider = document.querySelector('#context input[type=range]'); slider.value = slider.max;"
            "slider.dispatchEvent(new Event('input', {bubbles: true})); })()"
        )
        browser.until(lambda: browser.evaluate("document.querySelector('#model svg').outerHTML") != drawn)
        browser.open(server.address + "/audit")
        assert "add experiment" in browser.evaluate("document.body.innerText")
        assert browser.complaints == []
        browser.open(server.address + "/experiments/none")
        assert "must be one that exists" in browser.evaluate("document.body.innerText")


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: run scripts/install-test-services")
def test_pages_fit_a_phone_and_have_no_serious_fault(server: Server) -> None:
    server.http.post("/v1/experiments", json=SHOP).raise_for_status()
    decide(server, 40)
    with Browser() as browser:
        for width, phone in ((1280, False), (390, True)):
            browser.size(width, 900, phone=phone)
            for path in ("/", "/experiments/shop", "/audit", "/login", "/experiments/none"):
                browser.open(server.address + path)
                assert browser.evaluate("document.documentElement.scrollWidth") <= width, path
                assert browser.faults() == [], path
