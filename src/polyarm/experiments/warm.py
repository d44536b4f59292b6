"""Kernels compiled ahead, so that nobody waits for them at the first decision."""

from concurrent.futures import as_completed

from polyarm.environments.presets import make_scenario
from polyarm.errors import BrokenFile, require_count
from polyarm.experiments.running.executors import available_cores, local_processes
from polyarm.experiments.running.play import play, sample_world
from polyarm.experiments.running.policy_specs import PolicySpec
from polyarm.experiments.running.progress import progress_bar
from polyarm.experiments.running.seeds import policy_rng, world_rng
from polyarm.inference.presets import engine_names
from polyarm.kernels._cache import cache_folder
from polyarm.policies.presets import policy_names

STEPS = 12  # enough for every arm of the scenario to be played, and for components to appear
DEFAULT = PolicySpec("nonparametric")
VARIANTS = (
    *(
        PolicySpec(DEFAULT.name, ((option, value),))
        for option, value in (("explore", "thompson"), ("explore", "optimistic"))
    ),
    *(PolicySpec(name, (("half_life", 5.0), ("memory", 3))) for name in (DEFAULT.name, "dirichlet")),
    *(PolicySpec("dirichlet", (("engine", name),)) for name in engine_names()),
    PolicySpec("dirichlet", (("learn_concentration", (1.0, 1.0)), ("learn_scale", (1.0, 1.0)))),
)


def all_policies() -> tuple[PolicySpec, ...]:
    """Every policy, and the settings that run other kernels; the default first."""
    named = tuple(PolicySpec(name) for name in policy_names() if name != DEFAULT.name)
    return (DEFAULT, *named, *VARIANTS)


def compile_part(spec: PolicySpec, learn: bool) -> None:
    """Compile what a policy needs to choose, or to learn too: two halves that two processes can share."""
    scenario = make_scenario("mixture-a")
    world = sample_world(scenario.environment, STEPS, world_rng(0, 0))
    policy = spec.build(scenario, world)
    rng = policy_rng(0, 0, "warm up")
    if learn:
        state = policy.update(policy.init(), world.contexts[0], 0, 1.0, rng)
        policy.choose(state, world.contexts[0], rng)
        play(policy, world, rng)
    else:
        policy.choose(policy.init(), world.contexts[0], rng)


def warm(everything: bool = False, workers: int | None = None, progress: bool = False) -> str:
    """Compile the kernels of the default policy, or of all, in parallel processes; says where they lie."""
    folder = cache_folder()
    if folder is None:
        raise BrokenFile("POLYARM_CACHE_DIR must be a private folder that can be written, to keep compiled kernels in")
    specs = all_policies() if everything else (DEFAULT,)
    jobs = [(spec, learn) for learn in (True, False) for spec in specs]
    count = min(available_cores() if workers is None else require_count(workers, "workers"), len(jobs))
    with local_processes(count) as executor, progress_bar("compiling", len(jobs), progress) as advance:
        for done in as_completed([executor.submit(compile_part, *job) for job in jobs]):
            done.result()
            advance(1)
    return f"compiled kernels of {len(specs)} policies are in {folder}"
