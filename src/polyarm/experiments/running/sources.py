"""Hashes of sources: they change with the code, not with comments, docstrings or layout."""

import ast
import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLAYED = (*(f"experiments/running/{name}.py" for name in ("play", "records", "seeds")),)
WORLDS = ("environments", "models", "kernels/objectives.py", *PLAYED)
POLICIES = ("kernels", "inference", "models", "policies")  # every policy but the networks
NETWORKS = ("neural",)


@functools.cache
def polyarm_sources(parts: tuple[str, ...]) -> str:
    """Hash of these files and folders of polyarm."""
    return hash_sources([ROOT / part for part in parts])


def hash_sources(paths: Iterable[Path]) -> str:
    """Hash of the Python code in these files and folders."""
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(f"{file.relative_to(path)} {_code(file)}\n".encode())
    return digest.hexdigest()[:12]


def _code(file: Path) -> str:
    tree = ast.parse(file.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:]
    return ast.dump(tree)
