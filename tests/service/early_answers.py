"""The server with a bug on purpose: it answers before the commit.  A test of durability must find it out."""

import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from polyarm.cli import main
from polyarm.service import replica
from polyarm.service.writer import Writer

honest = Writer.write


async def write(self: Writer, work: Any, argument: Any) -> Any:
    if work is not replica.add_batches:
        return await honest(self, work, argument)

    def later() -> None:
        time.sleep(0.05)
        self.run_blocking(lambda connection: work(connection, [argument])[0])

    threading.Thread(target=later, daemon=True).start()
    rows: Sequence[Any] = argument
    return rows


Writer.write = write  # type: ignore[method-assign, assignment]
sys.exit(main(["serve", *sys.argv[1:]]))
