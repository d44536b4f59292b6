"""Files that the pages name are there, for everybody who cloned the repository."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
FOLDERS = "benchmarks|docs|examples|src|tests|scripts"


def kept() -> set[str]:
    """Files under version control, or all that there are where there is none, and their folders."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a clone of the repository")
    files = [Path(name) for name in listed.stdout.splitlines()]
    return {str(path) for file in files for path in (file, *file.parents)}


def test_files_that_pages_name_are_kept_or_said_to_be_made() -> None:
    known = kept()
    for page in PAGES:
        text = page.read_text()
        for match in re.finditer(rf"`((?:{FOLDERS})/[\w./-]+?)(?:::\w+)?`", text):
            made = "made by the script" in text[match.end() : match.end() + 40]
            name = match.group(1).rstrip("/")
            assert made or name in known, f"{page.name} names {name}"
