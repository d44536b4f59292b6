"""The pages and examples about experiments are run, and the reference of the command line is what --help says.

After a change of the command line: python -m tests.experiments.test_docs > docs/reference/command-line.md
"""

import argparse
import os
import re
import runpy
from pathlib import Path

import pytest

from polyarm.cli import make_parser

ROOT = Path(__file__).parents[2]
PAGES = ("compare-policies", "write-an-environment", "write-an-engine", "write-a-policy", "evaluate-from-logs")
COMMANDS = (
    "list",
    "compare",
    "reproduce",
    "evaluate",
    "bench",
    "warm",
    "serve",
    "keys",
    "explain",
    "rebuild",
    "export",
)


def reference() -> str:
    """The page on the command line."""
    actions = [action for action in make_parser()._actions if isinstance(action, argparse._SubParsersAction)]
    helps = (f"\n## polyarm {name}\n```\n{actions[0].choices[name].format_help()}```\n" for name in COMMANDS)
    return "# The command line\n" + "".join(helps)


@pytest.mark.parametrize("page", PAGES)
def test_code_in_pages_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "how-to" / f"{page}.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert blocks
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, page, "exec"), names)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("compare_*.py")), ids=lambda path: path.stem)
def test_examples_run(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(path), run_name="__main__")
    assert "nonparametric" in capsys.readouterr().out
    assert len(path.read_text().splitlines()) <= 45


def test_command_line_reference_is_what_help_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert (ROOT / "docs" / "reference" / "command-line.md").read_text() == reference()


if __name__ == "__main__":
    os.environ["COLUMNS"] = "100"
    print(reference(), end="")
