"""A bandit against a small model of what it must remember, driven by Hypothesis; crashes go back to the last file."""

import copy
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule

from polyarm import Bandit
from polyarm.errors import Conflict, InvalidArgument, UnknownArm, UnknownDecision

REWARDS = st.integers(-3, 3).map(float)
CONTEXTS = st.fixed_dictionaries({"x": st.integers(-2, 2).map(float), "kind": st.sampled_from(["a", "b", "c"])})
EXTRA = [f"arm{i}" for i in range(4)]


class Model:
    """What a bandit must remember, in plain Python."""

    def __init__(self) -> None:
        self.arms = {"one": True, "two": True}
        self.open: dict[str, str] = {}
        self.learnt: dict[str, float] = {}
        self.dropped: set[str] = set()
        self.arm_of: dict[str, str] = {}
        self.n_logged = 0

    @property
    def active(self) -> list[str]:
        return [name for name, active in self.arms.items() if active]


class BanditMachine(RuleBasedStateMachine):
    """Every call a user can make, in any order."""

    policy = "linear"
    ids = Bundle("ids")

    @initialize(seed=st.integers(0, 3), least=st.sampled_from([0.0, 0.05]), most=st.sampled_from([None, 4]))
    def start(self, seed: int, least: float, most: int | None) -> None:
        columns = {"x": float, "kind": ["a", "b", "c"]}
        self.bandit = Bandit(
            ["one", "two"], columns, policy=self.policy, seed=seed, min_propensity=least, max_pending=most
        )
        self.model, self.most, self.count = Model(), most, 0
        self.save()

    @rule()
    def save(self) -> None:
        self.saved = self.bandit.to_bytes(), copy.deepcopy(self.model)

    @rule()
    def crash(self) -> None:
        data, model = self.saved
        self.bandit, self.model = Bandit.from_bytes(data), copy.deepcopy(model)
        assert self.bandit.to_bytes() == data

    @rule()
    def move(self) -> None:
        self.bandit = Bandit.from_bytes(self.bandit.to_bytes())

    @rule(target=ids, context=CONTEXTS, data=st.data())
    def choose(self, context: Any, data: Any) -> str:
        some = data.draw(st.none() | st.lists(st.sampled_from(self.model.active), min_size=1, unique=True))
        self.count += 1
        name = f"id{self.count}"
        decision = self.bandit.choose(context, eligible=some, id=name)
        assert decision.arm in (some or self.model.active)
        assert {arm for arm, p in decision.probabilities.items() if p > 0} <= set(some or self.model.active)
        assert sum(decision.probabilities.values()) == 1.0
        self._opened(decision.id, decision.arm)
        return decision.id

    @rule(contexts=st.lists(CONTEXTS, max_size=3))
    def choose_many(self, contexts: Any) -> None:
        found = self.bandit.choose_many(contexts)
        for decision in found:
            self.model.open[decision.id] = self.model.arm_of[decision.id] = decision.arm
        self._bound()

    def _opened(self, name: str, arm: str) -> None:
        self.model.open[name] = self.model.arm_of[name] = arm
        self._bound()

    def _bound(self) -> None:
        while self.most is not None and len(self.model.open) > self.most:
            oldest = next(iter(self.model.open))
            del self.model.open[oldest]
            self.model.dropped.add(oldest)

    @rule(name=ids, reward=REWARDS)
    def learn(self, name: str, reward: float) -> None:
        model = self.model
        if name in model.open:
            assert self.bandit.learn(name, reward) is True
            del model.open[name]
            model.learnt[name] = reward
        elif name in model.learnt:
            if model.learnt[name] == reward:
                assert self.bandit.learn(name, reward) is False
            else:
                with pytest.raises(Conflict):
                    self.bandit.learn(name, reward)
        else:  # dropped, or made after the file that a crash went back to
            with pytest.raises(UnknownDecision):
                self.bandit.learn(name, reward)

    @rule(reward=REWARDS, n=st.integers(1, 3))
    def learn_open(self, reward: float, n: int) -> None:
        names = list(self.model.open)[:n]
        assert self.bandit.learn_many(names, [reward] * len(names)) == [True] * len(names)
        for name in names:
            del self.model.open[name]
            self.model.learnt[name] = reward

    @rule(context=CONTEXTS, reward=REWARDS, data=st.data())
    def learn_logged(self, context: Any, reward: float, data: Any) -> None:
        arm = data.draw(st.sampled_from(list(self.model.arms)))
        self.bandit.learn_logged([context], [arm], [reward])
        self.model.n_logged += 1

    @rule(name=consumes(ids))
    def drop(self, name: str) -> None:
        if name in self.model.open:
            assert self.bandit.drop(name) is True
            del self.model.open[name]
            self.model.dropped.add(name)
        elif name in self.model.dropped:
            assert self.bandit.drop(name) is False
        else:
            with pytest.raises((Conflict, UnknownDecision)):
                self.bandit.drop(name)

    @rule(name=st.sampled_from(EXTRA))
    def add_arm(self, name: str) -> None:
        if name in self.model.arms:
            with pytest.raises(InvalidArgument):
                self.bandit.add_arm(name)
        else:
            self.bandit.add_arm(name)
            self.model.arms[name] = True

    @precondition(lambda self: len(self.model.active) > 1)
    @rule(data=st.data())
    def retire_arm(self, data: Any) -> None:
        name = data.draw(st.sampled_from(self.model.active))
        self.bandit.retire_arm(name)
        self.model.arms[name] = False

    @rule(data=st.data())
    def restore_arm(self, data: Any) -> None:
        name = data.draw(st.sampled_from(list(self.model.arms)))
        self.bandit.restore_arm(name)
        self.model.arms[name] = True

    @rule()
    def fail(self) -> None:
        before = self.bandit.to_bytes()
        for call in (
            lambda: self.bandit.choose({"x": 1.0, "kind": "d"}),
            lambda: self.bandit.choose({"x": float("nan"), "kind": "a"}),
            lambda: self.bandit.learn("nobody", 1.0),
            lambda: self.bandit.learn_many([*self.bandit.pending, "nobody"], [1.0] * (len(self.bandit.pending) + 1)),
            lambda: self.bandit.choose({"x": 1.0, "kind": "a"}, eligible=["nobody"]),
            lambda: self.bandit.learn_logged([{"x": 1.0, "kind": "a"}], ["nobody"], [1.0]),
        ):
            with pytest.raises((InvalidArgument, UnknownArm, UnknownDecision)):
                call()
        assert self.bandit.to_bytes() == before

    @rule(data=st.data())
    def recompute(self, data: Any) -> None:
        if self.model.arm_of:
            name = data.draw(st.sampled_from(sorted(self.model.arm_of)))
            assert self.bandit.recompute(name) == self.bandit.decision(name)
            assert self.bandit.decision(name).arm == self.model.arm_of[name]

    @invariant()
    def agrees(self) -> None:
        model = self.model
        assert list(self.bandit.pending) == list(model.open)
        assert list(self.bandit.arms) == model.active
        assert self.bandit.n_learnt == len(model.learnt) + model.n_logged
        assert self.bandit.n_decisions == len(model.arm_of)
