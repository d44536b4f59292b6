"""Pictures of what was learnt, drawn from the numbers of bandit.learnt."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyarm.bandit.learnt import Density, Effect, History
from polyarm.drawing import new_figure, share_label, style_of

BAND = 0.18  # opacity of a band
MOST_COLUMNS = 3  # panels side by side
MOST_NAMED = 4  # single values that have bars of their own; more are drawn as points
MOST_LEVEL = 9  # bars whose numbers fit side by side
MOST_INSIDE = 5  # arms whose legend fits above the bars
LEAST_REST = 0.001  # probability of all other rewards below which their density is not worth a panel


def draw_densities(found: Sequence[Density], places: Mapping[str, int] | None = None) -> Any:
    """What arms may pay next: bars of single values and of windfalls, and densities of all other rewards with their
    95 % bands.

    A panel is there only where it has something to show; `places` fix the arms' colours.
    """
    styles = [style_of(places[one.arm] if places else order) for order, one in enumerate(found)]
    barred = [0 < len(one.jumps) <= MOST_NAMED for one in found]
    has_curve = [not bars or one.rest > LEAST_REST for one, bars in zip(found, barred, strict=True)]
    far = [(one, style) for one, style in zip(found, styles, strict=True) if one.windfalls]
    n_panels = max(any(barred) + bool(far) + any(has_curve), 1)
    figure, axes = new_figure(1, n_panels, scale=1.2 if n_panels == 1 else 1.0)
    if any(barred):
        pairs = [(one, style) for one, style, bars in zip(found, styles, barred, strict=True) if bars]
        draw_bars(axes[0, 0], pairs)
    if far:
        draw_windfalls(axes[0, int(any(barred))], far)
    if any(has_curve) or not found:
        pairs = [(one, style) for one, style, curve in zip(found, styles, has_curve, strict=True) if curve]
        draw_curves(axes[0, -1], pairs)
        what = "All other rewards" if any(barred) or far else "What each arm may pay"
        axes[0, -1].set(xlabel="reward", ylabel="density", title=f"{what}, with 95 % bands")
    return figure


def draw_bars(panel: Any, pairs: Sequence[tuple[Density, Mapping[str, Any]]]) -> None:
    """Probability of every single value, arms that take it side by side, with 95 % intervals."""
    values = sorted({value for one, _ in pairs for value in one.jumps})
    takers = {value: [one.arm for one, _ in pairs if value in one.jumps] for value in values}
    width = 0.8 / max(len(arms) for arms in takers.values())
    for one, style in pairs:
        among = [takers[value].index(one.arm) - (len(takers[value]) - 1) / 2 for value in one.jumps]
        at = np.array([values.index(value) for value in one.jumps]) + width * np.array(among)
        shares = np.array(list(one.jumps.values()))
        bands = np.array([one.jump_bands.get(value, (share, share)) for value, share in one.jumps.items()])
        panel.bar(at, shares, 0.9 * width, color=style["color"], alpha=0.75, label=one.arm)
        if one.jump_bands:
            spread = np.maximum([shares - bands[:, 0], bands[:, 1] - shares], 0.0)
            panel.errorbar(at, shares, spread, fmt="none", ecolor="#000000", elinewidth=1, capsize=3)
        turned = 90 if len(pairs) * len(values) > MOST_LEVEL else 0
        for place, share, top in zip(at, shares, bands[:, 1], strict=True):
            label, above = share_label(share), (place, max(share, top))
            panel.annotate(label, above, (0, 3), textcoords="offset points", ha="center", rotation=turned)
    panel.set_xticks(range(len(values)), [f"{value:g}" for value in values])
    panel.set(xlabel="reward", ylabel="probability", title="Single values, with 95 % intervals")
    panel.set_ylim(0, 1.12)
    panel.legend(**({} if len(pairs) <= MOST_INSIDE else {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}))


def draw_windfalls(panel: Any, pairs: Sequence[tuple[Density, Mapping[str, Any]]]) -> None:
    """Probability of a windfall of every arm, with 95 % intervals."""
    told = [(one.arm, one.windfalls, style) for one, style in pairs if one.windfalls]
    for place, (_, far, style) in enumerate(told):
        panel.bar(place, far.share, 0.7, color=style["color"], alpha=0.75)
        spread = [[max(far.share - far.low, 0.0)], [max(far.high - far.share, 0.0)]]
        panel.errorbar([place], [far.share], spread, fmt="none", ecolor="#000000", elinewidth=1, capsize=3)
        above = (place, max(far.share, far.high))
        panel.annotate(share_label(far.share), above, (0, 3), textcoords="offset points", ha="center")
    word = "above" if told[0][1].side > 0 else "below"
    panel.set_xticks(range(len(told)), [arm for arm, _, _ in told])
    panel.set(ylabel="probability", title=f"Rewards {word} {told[0][1].limit:.3g}, with 95 % intervals")
    panel.set_ylim(0, 1.15 * max(max(far.high, far.share) for _, far, _ in told) or 1.0)


def draw_curves(panel: Any, pairs: Sequence[tuple[Density, Mapping[str, Any]]]) -> None:
    """Densities with their bands."""
    for one, style in pairs:
        panel.fill_between(one.grid, one.low, one.high, color=style["color"], alpha=BAND, linewidth=0)
        if len(one.jumps) > MOST_NAMED:
            draw_points(panel, one, style)
        else:
            panel.plot(one.grid, one.density, label=one.arm, **style)
    panel.set_ylim(bottom=0)
    if pairs:
        panel.legend()


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
