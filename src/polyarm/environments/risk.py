"""Arms that differ in their tails, so that what to play depends on what is wanted.

TAILS: four arms of mean 0.
  steady   N(0, 0.5^2)                                  the best lowest tenth
  wild     N(0, 2^2)                                    most often above 1
  crash    0.85 N(0.6, 0.5^2) + 0.15 N(-3.4, 0.5^2)     the best median
  hope     0.8 N(-1, 0.5^2) + 0.2 N(4, 0.5^2)           most often above 3
JACKPOT: a safe arm, N(1, 0.5^2), against 0.6 N(0, 1) + 0.4 N(6, 1), of more than twice its mean.
"""

from polyarm.environments.bimodal import StaticMixture
from polyarm.environments.mixtures import Component

TAILS = StaticMixture(
    (
        (Component(1.0, (0.0,), 0.5),),
        (Component(1.0, (0.0,), 2.0),),
        (Component(0.85, (0.6,), 0.5), Component(0.15, (-3.4,), 0.5)),
        (Component(0.8, (-1.0,), 0.5), Component(0.2, (4.0,), 0.5)),
    )
)
JACKPOT = StaticMixture(((Component(1.0, (1.0,), 0.5),), (Component(0.6, (0.0,)), Component(0.4, (6.0,)))))
