"""Logs of decisions in, the value of another policy out."""

from polyarm.evaluation.evaluator import evaluate
from polyarm.evaluation.result import Difference, Estimate, Evaluation
from polyarm.evaluation.reward_models import RewardModel
from polyarm.evaluation.targets import Vectorised

__all__ = ["Difference", "Estimate", "Evaluation", "RewardModel", "Vectorised", "evaluate"]
