"""HTML pages of one file: no network and nothing else is needed to open them."""

import base64
import html
from typing import Any

from polyarm.drawing import png
from polyarm.tables import Table, to_html

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: .5rem 0 1rem; font-size: 13px; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: left; white-space: nowrap; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
img { max-width: 100%; }
code { background: #f3f3f3; padding: .1rem .3rem; }
"""


def page(title: str, body: str) -> str:
    """A page with this title and this HTML below it."""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style><h1>{html.escape(title)}</h1>{body}</html>\n"
    )


def table(shown: Table) -> str:
    """A table that scrolls where the page is narrower."""
    return f'<div class="wide">{to_html(shown)}</div>'


def image(title: str, figure: Any) -> str:
    """A figure inside the page."""
    data = base64.b64encode(png(figure, 110)).decode()
    return f'<img alt="{html.escape(title)}" src="data:image/png;base64,{data}">'
