"""Docstrings as Markdown.

Aligned lists are shown as lists: a name, two or more spaces, what it means, further lines indented.  Examples are shown
as sessions: lines from `>>>` to the next empty line.
"""

import re
from typing import Any

import griffe

ENTRY = re.compile(r"^(?P<names>\w+(?:, \w+)*) {2,}(?P<text>\S.*)$")
FURTHER = re.compile(r"^ {3,}(?P<text>\S.*)$")


class AlignedLists(griffe.Extension):
    """Turn the aligned lists of every docstring into Markdown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = as_sessions(as_lists(obj.docstring.value))


def as_lists(text: str) -> str:
    """The docstring with aligned lists as Markdown lists."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        entry, further = ENTRY.match(line), FURTHER.match(line)
        if entry:
            names = ", ".join(f"`{name}`" for name in entry["names"].split(", "))
            lines += [*([] if inside else [""]), f"- {names}: {entry['text']}"]
        elif inside and further:
            lines.append(f"    {further['text']}")
        else:
            lines += [*([""] if inside and line else []), line]
        inside = bool(entry or (inside and further))
    return "\n".join(lines)


def as_sessions(text: str) -> str:
    """The docstring with its examples as fenced blocks."""
    lines: list[str] = []
    inside = False
    for line in [*text.splitlines(), ""]:
        if line.startswith(">>>") and not inside:
            lines += ["```pycon", line]
            inside = True
        elif inside and not line:
            lines += ["```", ""]
            inside = False
        else:
            lines.append(line)
    return "\n".join(lines).rstrip("\n")
