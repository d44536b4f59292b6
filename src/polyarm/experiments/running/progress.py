"""A progress bar with the time left, on a terminal only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from polyarm.errors import require_extra

Advance: TypeAlias = Callable[[float], None]


def silent(count: float) -> None:
    """Progress that nobody watches."""


@contextmanager
def progress_bar(title: str, total: int, shown: bool = True) -> Iterator[Advance]:
    """Function to call with the number of realisations just finished."""
    if not shown or total == 0 or not sys.stderr.isatty():
        yield silent
        return
    rich = require_extra("rich.progress", "experiments")
    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeElapsedColumn(),
        rich.TextColumn("left"),
        rich.TimeRemainingColumn(),
    )
    console = require_extra("rich.console", "experiments").Console(stderr=True)
    with rich.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda count: bar.advance(task, count)
