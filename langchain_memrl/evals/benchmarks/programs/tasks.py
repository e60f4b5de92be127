"""The tasks in a file of BigCodeBench, read and checked. Nothing of them comes along."""

import ast
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from langchain_memrl.errors import InputError
from langchain_memrl.evals.benchmarks.downloads import read_download
from langchain_memrl.evals.benchmarks.programs.runner import test_names

WHERE = (
    "bigcodebench needs its tasks: download them from "
    "https://huggingface.co/datasets/bigcode/bigcodebench as JSON lines (the 148 hard ones alone: "
    "bigcode/bigcodebench-hard) and give the file as --data PATH, or the split of MemRL's authors "
    "that lies beside it, hard_seed42.json or full_seed123.json"
)
GAP = "    pass\n"


@dataclass(frozen=True, slots=True)
class ProgramTask:
    """One task.

    Attributes:
        id: Its number.
        instruction: What is asked, in words, and how the program begins.
        beginning: Imports, constants and the head of the function.
        body: A body of the function that is right.
        tests: A module of unit tests, to follow the program.
        function: What the function is called.
        held_out: Whether it is in the validation part of a split.
    """

    id: str
    instruction: str
    beginning: str
    body: str
    tests: str
    function: str
    held_out: bool = False

    @property
    def right(self) -> str:
        """A program that is right."""
        return f"{self.beginning.rstrip()}\n{self.body}"

    def completed(self, answer: str) -> str:
        """The program to be tested: an answer may leave out the imports that it was given."""
        return f"{self.beginning.rstrip()}\n{GAP}\n{answer}\n"

    @property
    def modules(self) -> frozenset[str]:
        """The top-level modules that the right program and the tests import."""
        return frozenset(
            name.partition(".")[0]
            for text in (self.right, self.tests)
            for node in ast.walk(ast.parse(text))
            for name in _imported(node)
        )


@dataclass(frozen=True, slots=True)
class ProgramTasks:
    """What a download holds.

    Attributes:
        tasks: The tasks, in the order of their numbers.
        hashes: SHA-256 of each file that was read, by its name.
    """

    tasks: tuple[ProgramTask, ...]
    hashes: Mapping[str, str]


def load_tasks(path: Path | None) -> ProgramTasks:
    """Read a file of tasks, or a split with the file of tasks beside it.

    Where two tasks ask the same, the second is left out: a memory could not tell them apart.

    Args:
        path: JSON lines, also packed with gzip or xz; or a JSON object with `train_ids` and
            `val_ids`, of which the latter are held out in a transfer; or a folder with one split.

    Raises:
        InputError: There is no path, nothing there, or something else than tasks.
    """
    if path is None:
        raise InputError(WHERE)
    if not path.exists():
        raise InputError(f"{path} does not exist; {WHERE}")
    given = _only(path, "*.json") if path.is_dir() else path
    split = None if ".jsonl" in given.suffixes else given
    file = given if split is None else _only(given.parent, "*.jsonl*")
    entries, sha256 = read_download(file, WHERE)
    hashes = {file.name: sha256}
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{file} holds no tasks: expected one JSON object per line; {WHERE}")
    known = {task.id: task for task in (_task(file, entry) for entry in entries)}
    if len(known) != len(entries):
        raise InputError(f"{file}: two tasks have the same task_id")
    if split is not None:
        content, hashes[split.name] = read_download(split, WHERE)
        known = _chosen(split, content, known)
    in_order = sorted(known.values(), key=lambda task: (len(task.id), task.id))
    first: dict[str, ProgramTask] = {}
    for task in in_order:
        first.setdefault(task.instruction, task)
    return ProgramTasks(tuple(first.values()), hashes)


def missing_modules(tasks: Sequence[ProgramTask]) -> dict[str, str]:
    """What is not installed here, by the id of the tasks that need it."""
    there: dict[str, bool] = {}
    for name in sorted({name for task in tasks for name in task.modules}):
        there[name] = importlib.util.find_spec(name) is not None
    lacks = {task.id: sorted(name for name in task.modules if not there[name]) for task in tasks}
    return {id: ", ".join(names) for id, names in lacks.items() if names}


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise InputError(f"{folder} holds {len(found)} files {pattern}; expected one; {WHERE}")
    return found[0]


def _chosen(split: Path, content: Any, known: Mapping[str, ProgramTask]) -> dict[str, ProgramTask]:
    """The tasks of a split."""
    try:
        groups = ((False, content["train_ids"]), (True, content["val_ids"]))
        return {
            _number(id): replace(known[_number(id)], held_out=held_out)
            for held_out, ids in groups
            for id in ids
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{split} is no split of these tasks ({type(error).__name__}: {error}); expected an "
            "object with train_ids and val_ids"
        ) from error


def _number(id: str) -> str:
    return id.removeprefix("BigCodeBench/")


def _task(file: Path, entry: Any) -> ProgramTask:
    try:
        task = ProgramTask(
            _number(entry["task_id"]),
            instruction=str(entry["instruct_prompt"]),
            beginning=str(entry["code_prompt"]),
            body=str(entry["canonical_solution"]),
            tests=str(entry["test"]),
            function=str(entry["entry_point"]),
        )
        if not test_names(task.tests):
            raise ValueError("it has no tests")
    except (KeyError, TypeError, ValueError, SyntaxError, AttributeError) as error:
        name = entry.get("task_id", "an entry") if isinstance(entry, dict) else "an entry"
        raise InputError(
            f"{file}: {name} is not a task of BigCodeBench ({type(error).__name__}: {error})"
        ) from error
    return task


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module]
    return []
