"""A headline test: thousands of visits, clicks that arrive later or never, and a new headline half way."""

import numpy as np

from polyarm import Bandit, Cyclic

rng = np.random.default_rng(0)
bandit = Bandit(
    arms=["question", "number", "quote"],
    context={"hour": Cyclic(24), "device": ["phone", "desktop"]},
    min_propensity=0.02,  # so that the log can judge every headline later
    seed=7,
)
rates = {"question": 0.3, "number": 0.5, "quote": 0.2, "video": 0.6}
waiting = []
for visit in range(400):
    if visit == 200:
        bandit.add_arm("video")
    context = {"hour": int(rng.integers(24)), "device": "phone" if rng.random() < 0.7 else "desktop"}
    decision = bandit.choose(context, id=f"visit-{visit}")
    seconds = rng.exponential(40) if rng.random() < rates[decision.arm] else 0.0  # time spent on the article
    waiting.append((decision.id, seconds))
    if visit % 20 == 19:  # the tracker reports in batches, out of order
        rng.shuffle(waiting)
        for name, value in waiting:
            bandit.learn(name, value)
        waiting = []

print(bandit.summary())
print(f"{len(bandit.pending)} decisions still wait for their reward")
