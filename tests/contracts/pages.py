"""The engine and the policy that the how-to pages write."""

import functools
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
LONGEST = 40  # lines of a skeleton that a newcomer copies


@functools.cache
def skeleton(page: str, name: str) -> Any:
    """The class of that name, as the first block of the page makes it."""
    block = re.findall(r"```python\n(.*?)```", (HOW_TO / f"{page}.md").read_text(), flags=re.DOTALL)[0]
    assert sum(bool(line.strip()) for line in block.splitlines()) <= LONGEST
    sys.modules[page] = module = ModuleType(page)  # so that its objects can be pickled
    exec(compile(block, page, "exec"), vars(module))
    return getattr(module, name)
