"""Every target of `polyarm reproduce`, in the order of the report."""

from polyarm.experiments.paper import convergence, growth, linear_curves, optimal_arm, run_times, studies
from polyarm.experiments.paper.sections import Target

TARGETS: tuple[Target, ...] = (
    studies.LINEAR,
    linear_curves.TARGET,
    studies.SPARSE_LINEAR,
    studies.MIXTURE_A,
    studies.MIXTURE_B,
    studies.HEAVY_TAILED,
    studies.EXPONENTIAL,
    studies.ONCOLOGY,
    studies.LINEAR_GAUSSIAN,
    studies.GAUSSIAN,
    studies.ORACLE_MIXTURES,
    studies.MISSPECIFIED,
    studies.GIBBS_MAX,
    studies.CONCENTRATION,
    optimal_arm.TARGET,
    run_times.TARGET,
    growth.TARGET,
    convergence.TARGET,
)
NAMES = tuple(target.name for target in TARGETS)
