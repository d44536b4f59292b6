"""One section of a report: a table, a figure, and what to know when reading them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from polyarm import drawing
from polyarm.experiments.paper.study_folder import StudyFolder
from polyarm.tables import Table, write_files


@dataclass(frozen=True)
class Section:
    """What reproducing one target gave."""

    name: str
    title: str
    note: str
    table: Table
    figure: Any

    def write(self, folder: Path) -> None:
        """Write the table as CSV, Markdown and LaTeX, and the figure as PNG and PDF."""
        write_files(self.table, folder / self.name)
        drawing.save(self.figure, folder / self.name)


class Target(Protocol):
    """A table or figure that can be reproduced by name."""

    @property
    def name(self) -> str:
        """Name on the command line."""
        ...

    def run(self, place: StudyFolder) -> Section:
        """Do what is missing and report."""
        ...
