"""The named policies."""

from polyarm.types import AnyPolicy

NAMES = (
    "nonparametric",
    "nonparametric-paper",
    "pitman-yor",
    "linear",
    "linear-showdown",
    "gaussian",
    "oracle-mixture",
    "uniform",
)


def make_policy(name: str, n_arms: int, context_dim: int, **options: object) -> AnyPolicy:
    """The policy of that name for a problem with that many arms and context entries."""
    raise NotImplementedError(name)
