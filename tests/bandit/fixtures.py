"""Files that must load for ever: run this once for every new format, and commit what it writes.

python -m tests.bandit.fixtures
"""

import json
from pathlib import Path

from polyarm import Bandit
from polyarm.bandit.file import FORMAT
from tests.bandit.shapes import ARMS, COLUMNS, played

FILES = Path(__file__).parent / "files"
CONTEXT = {"hour": 20, "age": None, "device": "desktop", "member": False, "price": 99.5}


def main() -> None:
    for policy in ("linear", "nonparametric"):
        bandit = played(Bandit(ARMS, COLUMNS, policy=policy, seed=7, min_propensity=0.01), 25)
        bandit.learn_logged([CONTEXT], ["video"], [2.5])
        bandit.add_arm("audio")
        bandit.retire_arm("short")
        path = bandit.save(FILES / f"format-{FORMAT}-{policy}.polyarm")
        known = {
            "arms": bandit.arms,
            "pending": bandit.pending,
            "n_learnt": bandit.n_learnt,
            "played": {f"d{i}": bandit.decision(f"d{i}").arm for i in range(25)},
            "context": CONTEXT,
            "means": bandit.choose(CONTEXT).means if policy == "linear" else None,  # a sampler may be improved
        }
        path.with_suffix(".json").write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
