"""Every target of `polyarm reproduce`, in the order of the report."""

from polyarm.experiments.paper import (
    concentration,
    convergence,
    exponential,
    gaussian,
    gibbs_max,
    growth,
    heavy_tailed,
    linear,
    linear_curves,
    linear_gaussian,
    misspecified,
    mixture_a,
    mixture_b,
    oncology,
    optimal_arm,
    oracle_mixtures,
    run_times,
    sparse_linear,
)
from polyarm.experiments.sections import Target

TARGETS: tuple[Target, ...] = (
    linear.TARGET,
    linear_curves.TARGET,
    sparse_linear.TARGET,
    mixture_a.TARGET,
    mixture_b.TARGET,
    heavy_tailed.TARGET,
    exponential.TARGET,
    oncology.TARGET,
    linear_gaussian.TARGET,
    gaussian.TARGET,
    oracle_mixtures.TARGET,
    misspecified.TARGET,
    gibbs_max.TARGET,
    concentration.TARGET,
    optimal_arm.TARGET,
    run_times.TARGET,
    growth.TARGET,
    convergence.TARGET,
)
NAMES = tuple(target.name for target in TARGETS)
