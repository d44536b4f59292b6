"""Policies that take part in a study, by name and options."""

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from polyarm.environments.judged import Judged
from polyarm.environments.presets import Scenario
from polyarm.errors import InvalidArgument, UnknownName, require, require_extra, shown
from polyarm.experiments.running.content import readable
from polyarm.experiments.running.sources import NETWORKS as NETWORK_SOURCES
from polyarm.experiments.running.sources import POLICIES, polyarm_sources
from polyarm.policies import network_names, presets, takes_objective, with_objective
from polyarm.policies.optimal import Optimal
from polyarm.types import AnyPolicy, World

NETWORKS = network_names()
Factory: TypeAlias = Callable[[int, int], AnyPolicy]
Options: TypeAlias = tuple[tuple[str, Any], ...]


def policy_names() -> tuple[str, ...]:
    """Every policy that a study can name: all that can be made, and the one that knows the world."""
    return (*presets.policy_names(), "optimal")


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """A named policy with options, or a user's own factory `(n_arms, context_dim) -> Policy`.

    >>> from polyarm import Uniform
    >>> PolicySpec("dirichlet", options=(("concentration", 0.5),)).name
    'dirichlet'
    >>> PolicySpec("mine", factory=Uniform).name
    'mine'
    """

    name: str
    options: Options = ()
    factory: Factory | None = None

    @property
    def label(self) -> str:
        """Name in results and tables: `name` or `name:option=value,...`."""
        return ":".join([self.name, *filter(None, [",".join(f"{key}={value}" for key, value in self.options)])])

    @property
    def is_network(self) -> bool:
        """Whether the policy comes from the extra `neural`."""
        return self.factory is None and self.name in NETWORKS

    def build(self, scenario: Scenario, world: World | None = None) -> AnyPolicy:
        """The policy for that scenario; `optimal` also needs the world it will meet.

        Where arms are judged by another objective than the mean, policies that can play for it do.
        """
        arms, dim = scenario.environment.n_arms, scenario.environment.context_dim
        if self.factory is not None:
            return self.factory(arms, dim)
        if self.name == "optimal":
            return Optimal(self._means(world))
        policy = presets.make_policy(self.name, arms, dim, **self.full_options(scenario))
        judge = scenario.environment
        if isinstance(judge, Judged) and "objective" not in dict(self.options) and takes_objective(policy):
            return with_objective(policy, judge.objective)
        return policy

    def full_options(self, scenario: Scenario) -> dict[str, Any]:
        """The options, with what only the scenario knows added."""
        options = dict(self.options)
        if self.name == "oracle-mixture" and "n_components" not in options:
            if scenario.n_components is None:
                raise InvalidArgument(
                    f"policy must be another one where the number of components is unknown, "
                    f"got {self.label!r} on {scenario.name}; or give oracle-mixture:n_components=(2,2)"
                )
            options["n_components"] = scenario.n_components
        return options

    def making(self, scenario: Scenario) -> dict[str, str]:
        """What decides how it plays: the options or the factory, and the code behind them."""
        made_of = readable(self.full_options(scenario) if self.factory is None else self.factory)
        return {"settings": made_of, "sources": polyarm_sources(NETWORK_SOURCES if self.is_network else POLICIES)}

    def _means(self, world: World | None) -> Any:
        require(world is not None, "policy", "one that can play outside a simulation", self.name)
        return world.means if world else None

    def simulator(self) -> Any | None:
        """Module whose `simulate` plays this policy in many worlds at once, if there is one."""
        return require_extra("polyarm.neural.simulate", "neural") if self.is_network else None


def parse_policy(text: str) -> PolicySpec:
    """PolicySpec from `name` or `name:option=value,option=value`."""
    name, _, rest = text.partition(":")
    if name not in policy_names():
        raise UnknownName(f"policy must be one of {', '.join(policy_names())}, got {shown(name)}")
    return PolicySpec(name, _parse_options(rest) if rest else ())


def _parse_options(text: str) -> Options:
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        keywords = call.keywords if isinstance(call, ast.Call) and not call.args else []
        options = tuple((str(word.arg), ast.literal_eval(word.value)) for word in keywords if word.arg)
    except (SyntaxError, ValueError):
        options = ()
    require(bool(options), "options", "written as name=value,name=value with plain Python values", text)
    return options


PolicyLike: TypeAlias = str | PolicySpec


def as_policies(policies: Iterable[PolicyLike] | Mapping[str, Factory]) -> tuple[PolicySpec, ...]:
    """Specs from names, from specs, or from a mapping of names to the user's own factories."""
    if isinstance(policies, Mapping):
        specs = tuple(PolicySpec(name, factory=factory) for name, factory in policies.items())
    else:
        given = tuple(policies)
        for policy in given:
            rule = "names, PolicySpec(name, factory=...) for a policy of yours, or a mapping of names to factories"
            require(isinstance(policy, (str, PolicySpec)), "policies", rule, policy)
        specs = tuple(p if isinstance(p, PolicySpec) else parse_policy(p) for p in given)
    labels = [spec.label for spec in specs]
    require(len(labels) > 0, "policies", "at least one", labels)
    require(len(set(labels)) == len(labels), "policies", "all different", labels)
    return specs


def default_policies(scenario: Scenario) -> tuple[PolicySpec, ...]:
    """What a newcomer sees: ours, the paper's, a linear one, an oracle if there is one, the optimum."""
    names = ["nonparametric", "nonparametric-paper", "linear", "oracle-mixture", "optimal"]
    return tuple(PolicySpec(n) for n in names if n != "oracle-mixture" or scenario.n_components is not None)
