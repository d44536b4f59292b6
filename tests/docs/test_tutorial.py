"""Every python block of the tutorial and the home page runs, in the order of its page."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "index.md", *sorted((DOCS / "tutorial").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    assert blocks
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, page.name, "exec"), names)
