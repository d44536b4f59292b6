"""The stateful front door: named arms, decisions with identities, rewards that come late."""

from polyarm.bandit.bandit import Bandit
from polyarm.bandit.decision import Decision, Decisions
from polyarm.bandit.features import Category, Cyclic, Flag, Number
from polyarm.bandit.lottery import draw_arm

__all__ = ["Bandit", "Category", "Cyclic", "Decision", "Decisions", "Flag", "Number", "draw_arm"]
