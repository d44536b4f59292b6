"""Find a dose: atorvastatin at 10 to 80 mg, with the response of the published dose-response studies.

Mean change of LDL cholesterol in per cent, adjusted, at 0, 10, 20, 40 and 80 mg: prescribing information of Lipitor,
section 14, "Dose Response in Patients With Primary Hyperlipidemia", pooled from two trials.  The table gives no spread:
12 points between patients, and 0.15 points of benefit given up per mg for side effects, are assumptions of ours.
"""

import numpy as np

from polyarm import Bandit

CHANGE = {"placebo": 4.0, "10 mg": -39.0, "20 mg": -43.0, "40 mg": -50.0, "80 mg": -60.0}
MILLIGRAMS = {"placebo": 0, "10 mg": 10, "20 mg": 20, "40 mg": 40, "80 mg": 80}

rng = np.random.default_rng(3)
trial = Bandit(arms=list(CHANGE), context={"baseline": float}, min_propensity=0.02, seed=11)
for _ in range(15):
    patients = [{"baseline": mmol} for mmol in rng.normal(5.0, 0.6, 16)]
    doses = trial.choose_many(patients)  # patients of a week are treated together; the response comes weeks later
    change = np.array([CHANGE[dose] for dose in doses.arms]) + rng.normal(0, 12, len(patients))
    trial.learn_many(doses.ids, -change - 0.15 * np.array([MILLIGRAMS[dose] for dose in doses.arms]))

print(trial.summary())
