"""Where a bug can be planted: changes of one node of the syntax tree, written back into the text."""

import ast
import copy
from collections.abc import Iterator
from typing import NamedTuple

OPPOSITE: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Lt: ast.GtE,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


class Site(NamedTuple):
    """One change: the span of the text it replaces, and the new text."""

    line: int
    column: int
    end_line: int
    end_column: int
    kind: str
    before: str
    after: str

    def planted(self, source: str) -> str:
        """The source with the change made."""
        lines = source.splitlines(keepends=True)
        first, last = lines[self.line - 1].encode(), lines[self.end_line - 1].encode()
        text = (first[: self.column] + self.after.encode() + last[self.end_column :]).decode()
        return "".join(lines[: self.line - 1]) + text + "".join(lines[self.end_line :])


def sites(source: str) -> list[tuple[str, Site]]:
    """Every change that can be made inside functions of the source, with the function's qualified name."""
    found = []
    for name, function in functions(ast.parse(source)):
        for statement in function.body:
            found += [(name, site(node, kind, new)) for node in inside(statement) for kind, new in changes(node)]
    return list(dict.fromkeys(found))


def functions(node: ast.AST, before: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions below a node, named as their code objects are."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield before + child.name, child
            yield from functions(child, f"{before}{child.name}.<locals>.")
        else:
            yield from functions(child, f"{before}{child.name}." if isinstance(child, ast.ClassDef) else before)


def inside(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what is in it, but for nested functions, messages, docstrings and annotations."""
    if isinstance(node, ast.FunctionDef | ast.Raise | ast.Assert | ast.JoinedStr):
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    yield node
    for name, part in ast.iter_fields(node):
        parts = part if isinstance(part, list) else [part]
        for child in parts:
            if isinstance(child, ast.AST) and name not in ("annotation", "returns"):
                yield from inside(child)


def site(node: ast.AST, kind: str, new: ast.AST) -> Site:
    """The change of a node into another."""
    after = ast.unparse(ast.fix_missing_locations(new))
    after = f"({after})" if isinstance(node, ast.expr) and not isinstance(new, ast.Constant | ast.Name) else after
    place = node.lineno, node.col_offset, node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
    return Site(*place, kind, ast.unparse(node).split("\n")[0], after)


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Ways to change a node, with their names."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        yield (
            "constant",
            ast.Constant(2 * node.value if isinstance(node.value, float) and node.value else node.value + 1),
        )
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "constant", ast.Constant(not node.value)
    elif isinstance(node, ast.BinOp):
        if type(node.op) in OPPOSITE:
            yield "sign", ast.BinOp(node.left, OPPOSITE[type(node.op)](), node.right)
        if isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
            yield "term", node.left
        if isinstance(node.op, ast.Add | ast.Mult):
            yield "term", node.right
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield "sign", node.operand
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPPOSITE:
        yield "comparison", ast.Compare(node.left, [OPPOSITE[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield "comparison", ast.BoolOp(OPPOSITE[type(node.op)](), node.values)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == 2:
        if ast.unparse(node.slice.elts[0]) != ast.unparse(node.slice.elts[1]):
            yield "index", with_slice(node, ast.Tuple(node.slice.elts[::-1], ast.Load()))
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name) and node.slice.id.isupper():
        yield "index", with_slice(node, ast.BinOp(node.slice, ast.Add(), ast.Constant(1)))
    elif isinstance(node, ast.Call) and len(node.args) >= 2 and isinstance(node.func, ast.Name | ast.Attribute):
        yield from call_changes(node)
    elif isinstance(node, ast.AugAssign):
        if type(node.op) in OPPOSITE:
            yield "sign", ast.AugAssign(node.target, OPPOSITE[type(node.op)](), node.value)
        yield "statement", ast.Pass()
    elif is_effect(node):
        yield "statement", ast.Pass()


def is_effect(node: ast.AST) -> bool:
    """Whether a statement does nothing but write into an array or call a function."""
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Subscript) for target in node.targets)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def call_changes(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    """Two arguments swapped, or one alternative of max and min dropped."""
    if isinstance(node.func, ast.Name) and node.func.id in ("max", "min"):
        yield "term", node.args[0]
        return
    for i in range(len(node.args) - 1):
        if isinstance(node.args[i], ast.Name) and isinstance(node.args[i + 1], ast.Name):
            swapped = copy.deepcopy(node)
            swapped.args[i], swapped.args[i + 1] = swapped.args[i + 1], swapped.args[i]
            yield "arguments", swapped
            return


def with_slice(node: ast.Subscript, new: ast.expr) -> ast.Subscript:
    """The same array at another index."""
    return ast.Subscript(node.value, new, node.ctx)
