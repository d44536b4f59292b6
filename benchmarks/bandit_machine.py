"""Thousands of random lives of a bandit against a small model of it.

python benchmarks/bandit_machine.py [RUNS] [POLICY]
"""

import logging
import sys
import time

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.bandit.machine import BanditMachine


def main(runs: int, policy: str) -> None:
    BanditMachine.policy = policy
    logging.getLogger("polyarm").setLevel(logging.ERROR)  # decisions beyond max_pending are dropped on purpose
    begun = time.perf_counter()
    chosen = settings(
        max_examples=runs, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    run_state_machine_as_test(BanditMachine, settings=chosen)
    print(f"{runs} runs with the policy {policy}: no divergence, {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000, sys.argv[2] if len(sys.argv) > 2 else "linear")
