"""Reproduce a table or figure of the paper, or all of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from polyarm.errors import require, require_count, require_extra, require_name, require_writable_parent
from polyarm.experiments.paper.report import html_report, markdown_summary
from polyarm.experiments.paper.sections import Section
from polyarm.experiments.paper.study_folder import StudyFolder
from polyarm.experiments.paper.targets import NAMES, TARGETS
from polyarm.experiments.running.executors import open_executor
from polyarm.files import require_folder, write_atomically
from polyarm.tables import show


@dataclass(frozen=True)
class Settings:
    """What the command line says about a reproduction."""

    out: Path
    realizations: int | None = None
    seed: int = 0
    workers: int = 1
    cluster: str | None = None
    data: str | None = None
    networks: bool = False
    device: str | None = None
    gp_realizations: int | None = None
    summary: Path | None = None
    progress: bool = False
    command: str = "polyarm reproduce"


def parse_targets(names: Sequence[str], realizations: int | None) -> dict[str, int | None]:
    """Targets with the realisations asked for; one named with its own number keeps it also beside `all`."""
    chosen: dict[str, int | None] = {}
    for text in sorted(names, key=lambda text: text != "all"):
        name, _, count = text.partition(":")
        require_name(name, (*NAMES, "all"), "target")
        require(count.isdecimal() or not count, "target", "a name, or a name with a number as in mixture-a:100", text)
        chosen |= dict.fromkeys(NAMES if name == "all" else (name,), int(count) if count else realizations)
    return chosen


def reproduce(names: Sequence[str], settings: Settings) -> list[Section]:
    """Run the targets of those names (`name` or `name:realizations`), write their files and the report."""
    chosen = parse_targets(names, settings.realizations)
    for count in (*chosen.values(), settings.gp_realizations):
        require_count(1 if count is None else count, "realizations")
    if settings.summary:
        require_writable_parent(settings.summary, "summary")
    require_extra("matplotlib", "figures")
    folder = require_folder(settings.out)
    sections = []
    with open_executor(settings.workers, settings.cluster) as executor:
        place = StudyFolder(
            folder,
            executor,
            None,
            settings.seed,
            settings.data,
            settings.networks,
            settings.device,
            settings.progress,
            settings.gp_realizations,
        )
        for target in (target for target in TARGETS if target.name in chosen):
            section = target.run(replace(place, realizations=chosen[target.name]))
            section.write(folder)
            show(section.table)
            sections.append(section)
    write_atomically(folder / "report.html", html_report(sections, settings.command).encode())
    if settings.summary:
        markdown_summary(sections, settings.summary, settings.command)
    return sections
