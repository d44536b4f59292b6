"""An evaluation as HTML."""

import base64
import html
import io
from typing import Any

from polyarm.errors import MissingExtra
from polyarm.evaluation.result import Evaluation
from polyarm.tables import to_html

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: .5rem 0 1rem; font-size: 13px; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: left; white-space: nowrap; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
img { max-width: 100%; }
"""


def fragment(evaluation: Evaluation, figures: bool) -> str:
    """A part of a page."""
    parts = [f"<p><strong>{html.escape(evaluation.verdict)}</strong></p>"]
    parts += [f"<h3>{html.escape(table.title)}</h3>{to_html(table)}" for table in evaluation.tables()]
    if figures:
        parts += _images(evaluation)
    facts = "".join(f"<li>{html.escape(line)}</li>" for line in evaluation.lines()[:-1])
    return f'<div class="polyarm-evaluation">{"".join(parts)}<ul>{facts}</ul></div>'


def _images(evaluation: Evaluation) -> list[str]:
    try:
        drawn = [("estimates", evaluation.plot_estimates()), ("weights", evaluation.plot_weights())]
    except MissingExtra:
        return []
    return [f'<img alt="{name}" src="data:image/png;base64,{_png(figure)}">' for name, figure in drawn]


def _png(figure: Any) -> str:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110)
    return base64.b64encode(content.getvalue()).decode()


def page(evaluation: Evaluation) -> str:
    """A page that needs no other file."""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>polyarm: evaluation</title>'
        f"<style>{STYLE}</style><h1>Evaluation from a log</h1>{fragment(evaluation, True)}</html>\n"
    )
