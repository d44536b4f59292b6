"""The same with tables: learn yesterday's log, decide for a table of visits, learn their rewards, read the log."""

import numpy as np
import pandas as pd

from polyarm import Bandit, Cyclic

rng = np.random.default_rng(1)


def visits(n: int) -> pd.DataFrame:
    return pd.DataFrame({"hour": rng.integers(0, 24, n), "device": rng.choice(["phone", "desktop"], n)})


def seconds(table: pd.DataFrame) -> pd.Series:
    longer = table.arm.map({"question": 20.0, "number": 30.0, "quote": 15.0}) + 10.0 * (table.device == "desktop")
    return longer * rng.standard_gamma(2.0, len(table)) / 2


yesterday = visits(150).assign(arm=rng.choice(["question", "number", "quote"], 150))
yesterday["reward"] = seconds(yesterday)

columns = {"hour": Cyclic(24), "device": ["phone", "desktop"]}
bandit = Bandit(["question", "number", "quote"], columns, min_propensity=0.02, seed=7)
bandit.learn_logged(yesterday, yesterday.arm, yesterday.reward)

today = visits(200)
decisions = bandit.choose_many(today)
today["arm"] = decisions.arms
bandit.learn_many(decisions.ids, seconds(today))

log = bandit.log().to_pandas()
print(log.groupby("arm").reward.agg(["size", "mean"]).round(1))
print(bandit.predict({"hour": 20, "device": "desktop"}))
