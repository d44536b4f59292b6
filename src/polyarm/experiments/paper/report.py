"""One self-contained HTML page, and a Markdown summary with small figures."""

import base64
import html
import io
from collections.abc import Sequence
from pathlib import Path

from polyarm.experiments.paper.sections import Section
from polyarm.experiments.running.runner import versions
from polyarm.files import require_folder, write_atomically
from polyarm.tables import to_html, to_markdown

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 88rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 13px; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: left; white-space: nowrap; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
img { max-width: 100%; }
code { background: #f3f3f3; padding: .1rem .3rem; }
"""
ABOUT = (
    "Our numbers beside the published ones.  z is the distance of the means in combined standard errors; a miss is "
    "a z beyond 3 in size.  Regret is expected regret; the observed std is that of the paper's regret, which "
    "contains the noise of the rewards."
)


def png(section: Section, dpi: int) -> bytes:
    """The section's figure as PNG."""
    content = io.BytesIO()
    section.figure.savefig(content, format="png", dpi=dpi)
    return content.getvalue()


def html_report(sections: Sequence[Section], command: str) -> str:
    """A page that needs no other file."""
    links = "".join(f'<li><a href="#{s.name}">{html.escape(s.title)}</a></li>' for s in sections)
    body = "".join(_html_section(section) for section in sections)
    used = ", ".join(f"{name} {number}" for name, number in versions().items())
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>polyarm: reproduction</title>'
        f"<style>{STYLE}</style><h1>Reproduction of the paper's tables and figures</h1>"
        f"<p>{html.escape(ABOUT)}</p><p>Made by <code>{html.escape(command)}</code> with {html.escape(used)}.</p>"
        f"<ul>{links}</ul>{body}</html>\n"
    )


def _html_section(section: Section) -> str:
    image = base64.b64encode(png(section, 110)).decode()
    return (
        f'<h2 id="{section.name}">{html.escape(section.title)}</h2><p>{html.escape(section.note)}</p>'
        f'<div class="wide">{to_html(section.table)}</div>'
        f'<img alt="{html.escape(section.title)}" src="data:image/png;base64,{image}">'
    )


def markdown_summary(sections: Sequence[Section], path: Path, command: str) -> None:
    """Write the summary, with small figures in `figures/` beside it."""
    folder = require_folder(path.parent / "figures", "summary")
    used = ", ".join(f"{name} {number}" for name, number in versions().items())
    parts = [f"# Reproduction of the paper\n\n{ABOUT}\n\nMade by `{command}` with {used}.\n"]
    for section in sections:
        write_atomically(folder / f"{section.name}.png", png(section, 100))
        figure = f"![{section.title}](figures/{section.name}.png)"
        note = f"{section.note}\n\n" if section.note else ""
        parts.append(f"\n## {section.title}\n\n{note}{to_markdown(section.table)}\n{figure}\n")
    write_atomically(path, "".join(parts).encode())
