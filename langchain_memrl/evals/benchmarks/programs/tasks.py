"""The tasks in a file of BigCodeBench, read and checked. Nothing of them comes along."""

import ast
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_memrl.errors import InputError
from langchain_memrl.evals.benchmarks.downloads import read_download
from langchain_memrl.evals.benchmarks.programs.runner import test_names

WHERE = (
    "bigcodebench needs its tasks: download them from "
    "https://huggingface.co/datasets/bigcode/bigcodebench as JSON lines (those of the hard part "
    "alone are in bigcode/bigcodebench-hard) and give the file, or a folder with it and the split "
    "hard_*.json or full_*.json of MemRL's authors, as --data PATH"
)
ALL = "all"
"""The world of a file without a split."""
WORLDS = ("hard", "full")
"""Worlds of a folder with splits, as their files are called."""
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
        worlds: The tasks of each world: all of a file, or those of each split beside it.
        hashes: SHA-256 of each file that was read, by its name.
    """

    worlds: Mapping[str, tuple[ProgramTask, ...]]
    hashes: Mapping[str, str]


def load_tasks(path: Path | None) -> ProgramTasks:
    """Read a file of tasks, or a folder with it and splits.

    Args:
        path: JSON lines, also packed with gzip or xz, or a folder. A split is a JSON object with
            `train_ids` and `val_ids`; the latter are held out in a transfer.

    Raises:
        InputError: There is no path, nothing there, or something else than tasks.
    """
    if path is None:
        raise InputError(WHERE)
    file = _only(path, "*.jsonl*") if path.is_dir() else path
    entries, sha256 = read_download(file, WHERE)
    hashes = {file.name: sha256}
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{file} holds no tasks: expected one JSON object per line; {WHERE}")
    known = {task.id: task for task in (_task(file, entry) for entry in entries)}
    if len(known) != len(entries):
        raise InputError(f"{file}: two tasks have the same task_id")
    if not path.is_dir():
        return ProgramTasks({ALL: _distinct(known.values())}, hashes)
    worlds = {}
    for world in WORLDS:
        if any(path.glob(f"{world}_*.json")):
            split = _only(path, f"{world}_*.json")
            content, hashes[split.name] = read_download(split, WHERE)
            worlds[world] = _distinct(_chosen(split, content, known))
    if not worlds:
        raise InputError(f"{path} holds no split {' or '.join(WORLDS)}_*.json; {WHERE}")
    return ProgramTasks(worlds, hashes)


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


def _chosen(
    split: Path, content: Any, known: Mapping[str, ProgramTask]
) -> list[ProgramTask]:
    """The tasks of a split, in the order of their numbers."""
    try:
        groups = {False: content["train_ids"], True: content["val_ids"]}
        chosen = {_number(id): held_out for held_out, ids in groups.items() for id in ids}
        from dataclasses import replace

        return [
            replace(known[id], held_out=chosen[id])
            for id in sorted(chosen, key=lambda id: (len(id), id))
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{split} is no split of these tasks ({type(error).__name__}: {error}); expected an "
            "object with train_ids and val_ids"
        ) from error


def _distinct(tasks: Any) -> tuple[ProgramTask, ...]:
    """Without those that ask what an earlier one asks: a memory could not tell them apart."""
    return tuple({task.instruction: task for task in reversed(list(tasks))}.values())[::-1]


def _number(id: str) -> str:
    return id.removeprefix("BigCodeBench/")


def _task(file: Path, entry: Any) -> ProgramTask:
    try:
        texts = [
            str(entry[name])
            for name in ("instruct_prompt", "code_prompt", "canonical_solution", "test")
        ]
        task = ProgramTask(_number(entry["task_id"]), *texts, str(entry["entry_point"]))
        if not test_names(task.tests):
            raise ValueError("it has no tests")
    except (KeyError, TypeError, ValueError, SyntaxError, AttributeError) as error:
        raise InputError(
            f"{file}: {entry.get('task_id') if isinstance(entry, dict) else entry!r} is not a task "
            f"of BigCodeBench ({type(error).__name__}: {error})"
        ) from error
    return task


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module]
    return []
