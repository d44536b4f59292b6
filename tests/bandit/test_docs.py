"""The pages about Bandit are run, and so are its examples."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["how-to/put-a-bandit-to-work", "reference/file-format"])
def test_code_in_pages_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / f"{page}.md").read_text(), flags=re.DOTALL)
    assert blocks
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, page, "exec"), names)


@pytest.mark.parametrize("name", ["headlines_late_rewards", "headlines_pandas", "dose_finding", "prices_risk_aversion"])
def test_examples_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = ROOT / "examples" / f"{name}.py"
    assert len(path.read_text().splitlines()) <= 40
    runpy.run_path(str(path), run_name="__main__")
    assert "best with" in capsys.readouterr().out
