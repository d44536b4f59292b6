"""Plays the bandits of other libraries in one world; runs in their environment and knows nothing of polyarm."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Choose = Callable[[np.ndarray], int]
Learn = Callable[[np.ndarray, int, float], None]


def vowpal(n_arms: int, seed: int, exploration: str) -> tuple[Choose, Learn]:
    """One linear model per arm by interactions of context and arm; costs are rewards with their sign turned."""
    import vowpalwabbit

    workspace: Any = vowpalwabbit.Workspace(f"--cb_explore_adf {exploration} -q ca --quiet --random_seed {seed + 1}")
    rng, last = np.random.default_rng(seed), {"p": 1.0}

    def text(x: np.ndarray, label: tuple[int, float, float] | None = None) -> str:
        shared = "shared |c " + " ".join(f"x{i}:{value:.9g}" for i, value in enumerate(x))
        arms = []
        for arm in range(n_arms):
            said = f"0:{label[1]:.9g}:{label[2]:.9g} " if label and label[0] == arm else ""
            arms.append(f"{said}|a a{arm}")
        return "\n".join([shared, *arms])

    def choose(x: np.ndarray) -> int:
        p = np.array(workspace.predict(text(x)))
        arm = int(rng.choice(n_arms, p=p / p.sum()))
        last["p"] = float(p[arm] / p.sum())
        return arm

    def learn(x: np.ndarray, arm: int, reward: float) -> None:
        workspace.learn(text(x, (arm, -reward, last["p"])))

    return choose, learn


def bayesian(n_arms: int, seed: int, policy: Any) -> tuple[Choose, Learn]:
    """Conjugate linear regressions with unknown noise, one per arm."""
    import bayesianbandits as library

    arms = [library.Arm(arm, learner=library.NormalInverseGammaRegressor()) for arm in range(n_arms)]
    agent: Any = library.ContextualAgent(arms, getattr(library, policy)(), random_seed=seed)

    def learn(x: np.ndarray, arm: int, reward: float) -> None:
        agent.select_for_update(arm).update(x[None], np.array([reward]))

    return lambda x: int(agent.pull(x[None])[0]), learn


def mabwiser(n_arms: int, seed: int, policy: str) -> tuple[Choose, Learn]:
    """Ridge regressions, one per arm; the first rewards come from each arm in turn, since it must be fitted first."""
    from mabwiser.mab import MAB, LearningPolicy

    bandit: Any = MAB(list(range(n_arms)), getattr(LearningPolicy, policy)(), seed=seed)
    steps = {"t": 0, "fitted": False}

    def choose(x: np.ndarray) -> int:
        steps["t"] += 1
        return steps["t"] - 1 if steps["t"] <= n_arms else int(bandit.predict([x.tolist()]))

    def learn(x: np.ndarray, arm: int, reward: float) -> None:
        do = bandit.partial_fit if steps["fitted"] else bandit.fit
        do([arm], [reward], [x.tolist()])
        steps["fitted"] = True

    return choose, learn


def river(n_arms: int, seed: int) -> tuple[Choose, Learn]:
    """LinUCB with a model per arm."""
    from river import bandit

    policy: Any = bandit.LinUCBDisjoint(seed=seed)
    arms = list(range(n_arms))

    def columns(x: np.ndarray) -> dict[str, float]:
        return {f"x{i}": float(value) for i, value in enumerate(x)}

    return (
        lambda x: int(policy.pull(arms, context=columns(x))),
        lambda x, arm, reward: policy.update(arm, columns(x), reward),
    )


MAKERS: dict[str, Callable[[int, int], tuple[Choose, Learn]]] = {
    "vw-squarecb": lambda n, seed: vowpal(n, seed, "--squarecb"),
    "vw-epsilon": lambda n, seed: vowpal(n, seed, "--epsilon 0.05"),
    "bayesianbandits-ts": lambda n, seed: bayesian(n, seed, "ThompsonSampling"),
    "bayesianbandits-ids": lambda n, seed: bayesian(n, seed, "InformationDirectedSampling"),
    "mabwiser-lints": lambda n, seed: mabwiser(n, seed, "LinTS"),
    "mabwiser-linucb": lambda n, seed: mabwiser(n, seed, "LinUCB"),
    "river-linucb": lambda n, seed: river(n, seed),
}


def main() -> None:
    """`peers_player.py WORLD.npz SEED POLICY...` prints one line of JSON for every policy."""
    world = np.load(sys.argv[1])
    rewards = world["rewards"]
    contexts = np.column_stack([world["contexts"], np.ones(len(rewards))])
    for name in sys.argv[3:]:
        choose, learn = MAKERS[name](rewards.shape[1], int(sys.argv[2]))
        arms = []
        begun = time.process_time()
        for x, row in zip(contexts, rewards, strict=True):
            arms.append(choose(x))
            learn(x, arms[-1], float(row[arms[-1]]))
        spent = time.process_time() - begun
        print(json.dumps({"policy": name, "arms": arms, "microseconds": 1e6 * spent / len(arms)}), flush=True)


if __name__ == "__main__":
    main()
