"""One self-contained HTML page, and a Markdown summary with small figures."""

import html
from collections.abc import Sequence
from pathlib import Path

from polyarm import pages
from polyarm.drawing import png
from polyarm.experiments.paper.sections import Section
from polyarm.experiments.running.runner import versions
from polyarm.files import require_folder, write_atomically
from polyarm.tables import to_markdown

ABOUT = (
    "Our numbers beside the published ones.  z is the distance of the means in combined standard errors; a miss is "
    "a z beyond 3 in size.  Regret is expected regret; the observed std is that of the paper's regret, which "
    "contains the noise of the rewards."
)


def html_report(sections: Sequence[Section], command: str) -> str:
    """A page that needs no other file."""
    links = "".join(f'<li><a href="#{s.name}">{html.escape(s.title)}</a></li>' for s in sections)
    body = "".join(_html_section(section) for section in sections)
    used = ", ".join(f"{name} {number}" for name, number in versions().items())
    return pages.page(
        "Reproduction of the paper's tables and figures",
        f"<p>{html.escape(ABOUT)}</p><p>Made by <code>{html.escape(command)}</code> with {html.escape(used)}.</p>"
        f"<ul>{links}</ul>{body}",
    )


def _html_section(section: Section) -> str:
    return (
        f'<h2 id="{section.name}">{html.escape(section.title)}</h2><p>{html.escape(section.note)}</p>'
        f"{pages.table(section.table)}{pages.image(section.title, section.figure)}"
    )


def markdown_summary(sections: Sequence[Section], path: Path, command: str) -> None:
    """Write the summary, with small figures in `figures/` beside it."""
    folder = require_folder(path.parent / "figures", "summary")
    used = ", ".join(f"{name} {number}" for name, number in versions().items())
    parts = [f"# Reproduction of the paper\n\n{ABOUT}\n\nMade by `{command}` with {used}.\n"]
    for section in sections:
        write_atomically(folder / f"{section.name}.png", png(section.figure, 100))
        figure = f"![{section.title}](figures/{section.name}.png)"
        note = f"{section.note}\n\n" if section.note else ""
        parts.append(f"\n## {section.title}\n\n{note}{to_markdown(section.table)}\n{figure}\n")
    write_atomically(path, "".join(parts).encode())
