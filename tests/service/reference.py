"""What the service must do, told once more without a database: the model that a state machine compares it with."""

from dataclasses import dataclass, field
from uuid import UUID

SECOND = 1_000_000
PARKED_FOR = 60 * SECOND


@dataclass
class Decision:
    closes_at: int
    closes_on_reward: bool
    rewards: dict[str, float] = field(default_factory=dict)
    closed: bool = False


@dataclass
class Parked:
    decision: str
    key: str
    value: float
    time: int


@dataclass
class Reference:
    """One experiment."""

    window: float
    default: float | None
    on_arrival: bool
    arms: dict[str, str]  # arm -> active | paused | retired
    taken_in: set[str]  # arms that the learner knows
    active: bool = True
    decisions: dict[str, Decision] = field(default_factory=dict)
    keys: dict[str, tuple[str, object]] = field(default_factory=dict)  # idempotency key -> decision, request
    parked: list[Parked] = field(default_factory=list)
    waiting: list[tuple[str, str]] = field(default_factory=list)  # changes that have no number yet
    steps: list[tuple[str, str, float | None, str]] = field(default_factory=list)  # kind, subject, value, source

    def decide(self, decision: str, time: int) -> None:
        self.decisions[decision] = Decision(time + round(self.window * SECOND), self.on_arrival)

    def reward(self, decision: str, key: str, value: float, time: int) -> str:
        verdict = self._judge(decision, key, value, time)
        if verdict == "parked":
            self.parked.append(Parked(decision, key, value, time))
        elif verdict == "accepted":
            self._accept(decision, key, value, time)
        return verdict

    def _judge(self, decision: str, key: str, value: float, time: int) -> str:
        known = self.decisions.get(decision)
        if known is None:
            return "parked" if _looks_new(decision, time) else "unknown"
        if key in known.rewards:
            return "duplicate" if known.rewards[key] == value else "conflict"
        return "accepted" if not known.closed and time < known.closes_at else "late"

    def _accept(self, decision: str, key: str, value: float, time: int) -> None:
        known = self.decisions[decision]
        known.rewards[key] = value
        if known.closes_on_reward:
            known.closes_at = time

    def tick(self, time: int) -> None:
        still, shut = [], set()  # a decision that closes with its first reward takes no second one
        for event in self.parked:
            verdict = self._judge(event.decision, event.key, event.value, event.time)
            if verdict == "accepted" and event.decision not in shut:
                self._accept(event.decision, event.key, event.value, time)
                shut |= {event.decision} if self.decisions[event.decision].closes_on_reward else set()
            elif verdict == "parked" and time - event.time <= PARKED_FOR:
                still.append(event)
        self.parked = still
        if not self.active:
            return
        for kind, subject in self.waiting:
            self.steps.append((kind, subject, None, ""))
            self.taken_in |= {subject} if kind == "add-arm" else set()
        self.waiting = []
        due = [(d.closes_at, name) for name, d in self.decisions.items() if not d.closed and d.closes_at <= time]
        for _, name in sorted(due):
            decision = self.decisions[name]
            decision.closed = True
            if decision.rewards:
                self.steps.append(("outcome", name, sum(decision.rewards.values()), "reported"))
            else:
                self.steps.append(("outcome", name, self.default, "none" if self.default is None else "default"))

    def playable(self) -> set[str]:
        return {arm for arm, status in self.arms.items() if status == "active"} & self.taken_in

    def may_set(self, arm: str, status: str) -> bool:
        """Whether an arm's status may change: never back from retired, and one arm stays active."""
        others = [other for other, now in self.arms.items() if now == "active" and other != arm]
        return not (self.arms[arm] == "retired" and status != "retired") and (status == "active" or bool(others))


def _looks_new(decision: str, time: int) -> bool:
    try:
        value = UUID(decision)
    except ValueError:
        return False
    return value.version == 7 and abs(time - (value.int >> 80) * 1000) <= PARKED_FOR
