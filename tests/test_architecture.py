"""The import rule and the house rules, read from the syntax trees."""

import ast
import graphlib
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

import langchain_memrl

ROOT = Path(langchain_memrl.__file__).parent
PACKAGE = "langchain_memrl"

# Lowest first. A module imports its folder's neighbours and what stands in a lower row; never a
# higher row, never its own. A folder stands for all its modules. Names without a file yet are
# planned.
LAYERS = (
    ("errors", "types"),
    ("callables", "config", "explaining", "fencing", "importing", "inputs", "reports"),
    ("core", "notices", "prompts", "redaction"),
    ("store",),
    ("as_documents", "embedding", "from_config", "requests", "steps"),
    ("shortlist",),
    ("ranking",),
    ("bank",),
    ("operations",),
    ("copies",),
    ("pools",),
    ("episodes",),
    ("lifts",),
    ("choosing",),
    ("documents",),
    ("memory", "evaluators", "offline"),
    ("summarizers", "rendering"),
    ("learner", "loading", "retriever"),
    ("compressor", "loop"),
    ("graph", "middleware"),
    ("bench", "display", "evals"),
    ("cli",),
)
ROW = {name: row for row, names in enumerate(LAYERS) for name in names}
NAMES_ONLY = ("__init__", "__main__")  # these two only pass on what is above them

# A package, and the only places that may name it.
HOMES = {
    "faiss": {"store"},
    "sqlite3": {"store"},
    "psycopg": {"store"},
    "langchain": {"middleware"},
    "langgraph": {"graph", "loop", "middleware"},
    "typer": {"cli"},
}
WITHOUT_LANGCHAIN = {name for name, row in ROW.items() if row <= ROW["store"]}
WHERE_USED = {
    "langchain_openai",
    "matplotlib",
    "wordllama",
    "xllamacpp",
    "openevals",
    "IPython",
    "pyarrow",
    "pymysql",
    "textworld",
    "fast_downward",
}
UNSAFE_MODULES = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml"}
UNSAFE_NAMES = {"eval", "exec", "__import__"}

FILES = sorted(ROOT.rglob("*.py"))
TREES = {path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8")) for path in FILES}


def place(path):
    """The name of a file in `LAYERS`."""
    return path.parts[0].removesuffix(".py")


def dotted(path):
    """The name of a file as it is imported."""
    parts = (PACKAGE, *path.with_suffix("").parts)
    return ".".join(part for part in parts if part != "__init__")


def imports(tree):
    """Every import of a file as a dotted name, with the line; `from a import b` gives a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def run_at_import(tree):
    """The nodes that run when a file is imported: no function bodies, nothing for type checkers."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for child in ast.iter_child_nodes(node):
            later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            typing = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            if not later and not typing:
                waiting.append(child)


def breaches(check):
    """All breaches of a rule, one line each: the file, the line and what is there."""
    return [
        f"{path}:{line}: {what}" for path, tree in TREES.items() for what, line in check(path, tree)
    ]


def test_every_module_has_its_place():
    missing = {place(path) for path in TREES} - set(ROW) - set(NAMES_ONLY)
    assert not missing, f"add {sorted(missing)} to LAYERS"


def test_imports_point_down():
    def check(path, tree):
        here = place(path)
        if here in NAMES_ONLY:
            return
        for name, line in imports(tree):
            parts = name.split(".")
            there = parts[1] if parts[0] == PACKAGE and len(parts) > 1 else None
            neighbour = there == here and len(path.parts) > 1
            if there in ROW and not neighbour and ROW[there] >= ROW[here]:
                yield f"{here} imports {there}, which is not lower", line

    assert breaches(check) == []


def test_the_modules_of_a_folder_do_not_import_each_other_in_a_circle():
    names = {dotted(path) for path in TREES}
    graph = {}
    for path, tree in TREES.items():
        if place(path) not in NAMES_ONLY:
            found = (name for name, _ in imports(tree))
            ends = ({name, name.rpartition(".")[0]} & names for name in found)
            graph[dotted(path)] = set().union(*ends) - {dotted(path), PACKAGE}
    order = list(graphlib.TopologicalSorter(graph).static_order())
    assert len(order) >= len(graph)


def test_packages_are_named_only_where_they_belong():
    def check(path, tree):
        for name, line in imports(tree):
            package = name.split(".")[0]
            if place(path) not in HOMES.get(package, {place(path)}):
                yield f"{package} belongs to {sorted(HOMES[package])}", line

    assert breaches(check) == []


def test_nothing_below_the_memory_knows_langchain():
    def check(path, tree):
        for name, line in imports(tree):
            package = name.split(".")[0]
            foreign = package.startswith("langchain") and package != PACKAGE
            if place(path) in WITHOUT_LANGCHAIN and foreign:
                yield name, line

    assert breaches(check) == []


def test_heavy_packages_are_imported_where_they_are_used():
    def check(path, tree):
        for node in run_at_import(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                for name, line in imports(node):
                    if name.split(".")[0] in WHERE_USED:
                        yield f"{name} at module level", line

    assert breaches(check) == []


def test_imports_are_absolute_and_annotations_are_not_postponed():
    def check(path, tree):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                if node.level:
                    yield "a relative import", node.lineno
                if node.module == "__future__":
                    yield "an import from __future__", node.lineno

    assert breaches(check) == []


def test_nothing_can_run_code_from_data():
    def check(path, tree):
        for name, line in imports(tree):
            if name.split(".")[0] in UNSAFE_MODULES:
                yield f"imports {name}", line
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in UNSAFE_NAMES:
                yield f"uses {node.id}", node.lineno
            if isinstance(node, ast.keyword) and node.arg in (
                "allow_pickle",
                "allow_dangerous_deserialization",
            ):
                yield f"passes {node.arg}", node.lineno

    assert breaches(check) == []


@pytest.mark.parametrize("path", TREES, ids=str)
def test_a_module_has_at_most_three_hundred_lines_and_says_what_it_is(path):
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 300
    assert ast.get_docstring(TREES[path])


def test_an_exception_of_any_kind_is_never_swallowed():
    """Who catches everything raises it again, or names it and tells what it was."""

    def check(path, tree):
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler):
                caught = "everything" if node.type is None else ast.unparse(node.type)
                inside = list(ast.walk(node))
                raised = any(isinstance(inner, ast.Raise) for inner in inside)
                told = any(
                    isinstance(inner, ast.Name) and inner.id == node.name for inner in inside
                )
                if caught in ("everything", "Exception", "BaseException") and not raised | told:
                    yield f"catches {caught} and goes on", node.lineno

    assert breaches(check) == []


# --- in a fresh interpreter -------------------------------------------------------------------


def fresh(code):
    """What a new interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def seconds(statement):
    code = f"import time; start = time.perf_counter(); {statement}; "
    return float(fresh(code + "print(time.perf_counter() - start)"))


def test_the_package_imports_in_less_than_one_and_a_half_times_what_it_stands_on():
    pairs = [
        (seconds(f"import {PACKAGE}"), seconds("import langchain_core, langgraph, faiss"))
        for _ in range(3)
    ]
    ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    assert ours < 1.5 * theirs


def test_importing_the_package_loads_nothing_heavy():
    code = f"import sys, {PACKAGE}; print(*sys.modules)"
    loaded = {name.split(".")[0] for name in fresh(code).split()}
    assert not loaded & {
        *("faiss", "numpy", "langchain_core", "langgraph", "sqlite3", "pydantic", "asyncio"),
        *(*WHERE_USED, "langchain", "typer", "rich"),
    }


def test_the_memory_needs_neither_the_graph_nor_an_openai_client():
    code = f"import sys; from {PACKAGE} import EpisodicMemory, MemRLRetriever; print(*sys.modules)"
    loaded = {name.split(".")[0] for name in fresh(code).split()}
    assert not loaded & {
        *("langchain", "langgraph", "langchain_openai", "matplotlib", "typer", "rich"),
    }


WATCH = """
import sys
seen = []
def hook(event, args):
    writes = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+")
    if writes or event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen"):
        seen.append((event, args[:2]))
sys.dont_write_bytecode = True
sys.addaudithook(hook)
import importlib
for name in %r:
    importlib.import_module(name)
print(seen)
"""


def test_importing_every_module_writes_no_file_and_opens_no_connection():
    names = [dotted(path) for path in TREES if place(path) != "__main__"]
    assert fresh(WATCH % names) == "[]"
