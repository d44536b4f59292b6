"""The policies that must keep the contract: a new one adds a line."""

from collections.abc import Callable

from polyarm.policies import BayesUCB, Greedy, make_policy
from polyarm.types import AnyPolicy
from tests.contracts.engines import ENGINES
from tests.contracts.pages import skeleton

POLICIES: dict[str, Callable[[int, int], AnyPolicy]] = {  # number of arms, context dimension -> policy
    "nonparametric": lambda n, d: make_policy("nonparametric", n, d),
    "nonparametric, optimistic": lambda n, d: make_policy("nonparametric", n, d, n_chains=1, explore="optimistic"),
    "nonparametric that forgets": lambda n, d: make_policy("nonparametric", n, d, n_chains=1, memory=20, half_life=50),
    "dirichlet": lambda n, d: make_policy("dirichlet", n, d),
    "nonparametric-paper": lambda n, d: make_policy("nonparametric-paper", n, d, gibbs_max=3),
    "pitman-yor": lambda n, d: make_policy("pitman-yor", n, d),
    "dirichlet by particles": lambda n, d: make_policy("dirichlet", n, d, engine="particles"),
    "dirichlet that forgets": lambda n, d: make_policy("dirichlet", n, d, memory=20, half_life=50.0),
    "dirichlet, learned": lambda n, d: make_policy("dirichlet", n, d, learn_concentration=(1, 1), learn_scale=(1, 1)),
    "hierarchical": lambda n, d: make_policy("hierarchical", n, d, moves=8),
    "linear": lambda n, d: make_policy("linear", n, d),
    "linear-showdown": lambda n, d: make_policy("linear-showdown", n, d),
    "gaussian": lambda n, d: make_policy("gaussian", n, d),
    "oracle-mixture": lambda n, d: make_policy("oracle-mixture", n, d, n_components=2, gibbs_max=3),
    "linear-ucb": lambda n, d: make_policy("linear-ucb", n, d),
    "linear-ucb, oful": lambda n, d: make_policy("linear-ucb", n, d, bound="oful"),
    "linear-student-t": lambda n, d: make_policy("linear-student-t", n, d),
    "linear-phe": lambda n, d: make_policy("linear-phe", n, d),
    "npts": lambda n, d: make_policy("npts", n, d),
    "rb-sda": lambda n, d: make_policy("rb-sda", n, d),
    "ucb-v": lambda n, d: make_policy("ucb-v", n, d),
    "median-of-means-ucb": lambda n, d: make_policy("median-of-means-ucb", n, d),
    "linear, intercept": lambda n, d: make_policy("linear", n, d, intercept=True),
    "linear-ucb, intercept": lambda n, d: make_policy("linear-ucb", n, d, intercept=True),
    "linear-information": lambda n, d: make_policy("linear-information", n, d),
    "beta-information": lambda n, d: make_policy("beta-information", n, d),
    "logistic": lambda n, d: make_policy("logistic", n, d),
    "poisson-information": lambda n, d: make_policy("poisson-information", n, d),
    "ordinal": lambda n, d: make_policy("ordinal", n, d),
    "hurdle": lambda n, d: make_policy("hurdle", n, d),
    "hurdle-information, gamma": lambda n, d: make_policy("hurdle-information", n, d, amounts="gamma"),
    "uniform": lambda n, d: make_policy("uniform", n, d),
    "greedy": lambda n, d: Greedy(ENGINES["dirichlet, budget"](n, d)),
    "of the how-to": lambda n, d: skeleton("write-a-policy", "EpsilonGreedy")(ENGINES["conjugate"](n, d)),
    "bayes-ucb": lambda n, d: BayesUCB(ENGINES["dirichlet, budget"](n, d), n_draws=20),
}
SHARING = {name for name in POLICIES if name.startswith("nonparametric") and name != "nonparametric-paper"}
SHARING |= {"dirichlet, learned"}  # policies whose arms learn from each other
