"""Drawing.  Every figure gets its numbers ready made, from `curves` or `learnt`."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from polyarm.drawing import COLOURS, new_figure, style_of
from polyarm.experiments.reporting.curves import Curve
from polyarm.experiments.reporting.inspection import ArmDensity, Inspection
from polyarm.types import Array, IntArray


def draw_curves(
    axes: Any,
    curves: Sequence[Curve],
    y_label: str,
    title: str = "",
    legend: bool = True,
    floor: float | None = None,
) -> None:
    """Lines with shaded bands against time."""
    for position, curve in enumerate(curves):
        style = style_of(position)
        axes.plot(curve.steps, curve.mean, label=curve.label, linewidth=1.6, **style)
        low = curve.low if floor is None else np.maximum(curve.low, floor)
        axes.fill_between(curve.steps, low, curve.high, color=style["color"], alpha=0.12, linewidth=0)
    axes.set(xlabel="step t", title=title)
    axes.set_ylabel(y_label, fontsize="small")  # as long as a small panel is high
    axes.set_xlim(0, max(curve.steps[-1] for curve in curves))
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize="small", frameon=False)


def decades(values: Array) -> tuple[float, float]:
    """Limits of a logarithmic axis: whole powers of ten around the values, so that its labels never crowd."""
    low, high = np.floor(np.log10(values.min())), np.ceil(np.log10(values.max()))
    return float(10**low), float(10 ** max(high, low + 1))


def share_legend(figure: Any, panels: Iterable[Any]) -> None:
    """Put one legend under the figure instead of one into every panel, where one says what they all say."""
    legends = [legend for panel in panels if (legend := panel.get_legend()) is not None]
    names = [[text.get_text() for text in legend.get_texts()] for legend in legends]
    longest = max(range(len(names)), key=lambda i: len(names[i]), default=0)
    if len(names) < 2 or any(not set(shown) <= set(names[longest]) for shown in names):
        return
    for legend in legends:
        legend.remove()
    columns = 8 if max(map(len, names[longest])) < 10 else 4
    handles, style = legends[longest].legend_handles, {"frameon": False, "fontsize": "small"}
    figure.legend(handles, names[longest], loc="outside lower center", ncols=columns, **style)


def draw_density(axes: Any, density: ArmDensity, title: str = "") -> None:
    """Inspection density with its band, the truth, and the rewards seen near this context."""
    if len(density.rewards) >= 10:
        axes.hist(
            density.rewards,
            bins=min(40, max(10, len(density.rewards) // 2)),
            range=(density.grid[0], density.grid[-1]),
            density=True,
            color="#BBBBBB",
            alpha=0.6,
            label=density.rewards_are,
        )
    axes.fill_between(
        density.grid, density.low, density.high, color=COLOURS[0], alpha=0.25, linewidth=0, label="95 % band"
    )
    axes.plot(density.grid, density.learnt, color=COLOURS[0], linewidth=1.6, label="learnt")
    if density.truth is not None:
        axes.plot(density.grid, density.truth, color=COLOURS[1], linestyle="--", linewidth=1.6, label="truth")
    axes.set(xlabel="reward", ylabel="density", title=title, xlim=(density.grid[0], density.grid[-1]))
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize="small", frameon=False)


def draw_arms(axes: Any, steps: IntArray, values: Array, y_label: str, title: str = "") -> None:
    """One line per arm against time."""
    for arm in range(values.shape[1]):
        axes.plot(steps, values[:, arm], label=f"arm {arm}", linewidth=1.6, **style_of(arm))
    axes.set(xlabel="step t", ylabel=y_label, title=title)
    axes.set_xlim(0, steps[-1])
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize="small", frameon=False)


def regret_figure(curves: Sequence[Curve], shares: Sequence[Curve], title: str) -> Any:
    """Cumulative regret beside the share of best-arm plays."""
    figure, axes = new_figure(1, 2)
    draw_curves(axes[0, 0], curves, "cumulative expected regret", floor=0.0)
    draw_curves(axes[0, 1], shares, "share of best-arm plays")
    axes[0, 1].set_ylim(0, 1.02)
    share_legend(figure, axes.flat)
    figure.suptitle(f"{title} (mean; shaded: its 95 % confidence interval)")
    return figure


def density_figure(learnt: Inspection, title: str) -> Any:
    """The learnt reward density of every arm."""
    n_columns = min(4, len(learnt.densities))
    n_rows = -(-len(learnt.densities) // n_columns)
    figure, axes = new_figure(n_rows, n_columns, scale=0.85)
    for density, panel in zip(learnt.densities, axes.flat, strict=False):
        draw_density(panel, density, f"arm {density.arm}, played {density.n_plays} times")
    for panel in axes.flat[len(learnt.densities) :]:
        panel.set_visible(False)
    share_legend(figure, axes.flat)
    where = ", ".join(f"{value:.2g}" for value in learnt.context[:6]) + (", ..." if len(learnt.context) > 6 else "")
    figure.suptitle(f"{title}, at context ({where})")
    return figure


def learning_figure(learnt: Inspection, title: str) -> Any:
    """Number of components, arm shares and probability of being best, over time."""
    panels = [
        (learnt.n_components, "number of components"),
        (learnt.shares, "share of plays so far"),
        (learnt.best, "probability of being best"),
    ]
    shown = [(values, name) for values, name in panels if values is not None]
    figure, axes = new_figure(1, len(shown), scale=0.85)
    for (values, name), panel in zip(shown, axes.flat, strict=True):
        draw_arms(panel, learnt.steps, values, name)
    share_legend(figure, axes.flat)
    figure.suptitle(title)
    return figure
