"""What was learnt: numbers, and the tables that show them."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from polyarm.bandit.features import Category, Column, Cyclic, Flag, Schema
from polyarm.bandit.ledger import DROPPED, LEARNT, LOGGED, OPEN, Ledger
from polyarm.bandit.looks import Look, shares_of_best
from polyarm.inference.windfalls import NO_LIMIT, Limit
from polyarm.tables import Table, shown_cell, to_html
from polyarm.types import Array, IntArray, Mask

LEVEL = 0.95
FAR = 3.0  # widths of the usual arm's bulk that a picture goes beyond it
N_GRID = 161
N_POINTS = 15  # along a number, for its effect
N_SAMPLE = 25  # contexts of the past that a summary averages over


def interval(draws: Array) -> tuple[Array, Array]:
    """Bounds of the central 95 % along the first axis."""
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return low, high


class ArmForecast(NamedTuple):
    """What is known of one arm in one context.

    mean, low, high   expected reward and its 95 % interval
    probability_best  that it is the best arm, by the bandit's objective
    plays             decisions for it so far
    worth             what it is judged by: median of the objective's posterior, or the mean if that is the objective
    """

    mean: float
    low: float
    high: float
    probability_best: float
    plays: int
    worth: float


class ArmSummary(NamedTuple):
    """What is known of one arm over the contexts met so far.

    plays, open       decisions for it, and those that wait for their reward
    learnt            rewards learnt of it, tables of others included
    reward            mean of those rewards
    mean, low, high   expected reward over the contexts met, whoever was played in them, and its 95 % interval
    probability_best  mean probability of being the best arm in a context
    active            whether it is still played
    """

    plays: int
    open: int
    learnt: int
    reward: float
    mean: float
    low: float
    high: float
    probability_best: float
    active: bool


class Shown(Mapping[str, Any]):
    """Rows by arm that print as a table, in a terminal and in a notebook."""

    title = ""
    heads: tuple[str, ...] = ()

    def __init__(self, rows: Mapping[str, Any]) -> None:
        self._rows = dict(rows)

    def __getitem__(self, arm: str) -> Any:
        """The row of an arm."""
        return self._rows[arm]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def table(self) -> Table:
        """The rows as a table."""
        raise NotImplementedError

    def __repr__(self) -> str:
        table = self.table()
        cells = [list(table.heads), *([shown_cell(cell) for cell in row] for row in table.rows)]
        widths = [max(len(row[j]) for row in cells) for j in range(len(table.heads))]
        lines = [[cell.rjust(width) for cell, width in zip(row, widths, strict=True)] for row in cells]
        return "\n".join(
            "  ".join([row[0].ljust(widths[0]), *line[1:]]) for row, line in zip(cells, lines, strict=True)
        )

    def _repr_html_(self) -> str:
        return to_html(self.table())


class Prediction(Shown):
    """What is known of every arm in one context: `prediction["video"].mean`.

    standard_error  Monte Carlo error of the probabilities of being best
    """

    def __init__(self, rows: Mapping[str, ArmForecast], standard_error: float, objective: Any = None) -> None:
        super().__init__(rows)
        self.standard_error = standard_error
        self.objective = objective

    def __getitem__(self, arm: str) -> ArmForecast:
        """The forecast of an arm."""
        row: ArmForecast = self._rows[arm]
        return row

    def table(self) -> Table:
        """The forecasts as a table."""
        heads = ["arm", "mean", "95 %", "best with", "plays"]
        rows = [[a, f.mean, spoken(f.low, f.high), percent(f.probability_best), f.plays] for a, f in self._rows.items()]
        if self.objective is not None:
            heads.insert(3, str(self.objective))
            for row, forecast in zip(rows, self._rows.values(), strict=True):
                row.insert(3, forecast.worth)
        return Table("What is known of every arm", tuple(heads), tuple(tuple(row) for row in rows))


class Summary(Shown):
    """What is known of every arm over the contexts met so far: `summary["video"].plays`."""

    def __getitem__(self, arm: str) -> ArmSummary:
        """The summary of an arm."""
        row: ArmSummary = self._rows[arm]
        return row

    def table(self) -> Table:
        """The summary as a table."""
        rows = [
            (
                arm if s.active else f"{arm} (retired)",
                s.plays,
                s.open,
                s.learnt,
                s.reward,
                s.mean,
                spoken(s.low, s.high),
                percent(s.probability_best),
            )
            for arm, s in self._rows.items()
        ]
        heads = ("arm", "plays", "open", "rewards", "their mean", "expected", "95 %", "best with")
        return Table("What was learnt", heads, tuple(rows))


def spoken(low: float, high: float) -> str:
    """An interval as people read it."""
    return "-" if np.isnan(low) else f"{shown_cell(float(low))} to {shown_cell(float(high))}"


def percent(share: float) -> str:
    """A probability as people read it; only a certain one is called 0 or 100."""
    if np.isnan(share):
        return "-"
    return f"{100 * share:.0f} %" if share in (0.0, 1.0) or 0.01 <= share <= 0.99 else f"{100 * share:.1f} %"


class Counts(NamedTuple):
    """Decisions, open decisions, rewards, and mean reward of every arm, (n_arms,)."""

    plays: IntArray
    open: IntArray
    learnt: IntArray
    reward: Array


def counts_of(ledger: Ledger, n_arms: int) -> Counts:
    """What the ledger says of every arm."""
    arms, states, rewards = ledger.column("arms"), ledger.column("states"), ledger.column("rewards")
    known = (states == LEARNT) | (states == LOGGED)
    learnt = np.bincount(arms[known], minlength=n_arms).astype(np.int64)
    total = np.bincount(arms[known], weights=rewards[known], minlength=n_arms)
    with np.errstate(invalid="ignore"):
        reward = total / learnt
    plays = np.bincount(arms[states != LOGGED], minlength=n_arms).astype(np.int64)
    waiting = np.bincount(arms[states == OPEN], minlength=n_arms).astype(np.int64)
    return Counts(plays, waiting, learnt, reward)


def predict(look: Look, x: Array, arms: Sequence[str], active: Mask, plays: IntArray) -> Prediction:
    """Forecasts of the active arms in one context."""
    draws, worths, error = look.settled_draws(x, active)
    best = shares_of_best(worths[None], active)[0]
    low, high = interval(draws)
    means = draws.mean(axis=0).tolist()
    worth = means if look.objective is None else np.median(worths, axis=0).tolist()  # tails of tails have no mean
    rows = {
        arm: ArmForecast(means[i], float(low[i]), float(high[i]), float(best[i]), int(plays[i]), worth[i])
        for i, arm in enumerate(arms)
        if active[i]
    }
    return Prediction(rows, error, look.objective)


def sample_of(ledger: Ledger, n: int = N_SAMPLE) -> Array:
    """Codes of at most n contexts of the past, evenly spread over it, (m, n_columns)."""
    codes = ledger.column("codes")
    if len(codes) == 0:
        return np.empty((0, codes.shape[1]))
    rows = np.unique(np.linspace(0, len(codes) - 1, min(n, len(codes))).astype(np.int64))
    return np.asarray(codes[rows])


def summarise(look: Look | None, xs: Array, arms: Sequence[str], active: Mask, counts: Counts) -> Summary:
    """Summary of every arm; without a model of the rewards, of what was played and learnt alone."""
    mean = low = high = best = np.full(len(arms), np.nan)
    if look is not None and len(xs):
        draws, worths = look.draws(xs)
        over = draws.mean(axis=0)
        mean, (low, high), best = over.mean(axis=0), interval(over), shares_of_best(worths, active).mean(axis=0)
        best = np.where(active, best, np.nan)
    rows = {
        arm: ArmSummary(
            int(counts.plays[i]),
            int(counts.open[i]),
            int(counts.learnt[i]),
            float(counts.reward[i]),
            float(mean[i]),
            float(low[i]),
            float(high[i]),
            float(best[i]),
            bool(active[i]),
        )
        for i, arm in enumerate(arms)
    }
    return Summary(rows)


class Windfalls(NamedTuple):
    """Rare rewards of an arm that are far from all others on one side: how probable they are, with a 95 % interval.

    limit  beyond which rewards are windfalls
    side   1 where they are above the limit, -1 where they are below it
    """

    limit: float
    side: float
    share: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Density:
    """Density of an arm's next reward at the grid's points, with the 95 % band of what is known of it.

    jumps       probability of every single value that rewards take again and again, such as 0; the density is of the
                rest
    jump_bands  what is known of these probabilities, 95 % intervals, where the model can say
    windfalls   rare rewards far from all others, where there are any; they are part of the density
    """

    arm: str
    grid: Array
    density: Array
    low: Array
    high: Array
    jumps: Mapping[float, float]
    jump_bands: Mapping[float, tuple[float, float]] = field(default_factory=dict)
    windfalls: Windfalls | None = None

    @property
    def rest(self) -> float:
        """Probability of any other reward than the single values."""
        return max(1.0 - sum(self.jumps.values()), 0.0)


def density_at(look: Look, x: Array, arm: str, number: int, grid: Array) -> Density:
    """The density of an arm's reward in one context."""
    engine, total, bands = look.engine, np.zeros(len(grid)), []
    jumps: dict[float, float] = {}
    drawn: dict[float, list[Array]] = {}
    beyond: list[Array] = []
    limit = NO_LIMIT
    for state, rng in look.states():
        next_reward = engine.predictive(state, x, number)
        total += next_reward.pdf(grid)
        if hasattr(next_reward, "values"):
            for value, weight in zip(next_reward.values.tolist(), next_reward.weights.tolist(), strict=True):
                jumps[value] = jumps.get(value, 0.0) + weight
        n_draws = 1000 if look.is_exact else 10
        bands.append(engine.draw_densities(state, x, number, grid, n_draws, rng))
        if hasattr(engine, "draw_jumps"):
            values, shares = engine.draw_jumps(state, x, number, n_draws, rng)
            for value, column in zip(values.tolist(), shares.T, strict=True):
                drawn.setdefault(value, []).append(column)
        if hasattr(engine, "limit_of") and (limit := engine.limit_of(state)).side != 0:
            beyond.append(engine.draw_shares(state, x, number, n_draws, rng)[:, -1])
    low, high = interval(np.concatenate(bands))
    means = {value: weight / len(bands) for value, weight in sorted(jumps.items())}
    ends = {value: np.stack(interval(np.concatenate(drawn[value]))).tolist() for value in means if value in drawn}
    jump_bands = {value: (first, last) for value, (first, last) in ends.items()}
    windfalls = summed_up(limit, np.concatenate(beyond)) if beyond else None
    return Density(arm, grid, total / len(bands), low, high, means, jump_bands, windfalls)


def summed_up(limit: Limit, shares: Array) -> Windfalls:
    """Windfalls beyond that limit, of which these are draws of their probability."""
    low, high = interval(shares)
    return Windfalls(limit.at, limit.side, float(shares.mean()), float(low), float(high))


def grid_for(look: Look, x: Array, numbers: Sequence[int]) -> Array:
    """Points over the bulk of what these arms may pay in a context, seen from a few states.

    An arm that may pay far more or less than the others is shown in part, or nothing could be seen of them; so are all
    where there are windfalls, up to the limit of these.
    """
    ends, side, limit = [], 0.0, 0.0
    for k, (state, _) in enumerate(look.states()):
        if k % 10 == 0:
            ends.append([look.engine.predictive(state, x, number).quantile([0.005, 0.995]) for number in numbers])
        if k == 0 and hasattr(look.engine, "limit_of"):
            side, limit = look.engine.limit_of(state)
    lows, highs = np.median(ends, axis=0).T
    reach = FAR * float(np.median(highs - lows))
    low, high = max(lows.min(), np.median(lows) - reach), min(highs.max(), np.median(highs) + reach)
    low, high = limit if side < 0 else low, limit if side > 0 else high
    margin = 0.1 * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, N_GRID)


@dataclass(frozen=True, eq=False)
class Effect:
    """How the mean reward of an arm moves with one column, the others as in `context`: values, means, 95 % band."""

    arm: str
    column: str
    values: Sequence[Any]
    mean: Array
    low: Array
    high: Array


def typical(schema: Schema, codes: Array) -> Array:
    """Codes of a typical context: medians of numbers, the most frequent of the others."""
    out = []
    for i, column in enumerate(schema.columns.values()):
        known = codes[~np.isnan(codes[:, i]), i]
        if len(known) == 0:
            out.append(np.nan if column.optional else 0.0)
        elif isinstance(column, (Category, Flag)):
            values, times = np.unique(known, return_counts=True)
            out.append(float(values[times.argmax()]))
        else:
            out.append(float(np.median(known)))
    return np.array(out)


def points_of(column: Column, codes: Array) -> Array:
    """Codes along which the effect of a column is shown."""
    if isinstance(column, Category):
        return np.arange(float(len(column.levels)))
    if isinstance(column, Flag):
        return np.array([0.0, 1.0])
    if isinstance(column, Cyclic):
        return np.linspace(0, column.period, N_POINTS)
    known = codes[~np.isnan(codes)]
    if len(known) == 0:
        return np.zeros(1)
    low, high = np.quantile(known, [0.05, 0.95]).tolist()
    return np.unique(np.linspace(low, high, N_POINTS))


def effects_of(
    look: Look, schema: Schema, origins: Array, here: Array, codes: Array, arms: Sequence[tuple[str, int]]
) -> list[Effect]:
    """Effects of every column on the mean rewards of these arms, around the context with codes `here`."""
    points = [points_of(column, codes[:, i]) for i, column in enumerate(schema.columns.values())]
    if not points:
        return []
    rows = np.concatenate([np.tile(here, (len(p), 1)) for p in points])
    edges = np.cumsum([0, *(len(p) for p in points)])
    for i, p in enumerate(points):
        rows[edges[i] : edges[i + 1], i] = p
    xs = schema.features_many(rows, schema.origins_after(origins, rows))
    draws, expected = look.means(xs), look.expected(xs)
    found = []
    for arm, number in arms:
        for i, (name, column) in enumerate(schema.columns.items()):
            here_to = slice(edges[i], edges[i + 1])
            low, high = interval(draws[here_to, :, number].T)
            values = [column.value(code) for code in points[i].tolist()]
            found.append(Effect(arm, name, values, expected[here_to, number], low, high))
    return found


@dataclass(frozen=True, eq=False)
class History:
    """What happened as time went by, at `steps` (numbers of decisions).

    shares  (k, n_arms) share of each arm among the decisions between two steps
    played  (k, n_arms) mean probability with which each arm was played between them
    reward  (k,) mean reward of those decisions whose reward has come, NaN without any
    learnt  (j,) numbers of rewards, and best (j, n_arms) the probability of being best after so many
    """

    arms: tuple[str, ...]
    steps: Array
    shares: Array
    played: Array
    reward: Array
    learnt: Array
    best: Array


def history_of(ledger: Ledger, arms: Sequence[str], n_steps: int = 40) -> History:
    """Plays and rewards over time; the probabilities of being best are added by the bandit, which can look back."""
    rows = np.flatnonzero(ledger.column("states") != LOGGED)
    n, n_arms = len(rows), len(arms)
    edges = np.unique(np.linspace(0, n, min(n_steps, n) + 1).astype(np.int64))
    played = ledger.column("arms")[rows]
    probabilities, rewards = ledger.column("probabilities")[rows], ledger.column("rewards")[rows]
    shares, chances, paid = [], [], []
    for start, stop in itertools.pairwise(edges.tolist()):
        shares.append(np.bincount(played[start:stop], minlength=n_arms) / (stop - start))
        chances.append(probabilities[start:stop].mean(axis=0))
        known = rewards[start:stop][~np.isnan(rewards[start:stop])]
        paid.append(known.mean() if len(known) else np.nan)
    k = len(shares)
    return History(
        tuple(arms),
        edges[1:].astype(np.float64),
        np.reshape(shares, (k, n_arms)),
        np.reshape(chances, (k, n_arms)),
        np.array(paid),
        np.empty(0),
        np.empty((0, n_arms)),
    )


def dropped_of(ledger: Ledger) -> int:
    """Number of decisions whose reward never came."""
    return int((ledger.column("states") == DROPPED).sum())
