"""The policies that must keep the contract: a new one adds a line."""

from collections.abc import Callable

from polyarm.policies import BayesUCB, Greedy, make_policy
from polyarm.types import AnyPolicy
from tests.contracts.engines import ENGINES

POLICIES: dict[str, Callable[[int, int], AnyPolicy]] = {  # number of arms, context dimension -> policy
    "nonparametric": lambda n, d: make_policy("nonparametric", n, d),
    "nonparametric-paper": lambda n, d: make_policy("nonparametric-paper", n, d, gibbs_max=3),
    "pitman-yor": lambda n, d: make_policy("pitman-yor", n, d),
    "nonparametric by particles": lambda n, d: make_policy("nonparametric", n, d, engine="particles"),
    "nonparametric that forgets": lambda n, d: make_policy("nonparametric", n, d, memory=20, half_life=50.0),
    "hierarchical": lambda n, d: make_policy("hierarchical", n, d, moves=8),
    "linear": lambda n, d: make_policy("linear", n, d),
    "linear-showdown": lambda n, d: make_policy("linear-showdown", n, d),
    "gaussian": lambda n, d: make_policy("gaussian", n, d),
    "oracle-mixture": lambda n, d: make_policy("oracle-mixture", n, d, n_components=2, gibbs_max=3),
    "uniform": lambda n, d: make_policy("uniform", n, d),
    "greedy": lambda n, d: Greedy(ENGINES["dirichlet, budget"](n, d)),
    "bayes-ucb": lambda n, d: BayesUCB(ENGINES["dirichlet, budget"](n, d), n_draws=20),
}
