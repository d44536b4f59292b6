"""Any number of threads may choose and learn: nothing is lost, and the result is that of some serial order."""

import os
import threading
import time

import numpy as np

from polyarm import Bandit
from polyarm.bandit import file
from tests.bandit.shapes import ARMS, played
from tests.contracts.states import bits

SECONDS = float(os.environ.get("POLYARM_THREADS_SECONDS", "2"))


def test_sixteen_threads_lose_nothing() -> None:
    bandit = Bandit(["a", "b", "c"], 2, policy="linear", seed=1)
    told: list[list[tuple[str, float]]] = [[] for _ in range(16)]
    failures: list[BaseException] = []
    stop = time.monotonic() + SECONDS

    def work(number: int) -> None:
        rng = np.random.default_rng(number)
        try:
            while time.monotonic() < stop:
                if number % 4 == 0:
                    names = list(bandit.choose_many(rng.normal(size=(3, 2))).ids)
                else:
                    names = [bandit.choose(rng.normal(size=2)).id]
                if rng.random() < 0.05:
                    bandit.to_bytes()
                rewards = rng.normal(size=len(names)).tolist()
                assert all(bandit.learn_many(names, rewards))
                told[number] += zip(names, rewards, strict=True)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    everything = dict(pair for part in told for pair in part)
    assert len(everything) == bandit.n_decisions == bandit.n_learnt
    assert all(bandit.reward(name) == reward for name, reward in everything.items())
    assert not bandit.pending
    contents = bandit._contents()
    serial = file.learnt_again(contents, bandit.n_learnt, 3)
    assert bits(serial.state) == bits(bandit._learner.state), "the order of learning is written down and explains it"
    orders = [[bandit._ledger.place[name] for name, _ in part] for part in told]
    turns = contents.columns["turns"]
    assert all(np.all(np.diff(turns[order]) > 0) for order in orders), "each thread's rewards came in its order"


def test_nobody_waits_for_somebody_who_looks() -> None:
    bandit = played(Bandit(ARMS, seed=7), 30)
    bandit.predict()
    looking = threading.Thread(target=bandit.predict)
    looking.start()
    decided = 0
    while looking.is_alive() and decided < 20:
        bandit.learn(bandit.choose(), 1.0 + 0.01 * decided)
        decided += 1
    still = looking.is_alive()
    looking.join()
    assert still
    assert decided == 20
