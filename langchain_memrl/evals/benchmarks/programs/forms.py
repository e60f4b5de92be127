"""The forms of a program: which parts of which libraries it calls, and a program without some.

`pd.read_csv(path)` has the form `pandas`, `os.path.join(a, b)` the form `os.path` and
`MinMaxScaler()` the form `sklearn.preprocessing`, however they were imported. Built-in functions
and the methods of values belong to the language.
"""

import ast
import itertools
from collections.abc import Mapping, Set


def forms_of(program: str) -> frozenset[str]:
    """The forms of all calls of libraries in a program; none where it cannot be read."""
    try:
        tree = ast.parse(program)
    except (SyntaxError, ValueError):
        return frozenset()
    return frozenset(_forms(tree, _aliases(tree)))


def without(program: str, known: Set[str]) -> str:
    """A program in which every statement with a form that is not known does nothing."""
    tree = ast.parse(program)
    return ast.unparse(_Gaps(_aliases(tree), known).visit(tree))


def _aliases(tree: ast.AST) -> dict[str, str]:
    """What the names stand for that a program imports."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                name = one.name if one.asname else one.name.partition(".")[0]
                found[one.asname or name] = name
        elif isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                found[one.asname or one.name] = f"{node.module}.{one.name}"
    return found


def _forms(node: ast.AST, aliases: Mapping[str, str]) -> set[str]:
    calls = (inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call))
    return {form for called in calls if (form := _form(called, aliases))}


def _form(called: ast.expr, aliases: Mapping[str, str]) -> str:
    """The form of what is called; empty where that belongs to the language or the program."""
    names: list[str] = []
    while isinstance(called, ast.Attribute):
        names.insert(0, called.attr)
        called = called.value
    if not isinstance(called, ast.Name) or called.id not in aliases:
        return ""
    path = ".".join([aliases[called.id], *names]).split(".")
    return ".".join(itertools.takewhile(str.islower, path[:-1] or path))


class _Gaps(ast.NodeTransformer):
    """Puts `pass` in the place of statements; a compound one is judged by its head alone."""

    def __init__(self, aliases: Mapping[str, str], known: Set[str]) -> None:
        self._aliases = aliases
        self._known = known

    def visit(self, node: ast.AST) -> ast.AST:
        """A statement, or `pass`."""
        if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.ClassDef):
            heads = [
                child
                for child in ast.iter_child_nodes(node)
                if not isinstance(child, ast.stmt | ast.excepthandler | ast.match_case)
            ]
            if any(_forms(head, self._aliases) - self._known for head in heads):
                return ast.copy_location(ast.Pass(), node)
        return self.generic_visit(node)
