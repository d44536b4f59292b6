"""Pictures of what was learnt, drawn from the numbers of bandit.learnt."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyarm.bandit.learnt import Density, Effect, History
from polyarm.drawing import new_figure, style_of

BAND = 0.18  # opacity of a band
MOST_COLUMNS = 3  # panels side by side
MOST_NAMED = 4  # single values whose probabilities the legend tells; more are drawn as points


def draw_densities(found: Sequence[Density], places: Mapping[str, int] | None = None) -> Any:
    """Densities of the arms' next rewards with their 95 % bands, in one panel; `places` fix the arms' colours."""
    figure, axes = new_figure(scale=1.2)
    panel = axes[0, 0]
    for order, one in enumerate(found):
        style = style_of(places[one.arm] if places else order)
        panel.fill_between(one.grid, one.low, one.high, color=style["color"], alpha=BAND, linewidth=0)
        if len(one.jumps) > MOST_NAMED:
            draw_points(panel, one, style)
            continue
        jumps = ", ".join(f"{value:g}: {100 * share:.0f} %" for value, share in one.jumps.items())
        panel.plot(one.grid, one.density, label=f"{one.arm} ({jumps})" if jumps else one.arm, **style)
        for value in one.jumps:
            panel.axvline(value, color="#7F7F7F", linewidth=0.8, linestyle=":")
    panel.set(xlabel="reward", ylabel="density", title="What each arm may pay, with 95 % bands")
    panel.set_ylim(bottom=0)
    panel.legend()
    return figure


def draw_points(panel: Any, one: Density, style: Mapping[str, Any]) -> None:
    """Probabilities of the values of counts or marks over the step between them, so that their area is comparable."""
    values, shares = np.array(list(one.jumps)), np.array(list(one.jumps.values()))
    shown = (values >= one.grid[0]) & (values <= one.grid[-1])
    step = np.diff(values).min()
    panel.plot(values[shown], shares[shown] / step, marker="o", markersize=3, label=one.arm, **style)


def draw_history(history: History) -> Any:
    """Plays, rewards and the probability of being best over time, in three panels."""
    figure, axes = new_figure(1, 3, scale=0.9)
    plays, paid, best = axes[0]
    shares = history.shares.T if len(history.steps) else np.zeros((len(history.arms), 0))
    colours = [style_of(place)["color"] for place in range(len(history.arms))]
    plays.stackplot(history.steps, shares, labels=history.arms, colors=colours, alpha=0.85)
    plays.set(xlabel="decisions", ylabel="share of the plays", title="What was played", ylim=(0, 1))
    paid.plot(history.steps, history.reward, color="#000000", marker="o", markersize=3)
    paid.set(xlabel="decisions", ylabel="mean reward", title="What it paid")
    for place, arm in enumerate(history.arms):
        best.plot(history.learnt, history.best[:, place], marker="o", markersize=3, label=arm, **style_of(place))
    best.set(xlabel="rewards learnt", ylabel="probability", title="Probability of being best", ylim=(-0.02, 1.02))
    best.legend(fontsize=8)
    return figure


def draw_effects(found: Sequence[Effect], places: Mapping[str, int] | None = None) -> Any:
    """Expected reward along every column, one panel each, one line per arm; `places` fix the arms' colours."""
    columns = list(dict.fromkeys(effect.column for effect in found))
    arms = list(dict.fromkeys(effect.arm for effect in found))
    across = max(min(len(columns), MOST_COLUMNS), 1)
    figure, axes = new_figure(-(-max(len(columns), 1) // across), across, scale=0.9)
    for panel in axes.ravel()[len(columns) :]:
        panel.set_visible(False)
    for effect in found:
        panel, order = axes.ravel()[columns.index(effect.column)], arms.index(effect.arm)
        shift = 0.12 * (order - (len(arms) - 1) / 2)
        draw_effect(panel, effect, places[effect.arm] if places else order, shift)
    for panel, column in zip(axes.ravel(), columns, strict=False):
        panel.set(xlabel=column, ylabel="expected reward")
    if columns:
        axes.ravel()[0].legend(fontsize=8)
    figure.suptitle("How the expected reward moves with each column, with 95 % bands")
    return figure


def draw_effect(panel: Any, effect: Effect, place: int, shift: float) -> None:
    """One arm's line along a number, or its points at flags and categories, beside those of the other arms."""
    style = style_of(place)
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in effect.values):
        panel.fill_between(effect.values, effect.low, effect.high, color=style["color"], alpha=BAND, linewidth=0)
        panel.plot(effect.values, effect.mean, label=effect.arm, **style)
        return
    at = np.arange(len(effect.values)) + shift
    spread = np.stack([effect.mean - effect.low, effect.high - effect.mean])
    panel.errorbar(at, effect.mean, spread, fmt="o", color=style["color"], label=effect.arm, capsize=3, markersize=4)
    panel.set_xticks(np.arange(len(effect.values)), [str(value) for value in effect.values])
