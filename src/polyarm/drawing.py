"""Figures without global state, in colours that colour-blind readers tell apart, and their files."""

import io
from pathlib import Path
from typing import Any

from polyarm.errors import require_extra
from polyarm.files import write_atomically

# Okabe and Ito 2008: told apart by colour-blind readers; line styles tell them apart in black and white
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (3, 1)), (0, (1, 1)))
WIDTH, HEIGHT = 5.2, 3.7  # inches of one panel


def new_figure(n_rows: int = 1, n_columns: int = 1, scale: float = 1.0) -> tuple[Any, Any]:
    """A figure without any global state, and its axes as (n_rows, n_columns)."""
    figure_module = require_extra("matplotlib.figure", "figures")
    size = (WIDTH * n_columns * scale, HEIGHT * n_rows * scale)
    figure = figure_module.Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False)


def png(figure: Any, dpi: int) -> bytes:
    """The figure as PNG."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=dpi)
    return content.getvalue()


def save(figure: Any, stem: Path, dpi: int = 130) -> None:
    """Write the figure as PNG and PDF beside each other."""
    for suffix in (".png", ".pdf"):
        content = io.BytesIO()
        metadata = {"CreationDate": None} if suffix == ".pdf" else None
        figure.savefig(content, format=suffix[1:], dpi=dpi, metadata=metadata)
        write_atomically(stem.with_name(stem.name + suffix), content.getvalue())


def style_of(position: int) -> dict[str, Any]:
    """Colour and line style of the curve at that place in the legend."""
    return {"color": COLOURS[position % len(COLOURS)], "linestyle": STYLES[position % len(STYLES)]}


def share_label(share: float) -> str:
    """A share with two digits that count."""
    return f"{100 * share:.0f} %" if share >= 0.0995 or share == 0 else f"{100 * share:.2g} %"
