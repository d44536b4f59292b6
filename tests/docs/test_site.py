"""The site builds strictly: every link and anchor leads somewhere, and every page is in the navigation."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import polyarm

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocstrings", reason="needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_built(site: Path) -> None:
    pages = [page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")]
    assert all((site / page).exists() for page in pages)


def test_the_reference_has_every_public_name_and_every_policy(site: Path) -> None:
    api = (site / "reference" / "api.html").read_text()
    assert [name for name in polyarm.__all__ if f'.{name}"' not in api] == []
    policies = (site / "reference" / "policies.html").read_text()
    assert [name for name in polyarm.policy_names() if f'id="{name}"' not in policies] == []


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text()
        assert 'src="http' not in text
        assert '<link rel="stylesheet" href="http' not in text


def test_lists_and_tables_are_set_apart(site: Path) -> None:
    left = [page.name for page in site.rglob("*.html") if re.search(r"<p>(\* |- |\|)|\n(\* |\| ?-+)", prose(page))]
    assert left == []


def prose(page: Path) -> str:
    return re.sub(r"<pre.*?</pre>|<script.*?</script>", "", page.read_text(), flags=re.DOTALL)
