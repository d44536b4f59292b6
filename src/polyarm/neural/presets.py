"""The named learned policies, their options, and the settings behind the published tables; no JAX until one is made."""

from typing import TYPE_CHECKING, Any

from polyarm.errors import (
    MissingExtra,
    UnknownName,
    require,
    require_count,
    require_name,
    require_number,
    require_positive,
)
from polyarm.types import AnyPolicy

if TYPE_CHECKING:
    from polyarm.neural.learner import AnyLearner

NAMES = (
    "neural-linear",
    "neural-bootstrapped",
    "neural-rms",
    "neural-dropout",
    "neural-param-noise",
    "bnn-variational",
    "bnn-alpha",
    "multitask-gp",
)
RMS_NAMES = NAMES[:5]
LINEAR_SCENARIOS = ("linear", "sparse-linear")

# Option of ours -> field of the baseline that it sets.
COMMON = {"training_steps": "steps", "training_freq": "every"}
ADAM = {
    "initial_training_steps": "first_steps",
    "n_long_calls": "n_long_calls",
    "learning_rate": "learning_rate",
    "lr_decay": "lr_decay",
    "optimizer": "rule",
    "noise_sd": "noise_sd",
}
QUIRKS = {
    "neural-linear": {
        "posterior_freq": "posterior_every",
        "prior_shape": "prior_shape",
        "prior_rate": "prior_rate",
        "ridge": "ridge",
    },
    "neural-param-noise": {
        "adaptation": "adaptation",
        "noise_sd": "noise_sd",
        "eps": "eps",
        "eps_decay": "eps_decay",
    },
    "bnn-variational": ADAM,
    "bnn-alpha": {
        **ADAM,
        "site_pairing": "sites",
        "n_draws": "n_draws",
        "prior_var": "prior_var",
        "learn_noise": "learn_noise",
    },
    "multitask-gp": {
        "sampling_root": "root",
        "unplayed_zeros": "spread",
        "bootstrap": "resampling",
        "max_points": "max_points",
    },
}
RMS_OPTIONS = ("lr_reset", "init_scale")
POSITIVE = (
    "learning_rate",
    "noise_sd",
    "eps",
    "eps_decay",
    "prior_shape",
    "prior_rate",
    "ridge",
    "init_scale",
    "prior_var",
)
TWO_WAY = ("lr_reset", "adaptation", "site_pairing", "sampling_root", "unplayed_zeros", "bootstrap")


def options_of(name: str) -> tuple[str, ...]:
    """Options that this policy takes."""
    require_name(name, NAMES, "policy")
    training = RMS_OPTIONS if name in RMS_NAMES else ()
    return ("initial_pulls", *COMMON, *training, *QUIRKS.get(name, {}))


def stated_options(name: str) -> dict[str, Any]:
    """Options as the paper's text states them: 50 steps after every round."""
    require_name(name, NAMES, "policy")
    return {"training_steps": 50, "training_freq": 1}


def published_options(name: str, scenario: str) -> dict[str, Any]:
    """Options that produced the published table of that scenario.

    The linear tables date from an earlier version of the paper: 100 steps a round, the process trained every 50 rounds.
    """
    if scenario.split("/")[0] not in LINEAR_SCENARIOS:
        return stated_options(name)
    return stated_options(name) | {"training_steps": 100, "training_freq": 50 if name == "multitask-gp" else 1}


def make_policy(
    name: str, n_arms: int, context_dim: int, horizon: int | None = None, seed: int | None = None, **options: object
) -> AnyPolicy:
    """The live policy of that name; a known horizon saves it from growing its buffers."""
    learner = make_learner(name, n_arms, context_dim, **options)
    from polyarm.neural.policy import FIRST_CAPACITY, LearnedPolicy

    capacity = FIRST_CAPACITY if horizon is None else require_count(horizon, "horizon")
    require(seed is None or 0 <= seed < 2**64, "seed", "None or an integer from 0 to 2^64 - 1", seed)
    return LearnedPolicy(learner, seed, capacity)


def make_learner(name: str, n_arms: int, context_dim: int, **options: object) -> "AnyLearner":
    """The pure functions of that baseline."""
    checked = require_options(name, options)
    sizes = {"n_arms": require_count(n_arms, "n_arms"), "context_dim": require_count(context_dim, "context_dim")}
    try:
        import jax  # noqa: F401
        import optax  # noqa: F401
    except ImportError as error:
        raise MissingExtra(f"{name} needs JAX and optax: pip install 'polyarm[neural]' ({error})") from error
    if "initial_pulls" in checked:
        sizes["initial_pulls"] = checked.pop("initial_pulls")
    return _rms_learner(name, sizes, checked) if name in RMS_NAMES else _other_learner(name, sizes, checked)


def require_options(name: str, options: dict[str, object]) -> dict[str, Any]:
    """Options, each known and within its rule."""
    known = options_of(name)
    checked: dict[str, Any] = {}
    for option, value in options.items():
        if option not in known:
            raise UnknownName(f"option of {name} must be one of {', '.join(known)}, got {option!r}")
        checked[option] = _require_option(option, value)
    return checked


def _require_option(option: str, value: Any) -> Any:
    if option in TWO_WAY:
        return require_name(value, ("faithful", "fixed"), option)
    if option == "learn_noise":
        require(isinstance(value, bool), option, "True or False", value)
        return value
    if option == "optimizer":
        return require_name(value, ("adam", "rms"), option)
    if option in POSITIVE:
        return require_positive(value, option)
    if option == "lr_decay":
        return require_number(value, option, "at least 0", lambda v: v >= 0)
    return require_count(value, option, at_least=0 if option == "initial_pulls" else 1)


def _rms_learner(name: str, sizes: dict[str, int], options: dict[str, Any]) -> "AnyLearner":
    from polyarm.neural.bootstrap import NeuralBootstrapped
    from polyarm.neural.dropout import NeuralDropout
    from polyarm.neural.linear import NeuralLinear
    from polyarm.neural.param_noise import NeuralParamNoise
    from polyarm.neural.rms import NeuralRms
    from polyarm.neural.training import Training

    makers: dict[str, Any] = dict(
        zip(RMS_NAMES, (NeuralLinear, NeuralBootstrapped, NeuralRms, NeuralDropout, NeuralParamNoise), strict=True)
    )
    names = COMMON | QUIRKS.get(name, {})
    fields = {names.get(option, option): value for option, value in options.items()}
    training = Training(**{field: fields.pop(field) for field in ("steps", "every", *RMS_OPTIONS) if field in fields})
    learner: AnyLearner = makers[name](**sizes, training=training, **fields)
    return learner


def _other_learner(name: str, sizes: dict[str, int], options: dict[str, Any]) -> "AnyLearner":
    from polyarm.neural.alpha import BnnAlpha
    from polyarm.neural.gp import MultitaskGp
    from polyarm.neural.variational import BnnVariational

    makers: dict[str, Any] = {"bnn-variational": BnnVariational, "bnn-alpha": BnnAlpha, "multitask-gp": MultitaskGp}
    fields = COMMON | QUIRKS[name]
    learner: AnyLearner = makers[name](**sizes, **{fields[option]: value for option, value in options.items()})
    return learner
