"""An evaluation as HTML."""

import html

from polyarm import pages
from polyarm.errors import MissingExtra
from polyarm.evaluation.result import Evaluation


def fragment(evaluation: Evaluation, figures: bool) -> str:
    """A part of a page."""
    parts = [f"<p><strong>{html.escape(evaluation.verdict)}</strong></p>"]
    parts += [f"<h3>{html.escape(table.title)}</h3>{pages.table(table)}" for table in evaluation.tables()]
    if figures:
        parts += _images(evaluation)
    facts = "".join(f"<li>{html.escape(line)}</li>" for line in evaluation.lines()[:-1])
    return f'<div class="polyarm-evaluation">{"".join(parts)}<ul>{facts}</ul></div>'


def _images(evaluation: Evaluation) -> list[str]:
    try:
        drawn = [("estimates", evaluation.plot_estimates()), ("weights", evaluation.plot_weights())]
    except MissingExtra:
        return []
    return [pages.image(name, figure) for name, figure in drawn]


def page(evaluation: Evaluation) -> str:
    """A page that needs no other file."""
    return pages.page("Evaluation from a log", fragment(evaluation, True))
