"""Charts as SVG: scaled to the page, coloured by the style sheet, readable without scripts.

Numbers are prepared elsewhere; here they become paths.  Series are told apart by the classes series-0, series-1, ...
and by their names in the legend.
"""

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import NamedTuple

from polyarm.drawing import share_label

WIDTH, HEIGHT = 720, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 32, 12, 32
N_COLOURS, N_ROUNDS = 8, 3  # hues of the style sheet, and the shades of each
LEAST_WIDTH = 44  # of a bar whose number stands above it; that of others is told where the mouse is


class Curve(NamedTuple):
    """A line with an optional band around it; its series is its place in the legend where none is given."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    series: int | None = None


class Bars(NamedTuple):
    """One share for every group, with its interval."""

    name: str
    shares: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    series: int


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
    places = []
    said = ""
    for value in ticks(x.low, x.high, 6):
        if x_label(value) != said:  # within a minute all ticks are the same time
            said = x_label(value)
            places.append(_tick(x.at(value), HEIGHT - 8, said))
    return figure(_levels(y, ticks(y.low, y.high), y_label) + "".join(places) + body, title, HEIGHT, legend)


def figure(body: str, title: str, height: float, legend: str = "") -> str:
    """A drawing with its title for screen readers."""
    return (
        f'<figure class="chart"><svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        f"{body}</svg>{legend}</figure>"
    )


def _levels(y: Axis, values: Sequence[float], label: Callable[[float], str]) -> str:
    return "".join(
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y.at(value):.1f}" y2="{y.at(value):.1f}"/>'
        + _tick(LEFT - 6, y.at(value) + 4, label(value), "end")
        for value in values
    )


def _tick(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text class="tick" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def path(points: Sequence[tuple[float, float]]) -> str:
    """Points as the path of a line."""
    return "M" + "L".join(f"{px:.1f},{py:.1f}" for px, py in points)


def colour_of(series: int) -> str:
    """Classes of a series: its hue, and after the last hue another shade of the first."""
    shade = series // N_COLOURS % N_ROUNDS
    return f"series-{series % N_COLOURS}" + (f" round-{shade}" if shade else "")


def legend_of(names: Sequence[str], series: Sequence[int] = ()) -> str:
    """Names beside their colours: those of their series, else of their places."""
    entries = (
        f'<li><span class="swatch {colour_of(index)}" aria-hidden="true"></span>{escape(name)}</li>'
        for index, name in zip(series or range(len(names)), names, strict=True)
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
    series = [index if curve.series is None else curve.series for index, curve in enumerate(curves)]
    for index, curve in zip(series, curves, strict=True):
        colour = colour_of(index)
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
    return frame(x, y, x_label, y_label, title, "".join(parts), legend_of([curve.name for curve in curves], series))


def bars(groups: Sequence[str], found: Sequence[Bars], title: str) -> str:
    """Shares of every group side by side, each with its interval and its number."""
    if not groups or not found:
        return empty(f"{title}: nothing to show yet")
    x, y = Axis(0.0, float(len(groups)), LEFT, WIDTH - RIGHT), Axis(0.0, 1.08, HEIGHT - BOTTOM, TOP)
    width = 0.8 / len(found)
    parts = [_tick(x.at(i + 0.5), HEIGHT - 8, group) for i, group in enumerate(groups)]
    for order, one in enumerate(found):
        colour = colour_of(one.series)
        for i, (value, low, high) in enumerate(zip(one.shares, one.low, one.high, strict=True)):
            left, right = x.at(i + 0.1 + width * (order + 0.05)), x.at(i + 0.1 + width * (order + 0.95))
            middle, top = 0.5 * (left + right), y.at(value)
            size = f'width="{right - left:.1f}" height="{y.start - top:.1f}"'
            said = f"<title>{escape(one.name)}: {share_label(value)}</title>"
            parts.append(f'<rect class="area {colour}" x="{left:.1f}" y="{top:.1f}" {size}>{said}</rect>')
            if high > low:
                ends = f'y1="{y.at(low):.1f}" y2="{y.at(high):.1f}"'
                parts.append(f'<line class="whisker" x1="{middle:.1f}" x2="{middle:.1f}" {ends}/>')
            if right - left >= LEAST_WIDTH:
                parts.append(_tick(middle, min(top, y.at(high)) - 4, share_label(value)))
    legend = legend_of([one.name for one in found], [one.series for one in found])
    return figure(_levels(y, ticks(0.0, 1.0), share) + "".join(parts), title, HEIGHT, legend)


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
        parts.append(f'<path class="area {colour_of(index)}" d="{path(upper + lower[::-1])}Z"/>')
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
    row, left = 28, 150
    height = row * len(names) + BOTTOM + 6
    x = Axis(*widened([*low, *high, *means]), left, WIDTH - RIGHT)
    parts = [
        f'<line class="grid" x1="{x.at(v):.1f}" x2="{x.at(v):.1f}" y1="4" y2="{height - BOTTOM}"/>'
        + _tick(x.at(v), height - 8, short(v))
        for v in ticks(x.low, x.high, 6)
    ]
    for index, name in enumerate(names):
        y = row * index + row / 2 + 2
        colour = colour_of(series[index])
        label = name if len(name) <= 22 else name[:21] + "…"
        parts.append(_tick(left - 10, y + 4, label, "end"))
        ends = f'x1="{x.at(low[index]):.1f}" x2="{x.at(high[index]):.1f}"'
        parts.append(f'<line class="line {colour}" {ends} y1="{y:.0f}" y2="{y:.0f}"/>')
        parts.append(f'<circle class="dot {colour}" cx="{x.at(means[index]):.1f}" cy="{y:.0f}" r="4"/>')
    return figure("".join(parts), title, height)


def empty(text: str) -> str:
    """What stands where there is nothing to draw."""
    return f'<p class="empty">{escape(text)}</p>'
