"""Engines: data in, posterior draws out."""

from polyarm.inference.conjugate import ConjugateEngine, ConjugateState
from polyarm.inference.features import FeatureEngine
from polyarm.inference.gibbs import Budget, GibbsEngine, GibbsState, Sweeps
from polyarm.inference.kept_draws import KeptDraws
from polyarm.inference.state_file import load_state, save_state
from polyarm.inference.student import StudentEngine, StudentState

__all__ = [
    "Budget",
    "ConjugateEngine",
    "ConjugateState",
    "FeatureEngine",
    "GibbsEngine",
    "GibbsState",
    "KeptDraws",
    "StudentEngine",
    "StudentState",
    "Sweeps",
    "load_state",
    "save_state",
]
