"""Run the Python blocks of pages and write what each prints below it: `python docs/outputs.py docs/tutorial/*.md`.

A block of kind `text` right after one of kind `python` is its output.  Pictures that a page saves as `NAME.png` and
shows are kept as `docs/figures/NAME.png`.
"""

import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).parent / "figures"
BLOCK = re.compile(r"```python\n(.*?)```\n(?:```text\n.*?```\n)?", re.DOTALL)


def with_outputs(text: str, name: str) -> str:
    """The page with the outputs of its blocks, which are run in the folder of now."""
    names: dict[str, Any] = {"__name__": "page"}

    def run(found: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(found[1], name, "exec"), names)
        lines = [line.rstrip() for line in printed.getvalue().splitlines()]
        return f"```python\n{found[1]}```\n" + (f"```text\n{chr(10).join(lines)}\n```\n" if lines else "")

    return BLOCK.sub(run, text)


def main() -> None:
    """Refresh the pages that are named."""
    start = Path.cwd()
    for page in [Path(argument).resolve() for argument in sys.argv[1:]]:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            text = with_outputs(page.read_text(), page.name)
            for picture in Path(folder).glob("*.png"):
                if f"figures/{picture.name}" in text:
                    shutil.copy(picture, FIGURES)
            os.chdir(start)
        page.write_text(text)
        print(page.name)


if __name__ == "__main__":
    main()
