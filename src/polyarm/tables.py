"""Tables as CSV, Markdown, LaTeX, HTML, and on a terminal."""

import csv
import html
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from polyarm.errors import require_extra
from polyarm.files import write_atomically

NUMBER = re.compile(r"[-+]?[\d.,]*(e[-+]\d+)?%?")
Cell: TypeAlias = str | float | int | None


@dataclass(frozen=True, slots=True)
class Table:
    """A title, column heads, and rows of text and numbers."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def shown_cell(cell: Cell) -> str:
    """A cell as people read it: four significant digits, a dash for what is missing."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return "-"
    if isinstance(cell, float):
        return f"{cell:.1f}" if 100 <= abs(cell) < 1e5 else f"{cell:.3g}" if cell else "0"
    return str(cell)


def _shown(table: Table) -> list[list[str]]:
    return [[shown_cell(cell) for cell in row] for row in table.rows]


def _aligned_left(table: Table) -> list[bool]:
    """Whether each column holds words; numbers, percentages and dashes go to the right."""
    return [not all(NUMBER.fullmatch(row[j]) for row in _shown(table)) for j in range(len(table.heads))]


def to_csv(table: Table) -> str:
    """Comma-separated values at full precision."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.heads)
    writer.writerows([["" if cell is None else cell for cell in row] for row in table.rows])
    return text.getvalue()


def to_markdown(table: Table) -> str:
    """A Markdown table."""
    rule = ["---" if left else "--:" for left in _aligned_left(table)]
    lines = [table.heads, rule, *_shown(table)]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def to_latex(table: Table) -> str:
    """A booktabs table."""
    columns = "".join("l" if left else "r" for left in _aligned_left(table))
    body = "".join(f"{_latex_row(row)}\n" for row in _shown(table))
    return (
        f"\\begin{{table}}\n\\caption{{{_latex(table.title)}}}\n\\begin{{tabular}}{{{columns}}}\n\\toprule\n"
        f"{_latex_row(table.heads)}\n\\midrule\n{body}\\bottomrule\n\\end{{tabular}}\n\\end{{table}}\n"
    )


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(_latex(cell) for cell in cells) + r" \\"


LATEX = {"±": r"$\pm$", "²": "$^2$"}
LATEX |= {character: f"\\{character}" for character in "&%$#_{}"}


def _latex(text: str) -> str:
    return "".join(LATEX.get(character, character) for character in text)


def to_html(table: Table) -> str:
    """An HTML table."""
    left = _aligned_left(table)
    cells = [
        "".join(
            f"<td{'' if at_left else ' class=n'}>{html.escape(cell)}</td>"
            for cell, at_left in zip(row, left, strict=True)
        )
        for row in _shown(table)
    ]
    head = "".join(f"<th>{html.escape(text)}</th>" for text in table.heads)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def write_files(table: Table, stem: Path) -> None:
    """Write the table as CSV, Markdown and LaTeX beside each other."""
    for suffix, text in ((".csv", to_csv(table)), (".md", to_markdown(table)), (".tex", to_latex(table))):
        write_atomically(stem.with_name(stem.name + suffix), text.encode())


def make_console() -> Any:
    """Standard output; where it is no terminal, wide enough for any table."""
    console = require_extra("rich.console", "experiments").Console()
    console.width = console.width if console.is_terminal else 180
    return console


def show(table: Table, console: Any = None) -> None:
    """Print the table on a terminal."""
    console = console or make_console()
    box = require_extra("rich.box", "experiments").SIMPLE_HEAD
    style = {"title_justify": "left", "box": box, "pad_edge": False, "collapse_padding": True}
    drawn = require_extra("rich.table", "experiments").Table(title=table.title, **style)
    for j, (head, left) in enumerate(zip(table.heads, _aligned_left(table), strict=True)):
        widest = max((len(row[j]) for row in _shown(table)), default=0)
        drawn.add_column(head, justify="left" if left else "right", overflow="fold", min_width=None if left else widest)
    for row in _shown(table):
        drawn.add_row(*row)
    console.print(drawn)
