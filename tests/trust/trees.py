"""The package's syntax trees, and the state of a folder."""

import ast
import hashlib
from pathlib import Path

import langchain_memrl

ROOT = Path(langchain_memrl.__file__).parent


def package(*, without=()):
    """Every module of the package as (path, tree), without some of its folders."""
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT)
        if place.parts[0] not in without:
            yield place, ast.parse(path.read_text(encoding="utf-8"))


def imported(tree):
    """Every module and name that a tree imports, dotted."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def called(tree):
    """Every call of a tree as (dotted name, node)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def state_of(folder):
    """Names, kinds, sizes and contents of everything in a folder; links are not followed."""
    return {
        str(path.relative_to(folder)): (
            str(path.readlink())
            if path.is_symlink()
            else hashlib.sha256(path.read_bytes()).hexdigest()
            if path.is_file()
            else "folder"
        )
        for path in sorted(folder.rglob("*"))
    }
