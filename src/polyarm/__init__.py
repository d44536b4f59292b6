"""polyarm: contextual bandits for rewards of unknown shape."""

from importlib import import_module
from typing import TYPE_CHECKING, Any
from warnings import warn

__version__ = "0.2.0"

if TYPE_CHECKING:
    from polyarm.bandit import Bandit, Category, Cyclic, Decision, Flag, Number
    from polyarm.choosing import PolicyDefaults
    from polyarm.environments import Scenario, make_scenario, scenario_names
    from polyarm.errors import PolyarmError
    from polyarm.evaluation import evaluate
    from polyarm.experiments.comparison import compare
    from polyarm.experiments.running.policy_specs import PolicySpec
    from polyarm.inference import (
        Budget,
        ConjugateEngine,
        GibbsEngine,
        HierarchicalEngine,
        ParticleEngine,
        RobustEngine,
        StudentEngine,
        Sweeps,
        VariationalEngine,
        engine_names,
        load_state,
        make_engine,
        save_state,
    )
    from polyarm.models import (
        ExpectedShortfall,
        ExponentialUtility,
        HierarchicalMixture,
        LinearGaussian,
        LinearMixture,
        NormalInverseGamma,
        Objective,
        ProbabilityAbove,
        Quantile,
        RobustMixture,
        StudentMixture,
    )
    from polyarm.policies import (
        BayesUCB,
        Greedy,
        InformationDirected,
        InitialPulls,
        OptimisticSampling,
        ThompsonSampling,
        Uniform,
        make_policy,
        policy_names,
        probability_best,
    )
    from polyarm.regression.regressor import MixtureRegressor
    from polyarm.types import Array, Choice, Engine, Environment, Mask, Policy, RewardModel, World

_HOMES = {  # loaded when first asked for, so that `import polyarm` is quick and needs no extra
    "PolicyDefaults": "choosing",
    "Scenario": "environments",
    "make_scenario": "environments",
    "scenario_names": "environments",
    "Bandit": "bandit",
    "Category": "bandit",
    "Cyclic": "bandit",
    "Decision": "bandit",
    "Flag": "bandit",
    "Number": "bandit",
    "PolyarmError": "errors",
    "evaluate": "evaluation",
    "compare": "experiments.comparison",
    "PolicySpec": "experiments.running.policy_specs",
    "Budget": "inference",
    "ConjugateEngine": "inference",
    "GibbsEngine": "inference",
    "HierarchicalEngine": "inference",
    "ParticleEngine": "inference",
    "RobustEngine": "inference",
    "StudentEngine": "inference",
    "Sweeps": "inference",
    "VariationalEngine": "inference",
    "engine_names": "inference",
    "load_state": "inference",
    "make_engine": "inference",
    "save_state": "inference",
    "ExpectedShortfall": "models",
    "ExponentialUtility": "models",
    "Objective": "models",
    "ProbabilityAbove": "models",
    "Quantile": "models",
    "HierarchicalMixture": "models",
    "LinearGaussian": "models",
    "LinearMixture": "models",
    "NormalInverseGamma": "models",
    "RobustMixture": "models",
    "StudentMixture": "models",
    "BayesUCB": "policies",
    "Greedy": "policies",
    "InformationDirected": "policies",
    "InitialPulls": "policies",
    "OptimisticSampling": "policies",
    "ThompsonSampling": "policies",
    "Uniform": "policies",
    "make_policy": "policies",
    "policy_names": "policies",
    "probability_best": "policies",
    "MixtureRegressor": "regression.regressor",
    "Array": "types",
    "Choice": "types",
    "Engine": "types",
    "Environment": "types",
    "Mask": "types",
    "Policy": "types",
    "RewardModel": "types",
    "World": "types",
}

__all__ = [
    "Array",
    "Bandit",
    "BayesUCB",
    "Budget",
    "Category",
    "Choice",
    "ConjugateEngine",
    "Cyclic",
    "Decision",
    "Engine",
    "Environment",
    "ExpectedShortfall",
    "ExponentialUtility",
    "Flag",
    "GibbsEngine",
    "Greedy",
    "HierarchicalEngine",
    "HierarchicalMixture",
    "InformationDirected",
    "InitialPulls",
    "LinearGaussian",
    "LinearMixture",
    "Mask",
    "MixtureRegressor",
    "NormalInverseGamma",
    "Number",
    "Objective",
    "OptimisticSampling",
    "ParticleEngine",
    "Policy",
    "PolicyDefaults",
    "PolicySpec",
    "PolyarmError",
    "ProbabilityAbove",
    "Quantile",
    "RewardModel",
    "RobustEngine",
    "RobustMixture",
    "Scenario",
    "StudentEngine",
    "StudentMixture",
    "Sweeps",
    "ThompsonSampling",
    "Uniform",
    "VariationalEngine",
    "World",
    "compare",
    "engine_names",
    "evaluate",
    "load_state",
    "make_engine",
    "make_policy",
    "make_scenario",
    "policy_names",
    "probability_best",
    "save_state",
    "scenario_names",
]

_FORMER = {"Contender": "PolicySpec"}  # names of earlier versions


def __getattr__(name: str) -> Any:
    if name in _FORMER:
        warn(f"polyarm.{name} is now polyarm.{_FORMER[name]}", DeprecationWarning, stacklevel=2)
        name = _FORMER[name]
    if name not in _HOMES:
        raise AttributeError(f"module 'polyarm' has no attribute {name!r}")
    return getattr(import_module(f"polyarm.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
