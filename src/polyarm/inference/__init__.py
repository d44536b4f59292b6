"""Engines: data in, posterior draws out."""

from polyarm.inference.beta import BetaEngine, BetaState
from polyarm.inference.conjugate import ConjugateEngine, ConjugateState
from polyarm.inference.features import FeatureEngine
from polyarm.inference.franchise import FranchiseState, HierarchicalEngine
from polyarm.inference.generalized import GeneralizedEngine, GeneralizedState
from polyarm.inference.gibbs import GibbsEngine, GibbsState
from polyarm.inference.hurdle import HurdleEngine, HurdleState
from polyarm.inference.kept_draws import KeptDraws
from polyarm.inference.kinds import KindsEngine
from polyarm.inference.kinds_state import KindsState
from polyarm.inference.particles import ParticleEngine, ParticleState
from polyarm.inference.presets import engine_names, make_engine
from polyarm.inference.robust import RobustEngine, RobustState
from polyarm.inference.rules import Budget, Sweeps
from polyarm.inference.state_file import load_state, save_state
from polyarm.inference.student import StudentEngine, StudentState
from polyarm.inference.variational import VariationalEngine, VariationalState

__all__ = [
    "BetaEngine",
    "BetaState",
    "Budget",
    "ConjugateEngine",
    "ConjugateState",
    "FeatureEngine",
    "FranchiseState",
    "GeneralizedEngine",
    "GeneralizedState",
    "GibbsEngine",
    "GibbsState",
    "HierarchicalEngine",
    "HurdleEngine",
    "HurdleState",
    "KeptDraws",
    "KindsEngine",
    "KindsState",
    "ParticleEngine",
    "ParticleState",
    "RobustEngine",
    "RobustState",
    "StudentEngine",
    "StudentState",
    "Sweeps",
    "VariationalEngine",
    "VariationalState",
    "engine_names",
    "load_state",
    "make_engine",
    "save_state",
]
