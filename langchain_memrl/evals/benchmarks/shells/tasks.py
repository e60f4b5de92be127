"""The operating-system tasks in a file of LifelongAgentBench. Nothing of them comes along."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_memrl.evals.benchmarks.lifelong import Tasks, read_tasks

WHERE = (
    "lifelong-os needs its tasks: download os_interaction of LifelongAgentBench from "
    "https://huggingface.co/datasets/csyq/LifelongAgentBench (or the os_interaction_*.json files "
    "that MemRL's authors split) and give the file, or a folder with the split, as --data PATH"
)


@dataclass(frozen=True, slots=True)
class OsTask:
    """One task.

    Attributes:
        id: Its key in the file.
        instruction: What is asked.
        preparation: A script that makes what the task is about; empty: nothing.
        truth: A script that solves it.
        check: A script that exits with 0 where it is solved.
        held_out: Whether its file is the validation part of a split.
    """

    id: str
    instruction: str
    preparation: str
    truth: str
    check: str
    held_out: bool = False


def load_tasks(path: Path | None) -> Tasks[OsTask]:
    """Read a file of tasks, or a folder with `os_interaction_train` and `os_interaction_val`.

    Raises:
        InputError: There is no path, nothing there, or something else than tasks.
    """
    kind = "operating-system tasks"
    return read_tasks(path, _task, stem="os_interaction", kind=kind, where=WHERE)


def _task(key: str, entry: Mapping[str, Any], held_out: bool) -> OsTask:
    judged = entry["evaluation_info"]
    return OsTask(
        key,
        str(entry["instruction"]),
        _script(entry["initialization_command_item"]),
        _script(judged["ground_truth_command_item"]),
        _script(judged["evaluation_command_item"]),
        held_out,
    )


def _script(item: Mapping[str, Any]) -> str:
    if item["command_name"] != "bash":
        raise ValueError(f"a command for {item['command_name']!r}; expected bash")
    return str(item["script"]).strip()
