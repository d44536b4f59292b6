"""Choice of a cancer drug by genomic features: a table of real drug responses (Rindtorff et al. 2019)."""

import hashlib
import os
from pathlib import Path

from polyarm.environments.columns import read_columns
from polyarm.environments.full_feedback import FullFeedback, from_columns
from polyarm.errors import BrokenFile, require_extra

URL = (
    "https://raw.githubusercontent.com/NiklasTR/oncoassign/"
    "3fb2956d366270292c8f6a7520f946139ab09c97/data/bandit_input/final_df.csv"
)
SHA256 = "3e41f64eb1f00a50a8c53d4ceb4718e59b9e96e39f70c19de4a238e99fee3423"
PATH_VARIABLE = "POLYARM_ONCOLOGY"
DRUGS = ("afatinib", "cisplatin", "dabrafenib", "olaparib", "palbociclib", "trametinib", "vismodegib")
CONTEXTS = tuple(f"V{i}" for i in range(1, 21)) + tuple(f"{drug}_x" for drug in DRUGS)
REWARDS = tuple(f"{drug}_y" for drug in DRUGS)


def oncology(path: str | Path | None = None, sha256: str = SHA256) -> FullFeedback:
    """The bandit on that file, else on the one $POLYARM_ONCOLOGY names, else on a checksummed download."""
    local = path or os.environ.get(PATH_VARIABLE)
    file = Path(local) if local else download()
    _check(file, sha256)
    return from_columns(read_columns(file), CONTEXTS, REWARDS)


def download() -> Path:
    """The data file in the user's cache folder, fetched once from its public commit."""
    pooch = require_extra("pooch", "experiments")
    try:
        return Path(pooch.retrieve(URL, f"sha256:{SHA256}", path=pooch.os_cache("polyarm"), fname="oncology.csv"))
    except (OSError, ValueError) as error:  # no network, or a wrong checksum; pooch leaves nothing behind
        raise BrokenFile(
            f"the oncology data must be downloadable from {URL}, got {type(error).__name__}: {error}; "
            f"or fetch it by hand and name the file in ${PATH_VARIABLE} or --data"
        ) from None


def _check(file: Path, sha256: str) -> None:
    try:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise BrokenFile(f"the oncology data must be a readable file: {error}") from None
    if digest != sha256:
        raise BrokenFile(f"{file} must have SHA-256 {sha256}, got {digest}; it is truncated or another version")
