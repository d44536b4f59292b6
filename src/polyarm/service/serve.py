"""Running the service."""

import ipaddress
import logging
import signal
import sys
import threading

import httpx
import uvicorn

from polyarm.errors import InvalidArgument
from polyarm.service.app import Service, make_app
from polyarm.service.database import open_database
from polyarm.service.demo import NAME, SETTINGS, send_traffic
from polyarm.service.messages import to_json

SWITCH = 0.0005  # seconds after which a thread gives way: the writer waits for its turn at every statement
DRAIN = 20  # seconds that requests under way get at the end


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(
    address: str,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    rate_limit: float | None = None,
    quiet: bool = False,
    demo: bool = False,
) -> None:
    """Serve until a signal comes; requests under way are answered first."""
    logging.basicConfig(level=logging.WARNING if quiet else logging.INFO, format="%(asctime)s %(name)s %(message)s")
    for talkative in ("alembic", "httpx"):  # httpx is the demonstration's traffic
        logging.getLogger(talkative).setLevel(logging.WARNING)
    database = open_database(address)
    service = Service.over(database, rate_limit=rate_limit)
    if not service.door.has_keys():
        if not is_loopback(host):
            database.close()
            raise InvalidArgument(
                f"host must be a loopback address while there is no key, got {host!r}; "
                "make one: polyarm keys add NAME --scope admin"
            )
        service.door.open_to_all = True
    if not quiet:
        print(f"polyarm: serving on http://{host}:{port}  (dashboard, /openapi.json, /metrics)", file=sys.stderr)
    config = uvicorn.Config(
        make_app(service),
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=DRAIN,
        server_header=False,
        date_header=True,
        h11_max_incomplete_event_size=64 * 1024,
    )
    sys.setswitchinterval(SWITCH)
    server, stop = uvicorn.Server(config), threading.Event()
    if demo:
        threading.Thread(
            target=_demonstrate, args=(server, service, f"http://{host}:{port}", stop), daemon=True
        ).start()
    signal.signal(signal.SIGTERM, lambda *_: None)  # uvicorn raises it again after it has shut down: that is no failure
    server.run()
    stop.set()


def _demonstrate(server: uvicorn.Server, service: Service, address: str, stop: threading.Event) -> None:
    while not server.started and not stop.wait(0.1):
        pass
    if service.door.open_to_all and not stop.is_set():
        if NAME not in service.replica.live:
            httpx.post(f"{address}/v1/experiments", content=to_json(SETTINGS)).raise_for_status()
        send_traffic(address, stop)
