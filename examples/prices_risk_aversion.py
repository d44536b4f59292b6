"""Prices under risk: three prices, weekly profits with different tails, and an owner who fears bad weeks."""

import numpy as np

from polyarm import Bandit, ExpectedShortfall

rng = np.random.default_rng(5)


def profit(price: str, season: str) -> float:
    """The low price earns little but surely; the high one earns most on average and loses money in some weeks."""
    busy = 1.2 if season == "summer" else 1.0
    if price == "9.90":
        return busy * rng.normal(100, 8)
    if price == "12.90":
        return busy * rng.normal(115, 25)
    return busy * (rng.normal(190, 20) if rng.random() < 0.75 else rng.normal(-80, 20))


for objective in ("mean", ExpectedShortfall(0.1)):  # the mean of the worst tenth
    shop = Bandit(["9.90", "12.90", "15.90"], {"season": ["summer", "winter"]}, objective=objective, seed=3)
    for week in range(150):
        season = "summer" if week % 52 < 26 else "winter"
        decision = shop.choose({"season": season}, id=f"week {week}")
        shop.learn(decision, profit(decision.arm, season))
    print(f"judged by {objective}")
    print(shop.predict({"season": "winter"}))
