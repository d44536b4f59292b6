"""A hundred random lives of a bandit; benchmarks/bandit_machine.py runs thousands."""

from hypothesis import HealthCheck, settings

from tests.bandit.machine import BanditMachine

TestBandit = BanditMachine.TestCase
TestBandit.settings = settings(
    max_examples=60,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
