"""The front door: arms with names, decisions with identities, rewards that come late."""

import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from polyarm.bandit import figures, file, learnt, lottery, report
from polyarm.bandit.decision import Decision, Decisions
from polyarm.bandit.features import Number, Schema
from polyarm.bandit.identity import new_id, new_ids, require_id
from polyarm.bandit.learner import Learner, copied
from polyarm.bandit.learnt import Density, Effect, History, Prediction, Summary
from polyarm.bandit.ledger import DROPPED, LEARNT, Ledger
from polyarm.bandit.log import LogFolder, require_loggable, table_of
from polyarm.bandit.looks import Look, shares_of_best
from polyarm.bandit.settings import Settings, require_arm_names, require_room_for
from polyarm.bandit.tables import codes_of
from polyarm.errors import (
    Conflict,
    InvalidArgument,
    UnknownArm,
    UnknownDecision,
    require,
    require_array,
    require_reward,
    require_writable_parent,
    shown,
)
from polyarm.files import write_atomically
from polyarm.types import AnyPolicy, Array, IntArray, Mask

LOG = logging.getLogger("polyarm")
RECENT = 1000

Named: TypeAlias = Decision | str


class Arm:
    """An arm: its name, the numbers of rewards learnt and of rows in the ledger when it came, whether it is played."""

    def __init__(self, name: str, since: int = 0, row: int = 0, active: bool = True) -> None:
        self.name, self.since, self.row, self.active = name, since, row, active


class Bandit:
    """Decide between named arms and learn from their rewards, whenever they come.

    arms            names
    context         None, a number of columns, their names, or columns by name: float, bool, a list of levels,
                    `Cyclic(24)`; `Number(optional=True)` and the like may be missing
    policy          a name from `polyarm list policies`, `options` its settings
    objective       what an arm is judged by: "mean", or a functional of its reward's distribution
    min_propensity  every eligible arm is played with at least this probability
    max_pending     so many decisions may wait for their reward; the oldest beyond are dropped
    seed            one integer behind every random number, with the ids of decisions: give your own, and a run repeats;
                    drawn if None
    log             a folder to which decisions are added as Parquet once their reward has come

    Any number of threads may use one bandit; a call that fails changes nothing.

    >>> bandit = Bandit(arms=["red", "blue"], context={"evening": bool}, seed=7)
    >>> decision = bandit.choose({"evening": True}, id="visit-1")
    >>> decision.arm in bandit.arms
    True
    >>> bandit.learn(decision, 1.5)
    True
    >>> bandit.n_learnt, bandit.pending
    (1, ())
    """

    def __init__(
        self,
        arms: Iterable[str],
        context: Any = None,
        policy: str = "nonparametric",
        objective: Any = "mean",
        min_propensity: float = 0.0,
        seed: int | None = None,
        *,
        options: Mapping[str, Any] | None = None,
        max_pending: int | None = None,
        log: str | Path | None = None,
    ) -> None:
        settings = Settings.checked(arms, context, policy, options, objective, min_propensity, max_pending, seed)
        made = settings.make_policy()
        self._set_up(
            settings,
            [Arm(name) for name in settings.arms],
            Learner(made, made.init(), settings.seed, n_arms=len(settings.arms)),
            Ledger(len(settings.schema.names), len(settings.arms)),
            first_origins(settings.schema),
            log,
        )

    def _set_up(
        self,
        settings: Settings,
        arms: list[Arm],
        learner: Learner,
        ledger: Ledger,
        origins: Array,
        log: str | Path | None,
    ) -> None:
        if log is not None:
            require_loggable(settings.schema)
        self._folder = None if log is None else LogFolder(log)
        self.settings = settings
        self._schema = settings.schema
        self._arms = arms
        self._learner = learner
        self._ledger = ledger
        self._see(origins)
        self._recent: dict[int, tuple[Array, int]] = {}  # what the model saw in the last open rows, and their arms
        self._digest, self._stream = lottery.Digest(settings.seed), lottery.KeyedStream()
        self._least = float(settings.min_propensity)
        self._judges = settings.objective == "mean"  # then a policy may give its means with its probabilities
        self._lock = threading.RLock()
        self._name_arms()

    def _see(self, origins: Array) -> None:
        self._origins, self._all_seen = origins, not np.isnan(origins).any()
        self._scales = self._schema.scales(origins)

    def _name_arms(self) -> None:
        self._names = tuple(arm.name for arm in self._arms)
        self._number = {name: number for number, name in enumerate(self._names)}
        self._active: Mask = np.array([arm.active for arm in self._arms])
        self._all_active = all(arm.active for arm in self._arms)

    @property
    def arms(self) -> tuple[str, ...]:
        """Names of the arms that are played."""
        return tuple(arm.name for arm in self._arms if arm.active)

    @property
    def retired(self) -> tuple[str, ...]:
        """Names of the arms that are no longer played."""
        return tuple(arm.name for arm in self._arms if not arm.active)

    @property
    def n_learnt(self) -> int:
        """Number of rewards learnt."""
        return self._learner.n_learnt

    @property
    def n_decisions(self) -> int:
        """Number of decisions made."""
        return len(self._ledger.place)

    @property
    def pending(self) -> tuple[str, ...]:
        """Ids of the decisions that wait for their reward, oldest first."""
        with self._lock:
            return tuple(self._ledger.open)

    def __repr__(self) -> str:
        return (
            f"Bandit({len(self.arms)} arms, policy {self.settings.policy!r}, "
            f"{self.n_decisions} decisions, {self.n_learnt} rewards learnt, {len(self._ledger.open)} pending)"
        )

    def choose(self, context: Any = None, *, eligible: Iterable[str] | None = None, id: str | None = None) -> Decision:
        """Decide in this context, among the eligible arms or all of them, under an id of yours or a new one."""
        codes = self._schema.codes(context)
        with self._lock:
            mask = self._mask(eligible)
            name = new_id() if id is None else self._new_name(id)
            origins = self._origins if self._all_seen else self._schema.origins_after(self._origins, codes[None])
            x = self._schema.features(codes, origins, self._scales if self._all_seen else None)
            p, arm, means = self._decided(self._learner, name, x, mask)
            if not self._all_seen:
                self._see(origins)
            n_learnt = self._learner.n_learnt
            self._recent[len(self._ledger.ids)] = (x, arm)
            if len(self._recent) > RECENT:
                del self._recent[next(iter(self._recent))]
            self._ledger.add_one(name, codes, mask, p, means, arm, n_learnt, time.time_ns())
            if self.settings.max_pending is not None:
                self._drop_beyond()
            return Decision((name, self._names, arm, p, means, n_learnt, self._schema, codes))

    def choose_many(
        self, contexts: Any, *, eligible: Iterable[str] | None = None, ids: Sequence[str] | None = None
    ) -> Decisions:
        """Decide in many contexts at once: a table, rows, or a number where there is no context.

        All see the same state, so no decision of the batch knows the reward of another.
        """
        codes = codes_of(self._schema, contexts)
        n = len(codes)
        with self._lock:
            mask = self._mask(eligible)
            names = new_ids(n) if ids is None else [self._new_name(name) for name in ids]
            require(len(names) == n, "ids", f"one for each of {n} contexts", f"{len(names)} ids")
            require(len(set(names)) == n, "ids", "all different", ids)
            origins = self._schema.origins_after(self._origins, codes)
            xs = self._schema.features_many(codes, origins)
            p, arms, means = self._decided_many(self._learner, names, xs, mask)
            self._see(origins)
            self._ledger.add_open(names, codes, mask, p, means, arms, self.n_learnt, time.time_ns(), batch=True)
            self._drop_beyond()
            drawn = p[np.arange(n), arms]
            return Decisions(names, drawn, p, means, self.n_learnt, arms, self._names, self._schema, codes)

    def learn(self, decision: Named, reward: float) -> bool:
        """Learn the reward of a decision, given by itself or by its id.

        True if it was learnt now, False if this very reward was learnt before.
        """
        y = require_reward(reward)
        name = _name_of(decision)
        with self._lock:
            row = self._ledger.open.get(name)
            if row is None:
                return self._is_open(name, y)
            self._learner.learn((self._lesson(row, y),))
            self._ledger.close(name, y, self._learner.n_learnt - 1)
            if self._folder is not None:
                self._note([name])
            return True

    def learn_many(self, decisions: Iterable[Named], rewards: ArrayLike) -> list[bool]:
        """Learn many rewards in this order, all of them or, on an error, none."""
        names = [_name_of(decision) for decision in decisions]
        values = [require_reward(reward, f"rewards[{i}]") for i, reward in enumerate(_listed(rewards, "rewards"))]
        require(len(values) == len(names), "rewards", f"one for each of {len(names)} decisions", f"{len(values)}")
        with self._lock:
            fresh: dict[str, float] = {}
            told = []
            for name, y in zip(names, values, strict=True):
                if name in fresh and fresh[name] != y:
                    raise Conflict(f"reward of decision {name!r} must be given once, got {fresh[name]} and {y}")
                told.append(name not in fresh and self._is_open(name, y))
                if told[-1]:
                    fresh[name] = y
            first = self.n_learnt
            self._learner.learn(self._lesson(self._ledger.open[name], y) for name, y in fresh.items())
            for turn, (name, y) in enumerate(fresh.items(), first):
                self._ledger.close(name, y, turn)
            self._note(list(fresh))
            return told

    def learn_logged(self, contexts: Any, arms: Sequence[str], rewards: ArrayLike) -> int:
        """Learn from a table of contexts, arms and rewards that another system decided; gives their number."""
        codes = codes_of(self._schema, contexts)
        values = [require_reward(reward, f"rewards[{i}]") for i, reward in enumerate(_listed(rewards, "rewards"))]
        with self._lock:
            numbers = np.array([self._arm_number(arm) for arm in _listed(arms, "arms")], np.int64)
            for what, n in (("arms", len(numbers)), ("rewards", len(values))):
                require(n == len(codes), what, f"one for each of {len(codes)} contexts", n)
            origins = self._schema.origins_after(self._origins, codes)
            xs = self._schema.features_many(codes, origins)
            first = self.n_learnt
            self._learner.learn(zip(xs, numbers.tolist(), values, strict=True))
            self._see(origins)
            self._ledger.add_logged(codes, numbers, np.array(values), first, time.time_ns())
            return len(values)

    def drop(self, decision: Named) -> bool:
        """Give up waiting for the reward of a decision; False if that was done before."""
        name = _name_of(decision)
        with self._lock:
            if name in self._ledger.open:
                self._ledger.drop(name)
                self._note([name])
                return True
            row = self._row(name)
            if self._ledger.column("states")[row] == LEARNT:
                raise Conflict(f"decision {name!r} must be open, got one whose reward was learnt")
            return False

    def decision(self, id: str) -> Decision:
        """The decision of that id."""
        with self._lock:
            row = self._row(id)
            ledger = self._ledger
            arm = int(ledger.column("arms")[row])
            names = self._names[: self._n_arms_at(row)]
            p, means = (ledger.column(name)[row, : len(names)].copy() for name in ("probabilities", "means"))
            known, codes = None if np.isnan(means[0]) else means, ledger.column("codes")[row].copy()
            return Decision((id, names, arm, p, known, int(ledger.column("seen")[row]), self._schema, codes))

    def reward(self, decision: Named) -> float | None:
        """The reward that was learnt for a decision; None while it is open or dropped."""
        with self._lock:
            value = float(self._ledger.column("rewards")[self._row(_name_of(decision))])
            return None if value != value else value

    def recompute(self, decision: Named) -> Decision:
        """Make a decision again from its id: the state it saw is learnt again, the rest follows from seed and id.

        What comes out equals what was decided, or something was tampered with.
        """
        with self._lock:
            name = _name_of(decision)
            row = self._row(name)
            ledger = self._ledger
            learner = self._learner_at(int(ledger.column("seen")[row]), row)
            rows = ledger.rows_of(row)
            mask = ledger.column("eligible")[row][: learner.n_arms]
            codes = ledger.column("codes")[rows]
            if ledger.column("batches")[row] < 0:
                x = self._schema.features(codes[0], self._origins)
                p, arm, means = self._decided(learner, name, x, mask)
            else:
                xs = self._schema.features_many(codes, self._origins)
                shares, arms, all_means = self._decided_many(learner, ledger.ids[rows], xs, mask)
                p, arm = shares[row - rows.start], int(arms[row - rows.start])
                means = None if all_means is None else all_means[row - rows.start]
            names, seen = self._names[: learner.n_arms], codes[row - rows.start]
            return Decision((name, names, arm, p, means, learner.n_learnt, self._schema, seen))

    def add_arm(self, name: str) -> None:
        """Take in a new arm, which starts from what the arms share."""
        (arm,) = require_arm_names([name])
        with self._lock:
            advice = "restore_arm brings a retired one back" if arm in self._number else ""
            require(arm not in self._number, "arm", "a new name", name, advice)
            require_room_for(self.settings.min_propensity, len(self.arms) + 1)
            self._learner.add_arm()
            self._ledger.add_arm()
            self._arms.append(Arm(arm, self.n_learnt, len(self._ledger)))
            self._name_arms()

    def retire_arm(self, name: str) -> None:
        """Play an arm no more; what was learnt of it stays, and rewards of its open decisions are still learnt."""
        with self._lock:
            number = self._arm_number(name)
            others = [arm.active for i, arm in enumerate(self._arms) if i != number]
            require(any(others), "arm", "not the last one that is played", name)
            self._arms[number].active = False
            self._name_arms()

    def restore_arm(self, name: str) -> None:
        """Play a retired arm again."""
        with self._lock:
            number = self._arm_number(name)
            if not self._arms[number].active:
                require_room_for(self.settings.min_propensity, len(self.arms) + 1)
            self._arms[number].active = True
            self._name_arms()

    def save(self, path: str | Path) -> Path:
        """Write the whole bandit to one file; an interrupted write leaves the old file whole."""
        with self._lock:
            data = file.packed(self._contents())
            if self._folder is not None:
                self._folder.flush(self._ledger, self._schema, self._names)
        return file.write(path, data)

    @classmethod
    def load(cls, path: str | Path, *, log: str | Path | None = None) -> "Bandit":
        """The bandit in a file; it continues bit for bit.  `log` is a folder for its decisions from now on."""
        return cls.from_bytes(file.read(path), str(path), log)

    def log(self) -> Any:
        """Every decision as a row of an Arrow table; the reward is null while it is open, or was dropped."""
        require_loggable(self._schema)
        with self._lock:
            return table_of(self._ledger, self._schema, self._names)

    def to_bytes(self) -> bytes:
        """The whole bandit as the bytes of its file."""
        with self._lock:
            return file.packed(self._contents())

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "data", log: str | Path | None = None) -> "Bandit":
        """The bandit in the bytes of a file; `name` is what an error calls them."""
        contents = file.unpacked(data, name)
        bandit = cls.__new__(cls)
        with file.refusing(name):
            arms = [Arm(*arm) for arm in contents.arms]
            ledger = Ledger.restored(contents.ids, contents.columns)
            learner = file.learner_of(contents)
            bandit._set_up(contents.settings, arms, learner, ledger, contents.origins, log)
        return bandit

    def predict(self, context: Any = None, *, look: int = 0) -> Prediction:
        """What is known of every arm in this context: expected reward, interval, probability of being best, plays."""
        codes = self._schema.codes(context)
        with self._lock:
            view, x, names, active = self._look(look), self._seen_as(codes), self._names, self._active
            plays = learnt.counts_of(self._ledger, len(names)).plays
        return learnt.predict(view, x, names, active, plays)

    def summary(self, *, look: int = 0) -> Summary:
        """What is known of every arm over the contexts met so far."""
        with self._lock:
            xs = self._schema.features_many(learnt.sample_of(self._ledger), self._origins)
            view = self._look(look) if hasattr(self._learner.policy, "engine") else None
            names, active, counts = self._names, self._active, learnt.counts_of(self._ledger, len(self._names))
        return learnt.summarise(view, xs, names, active, counts)

    def density(self, arm: str, context: Any = None, grid: ArrayLike | None = None, *, look: int = 0) -> Density:
        """Density of the arm's next reward in this context, with a 95 % band, at the grid's points or over its bulk."""
        codes = self._schema.codes(context)
        with self._lock:
            number, view, x = self._arm_number(arm), self._look(look), self._seen_as(codes)
        points = learnt.grid_for(view, x, [number]) if grid is None else require_array(grid, "grid")
        return learnt.density_at(view, x, arm, number, points)

    def effects(self, arm: str, context: Any = None, *, look: int = 0) -> list[Effect]:
        """How the expected reward of an arm moves with each column, the others as in `context`, else as typical."""
        return self._effects([arm], context, look)

    def history(self, n_looks: int = 12) -> History:
        """Plays, rewards, and the probability of being best at so many times, for which rewards are learnt again."""
        with self._lock:
            found, names, n_learnt = learnt.history_of(self._ledger, self._names), self._names, self.n_learnt
            columns = {name: column.copy() for name, column in self._ledger.columns().items()}
            past = self._contents()._replace(columns=columns, state=None)
            xs = self._schema.features_many(learnt.sample_of(self._ledger, 10), self._origins)
            if n_looks < 1 or n_learnt == 0 or not hasattr(self._learner.policy, "engine"):
                return found
        times = np.unique(np.linspace(0, n_learnt, n_looks + 1).astype(np.int64))[1:]
        best = np.zeros((len(times), len(names)))
        for row, learner in zip(best, file.learners_along(past, times.tolist()), strict=True):
            view = Look.at(learner.policy, learner.state, self.settings.seed, learner.n_learnt)
            there = np.ones(learner.n_arms, np.bool_)  # arms that were retired later were in the race then
            row[: learner.n_arms] = shares_of_best(view.draws(xs, 30)[1], there).mean(axis=0)
        return replace(found, learnt=times.astype(np.float64), best=best)

    def plot_densities(self, context: Any = None, arms: Sequence[str] | None = None) -> Any:
        """Figure of what each arm may pay in this context."""
        codes = self._schema.codes(context)
        with self._lock:
            names = list(arms or self.arms)
            view, x = self._look(0), self._seen_as(codes)
            numbers = [self._arm_number(name) for name in names]
        grid = learnt.grid_for(view, x, numbers)
        found = [learnt.density_at(view, x, name, number, grid) for name, number in zip(names, numbers, strict=True)]
        return figures.draw_densities(found, self._number)

    def plot_history(self, n_looks: int = 12) -> Any:
        """Figure of plays, rewards and the probability of being best over time."""
        return figures.draw_history(self.history(n_looks))

    def plot_effects(self, context: Any = None, arms: Sequence[str] | None = None) -> Any:
        """Figure of how the expected reward of each arm moves with each column."""
        return figures.draw_effects(self._effects(list(arms or self.arms), context, 0), self._number)

    def report(self, path: str | Path, context: Any = None, *, evaluation: Any = None) -> Path:
        """Write all that was learnt to one HTML file that needs nothing else to be opened.

        evaluation  what `polyarm.evaluation.evaluate` found from the log, to be shown with it
        """
        rule = "None or what `evaluate` gave"
        require(evaluation is None or hasattr(evaluation, "html"), "evaluation", rule, evaluation)
        target = require_writable_parent(path)
        with self._lock:
            here = self._typical() if context is None and self._schema.names else context
        write_atomically(target, report.page(self, here, evaluation).encode())
        return target

    def _look(self, look: int) -> Look:
        """A view with an engine and a state of its own, so that others may decide and learn while somebody looks."""
        policy = file.empty_learner(self._contents(), len(self._names)).policy
        return Look.at(policy, copied(self._learner.state), self.settings.seed, self.n_learnt, look)

    def _seen_as(self, codes: Array) -> Array:
        return self._schema.features(codes, self._schema.origins_after(self._origins, codes[None]))

    def _typical(self) -> dict[str, Any] | None:
        return self._schema.context(learnt.typical(self._schema, self._ledger.column("codes")))

    def _effects(self, arms: Sequence[str], context: Any, look: int) -> list[Effect]:
        with self._lock:
            codes = self._ledger.column("codes").copy()
            here = learnt.typical(self._schema, codes) if context is None else self._schema.codes(context)
            origins = self._schema.origins_after(self._origins, here[None])
            pairs, view = [(arm, self._arm_number(arm)) for arm in arms], self._look(look)
        return learnt.effects_of(view, self._schema, origins, here, codes, pairs)

    def _contents(self) -> file.Contents:
        return file.Contents(
            self.settings,
            [(arm.name, arm.since, arm.row, arm.active) for arm in self._arms],
            self._origins,
            self.n_learnt,
            self._ledger.ids,
            self._ledger.columns(),
            self._learner.state,
        )

    def _mask(self, eligible: Iterable[str] | None) -> Mask:
        if eligible is None:
            return self._active
        require(not isinstance(eligible, str), "eligible", "a list of arms", eligible)
        mask = np.zeros(len(self._arms), np.bool_)
        for name in eligible:
            number = self._arm_number(name)
            if not self._arms[number].active:
                raise UnknownArm(f"eligible must be arms that are played, got the retired {name!r}")
            mask[number] = True
        require(bool(mask.any()), "eligible", "at least one arm", eligible)
        return mask

    def _arm_number(self, name: str) -> int:
        try:
            return self._number[name]
        except (KeyError, TypeError):
            raise UnknownArm(f"arm must be one of {', '.join(self._names)}, got {shown(name)}") from None

    def _new_name(self, name: str) -> str:
        if require_id(name) in self._ledger.place:
            raise Conflict(f"id must be new, got {shown(name)} of an earlier decision")
        return name

    def _row(self, name: str) -> int:
        try:
            return self._ledger.place[name]
        except (KeyError, TypeError):
            raise UnknownDecision(f"id must be that of a decision of this bandit, got {shown(name)}") from None

    def _is_open(self, name: str, reward: float) -> bool:
        """Whether the reward can be learnt; False if it was, an error if it never can be."""
        if name in self._ledger.open:
            return True
        row = self._row(name)
        if self._ledger.column("states")[row] == DROPPED:
            raise UnknownDecision(f"decision {name!r} must be open, got one that was dropped")
        known = float(self._ledger.column("rewards")[row])
        if known != reward:
            raise Conflict(f"reward of decision {name!r} must be given once, got {reward} after {known}")
        return False

    def _lesson(self, row: int, reward: float) -> tuple[Array, int, float]:
        recent = self._recent.pop(row, None)
        if recent is not None:
            return *recent, reward
        codes, arm = self._ledger.played(row)
        return self._schema.features(codes, self._origins, self._scales), arm, reward

    def _decided(self, learner: Learner, name: str, x: Array, mask: Mask) -> tuple[Array, int, Array | None]:
        """Probabilities, arm and expected rewards of the decision of that name."""
        bits = self._digest.of(name)
        policy: Any = learner.policy
        some = None if (mask is self._active and self._all_active) or mask.all() else mask
        if self._judges and hasattr(policy, "judge"):
            q, means = policy.judge(learner.state, x, self._stream.at(bits), some)
        else:
            q = np.ascontiguousarray(policy.probabilities(learner.state, x, self._stream.at(bits), some), np.float64)
            means = _means_of(policy, learner.state, x)
        return *lottery.drawn(q, mask, self._least, lottery.ticket_in(bits)), means

    def _decided_many(
        self, learner: Learner, names: Sequence[str], xs: Array, mask: Mask
    ) -> tuple[Array, IntArray, Array | None]:
        """The same for a batch, whose random numbers follow from its first name."""
        if not names:
            return np.empty((0, len(mask))), np.empty(0, np.int64), None
        policy = learner.policy
        rng, some = self._stream.at(self._digest.of(names[0])), None if mask.all() else mask
        judge: Any = policy
        if self._judges and hasattr(judge, "judge_many"):
            q, means = judge.judge_many(learner.state, xs, rng, some)
        else:
            q = policy.probabilities_many(learner.state, xs, rng, some)
            each = [_means_of(policy, learner.state, x) for x in xs]
            means = None if each[0] is None else np.stack(each)  # type: ignore[arg-type]
        q = np.ascontiguousarray(q, np.float64)
        return *lottery.drawn_many(q, mask, self._least, lottery.tickets(self.settings.seed, names)), means

    def _learner_at(self, n_learnt: int, row: int) -> Learner:
        """The learner as it was when so many rewards had been learnt, before this row."""
        n_arms = self._n_arms_at(row)
        if n_learnt == self.n_learnt and n_arms == len(self._names):
            return self._learner
        return file.learnt_again(self._contents(), n_learnt, n_arms)

    def _note(self, closed: Sequence[str]) -> None:
        if self._folder is not None:
            self._folder.add(self._ledger, self._schema, self._names, closed)

    def _n_arms_at(self, row: int) -> int:
        return sum(arm.row <= row for arm in self._arms)

    def _drop_beyond(self) -> None:
        most = self.settings.max_pending
        if most is None or len(self._ledger.open) <= most:
            return
        oldest = list(self._ledger.open)[: len(self._ledger.open) - most]
        for name in oldest:
            self._ledger.drop(name)
        self._note(oldest)
        LOG.warning("dropped %d open decisions beyond max_pending=%d: %s", len(oldest), most, shown(oldest))


def first_origins(schema: Schema) -> Array:
    """Origins of the columns before any context: unknown for numbers."""
    return np.array([np.nan if isinstance(column, Number) else 0.0 for column in schema.columns.values()])


def _name_of(decision: Named) -> str:
    name = decision.id if isinstance(decision, Decision) else decision
    require(isinstance(name, str), "decision", "a decision or its id", decision)
    return name


def _listed(values: Any, name: str) -> list[Any]:
    try:
        return list(values.to_list()) if hasattr(values, "to_list") else list(values)
    except TypeError:
        raise InvalidArgument(f"{name} must be a list or a column, got {shown(values)}") from None


def _means_of(policy: AnyPolicy, state: Any, x: Array) -> Array | None:
    inner: Any = policy
    if not hasattr(inner, "engine"):
        return None
    means: Array = inner.engine.expected_means(inner.engine_state(state), x)
    return means
