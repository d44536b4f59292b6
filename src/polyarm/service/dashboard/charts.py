"""Charts as SVG: scaled to the page, coloured by the style sheet, readable without scripts.

Numbers are prepared elsewhere; here they become paths.  Series are told apart by the classes series-0, series-1, ...
and by their names in the legend.
"""

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 720, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 32, 12, 32
N_COLOURS = 8


class Curve(NamedTuple):
    """A line with an optional band around it."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


class Axis(NamedTuple):
    """Where numbers lie on the page."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Place of a number."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def ticks(low: float, high: float, n: int = 5) -> list[float]:
    """Round numbers between two."""
    span = max(high - low, 1e-12)
    rough = span / n
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def short(value: float) -> str:
    """A number as an axis shows it."""
    if value == 0:
        return "0"
    if abs(value) >= 1e5 or abs(value) < 1e-3:
        return f"{value:.0e}".replace("e+0", "e").replace("e-0", "e-")
    return f"{value:,.4g}"


def share(value: float) -> str:
    """A share as an axis shows it."""
    return f"{100 * value:.0f} %"


def moment(value: float) -> str:
    """A time as an axis shows it."""
    return datetime.fromtimestamp(value, UTC).strftime("%H:%M")


def day(value: float) -> str:
    """A day as an axis shows it."""
    return datetime.fromtimestamp(value, UTC).strftime("%d %b")


def widened(values: Sequence[float], least: float | None = None) -> tuple[float, float]:
    """Limits of an axis that show all values with some air."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return 0.0, 1.0
    low, high = min(finite), max(finite)
    air = 0.05 * (high - low) or 0.5 * abs(high) or 0.5
    return (low - air if least is None else least), high + air


def frame(
    x: Axis,
    y: Axis,
    x_label: Callable[[float], str],
    y_label: Callable[[float], str],
    title: str,
    body: str,
    legend: str,
) -> str:
    """A chart around its curves: grid, axes, a title for screen readers."""
    grid = []
    for value in ticks(y.low, y.high):
        place = y.at(value)
        grid.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{place:.1f}" y2="{place:.1f}"/>')
        grid.append(_tick(LEFT - 6, place + 4, y_label(value), "end"))
    said = ""
    for value in ticks(x.low, x.high, 6):
        if x_label(value) != said:  # within a minute all ticks are the same time
            said = x_label(value)
            grid.append(_tick(x.at(value), HEIGHT - 8, said))
    return (
        f'<figure class="chart"><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{''.join(grid)}{body}</svg>{legend}</figure>"
    )


def _tick(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text class="tick" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def path(points: Sequence[tuple[float, float]]) -> str:
    """Points as the path of a line."""
    return "M" + "L".join(f"{px:.1f},{py:.1f}" for px, py in points)


def legend_of(names: Sequence[str]) -> str:
    """Names beside their colours."""
    entries = (
        f'<li><span class="swatch series-{index % N_COLOURS}" aria-hidden="true"></span>{escape(name)}</li>'
        for index, name in enumerate(names)
    )
    return f'<ul class="legend">{"".join(entries)}</ul>'


def lines(
    curves: Sequence[Curve],
    title: str,
    x_label: Callable[[float], str] = short,
    y_label: Callable[[float], str] = short,
    least: float | None = None,
) -> str:
    """Curves with their bands."""
    xs = [value for curve in curves for value in curve.x]
    if not xs:
        return empty(f"{title}: nothing to show yet")
    ys = [value for curve in curves for value in (*curve.y, *curve.low, *curve.high)]
    low, high = min(xs), max(xs)
    x = Axis(low, high if high > low else low + 1.0, LEFT, WIDTH - RIGHT)
    y = Axis(*widened(ys, least), HEIGHT - BOTTOM, TOP)
    parts = []
    for index, curve in enumerate(curves):
        colour = f"series-{index % N_COLOURS}"
        if not curve.x:  # it keeps its place in the legend
            continue
        if curve.low:
            upper = [(x.at(a), y.at(b)) for a, b in zip(curve.x, curve.high, strict=True)]
            lower = [(x.at(a), y.at(b)) for a, b in zip(curve.x, curve.low, strict=True)]
            parts.append(f'<path class="band {colour}" d="{path(upper + lower[::-1])}Z"/>')
        points = [(x.at(a), y.at(b)) for a, b in zip(curve.x, curve.y, strict=True)]
        parts.append(f'<path class="line {colour}" d="{path(points)}"/>')
        if len(points) == 1:
            parts.append(f'<circle class="dot {colour}" cx="{points[0][0]:.1f}" cy="{points[0][1]:.1f}" r="3"/>')
    return frame(x, y, x_label, y_label, title, "".join(parts), legend_of([curve.name for curve in curves]))


def stacked(names: Sequence[str], times: Sequence[float], counts: Sequence[Sequence[float]], title: str) -> str:
    """Shares of a whole over time: counts[i][t] of name i."""
    totals = [sum(row[t] for row in counts) for t in range(len(times))]
    shown = [t for t in range(len(times)) if totals[t] > 0]
    if not shown:
        return empty(f"{title}: nothing to show yet")
    low, high = times[shown[0]], times[shown[-1]]
    x = Axis(low, high if high > low else low + 60.0, LEFT, WIDTH - RIGHT)
    y = Axis(0.0, 1.0, HEIGHT - BOTTOM, TOP)
    base = [0.0] * len(shown)
    parts = []
    for index, row in enumerate(counts):
        top = [b + row[t] / totals[t] for b, t in zip(base, shown, strict=True)]
        upper = [(x.at(times[t]), y.at(value)) for value, t in zip(top, shown, strict=True)]
        lower = [(x.at(times[t]), y.at(value)) for value, t in zip(base, shown, strict=True)]
        if len(shown) == 1:
            upper.append((x.end, upper[0][1]))
            lower.append((x.end, lower[0][1]))
        parts.append(f'<path class="area series-{index % N_COLOURS}" d="{path(upper + lower[::-1])}Z"/>')
        base = top
    label = day if high - low > 2 * 86_400 else moment
    return frame(x, y, label, share, title, "".join(parts), legend_of(names))


def forest(
    names: Sequence[str],
    means: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    title: str,
    series: Sequence[int],
) -> str:
    """One row per name: a dot and its interval, in the colour of its series."""
    if not names:
        return empty(f"{title}: nothing to show yet")
    width, row, left = WIDTH, 28, 150
    height = row * len(names) + BOTTOM + 6
    x = Axis(*widened([*low, *high, *means]), left, width - RIGHT)
    parts = [
        f'<line class="grid" x1="{x.at(v):.1f}" x2="{x.at(v):.1f}" y1="4" y2="{height - BOTTOM}"/>'
        + _tick(x.at(v), height - 8, short(v))
        for v in ticks(x.low, x.high, 6)
    ]
    for index, name in enumerate(names):
        y = row * index + row / 2 + 2
        colour = f"series-{series[index] % N_COLOURS}"
        label = name if len(name) <= 22 else name[:21] + "…"
        parts.append(_tick(left - 10, y + 4, label, "end"))
        ends = f'x1="{x.at(low[index]):.1f}" x2="{x.at(high[index]):.1f}"'
        parts.append(f'<line class="line {colour}" {ends} y1="{y:.0f}" y2="{y:.0f}"/>')
        parts.append(f'<circle class="dot {colour}" cx="{x.at(means[index]):.1f}" cy="{y:.0f}" r="4"/>')
    return (
        f'<figure class="chart"><svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg></figure>"
    )


def empty(text: str) -> str:
    """What stands where there is nothing to draw."""
    return f'<p class="empty">{escape(text)}</p>'
