"""LifelongAgentBench's database tasks on a real server, graded as the benchmark grades.

A question is solved by committing the right rows, a change by the state of the table. Every try
has a fresh database of its own. The tasks come from the user's own download.
"""

import hashlib
import json
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from langchain_memrl.config import PRESETS
from langchain_memrl.errors import ConfigError, InputError
from langchain_memrl.evals.asking import word_embeddings
from langchain_memrl.evals.databases.agents import SCRIPTED, Agent
from langchain_memrl.evals.databases.attempt import Attempt, StepLimitError, describe
from langchain_memrl.evals.databases.connection import Database, server_version
from langchain_memrl.evals.databases.conversing import Conversing
from langchain_memrl.evals.databases.grading import order_of, read_rows, same_rows
from langchain_memrl.evals.databases.prompts import PROMPTS
from langchain_memrl.evals.databases.server import Address, PrivateServer
from langchain_memrl.evals.databases.tasks import WHERE, DbTask, Row, load_tasks
from langchain_memrl.evals.environment import (
    Environment,
    Setup,
    Situation,
    Suite,
    Task,
    Trial,
    Typical,
)
from langchain_memrl.rendering import count_tokens

PRESET = PRESETS["lifelong-db"]
STEPS = 15
"""Replies per try in MemRL's released configuration; the benchmark's own has 3."""
BATCH = 5
DSN = "MEMRL_DSN"
"""The environment variable with the address of a server to use instead of a private one."""
MEMORY_TOKENS = 200
REPLIES = 3.0
"""Typical, a lesson included."""
SECONDS = {"scripted": 0.03, "model": 8.0}
"""Typical, per try."""

NEEDS_MYSQL = "its DELETE FROM table AS alias needs MySQL 8"
TIES = "its LIMIT cuts through rows that MySQL 8 and MariaDB return in different orders"
EXCEPTIONS = {
    NEEDS_MYSQL: {
        "68": "4175024f",
        "165": "e405bac3",
        "188": "d6498087",
        "192": "9dafb1b4",
        "334": "d693958a",
        "388": "4d24c8c6",
    },
    TIES: {
        "6": "989fc964",
        "213": "312f0e6e",
        "274": "555bd6b7",
        "295": "5da5d029",
        "302": "7ec38673",
        "400": "4d7ef767",
    },
}
"""Tasks that the ground truth cannot pass on MariaDB, each with the beginning of the SHA-256 of
what is asked, so that a number means the same task in every download."""


class DatabaseTasks(Environment):
    """The tasks on one server.

    Args:
        setup: The seed, the number of tasks (a draw from all of them) and the step limit.
        tasks: All tasks.
        address: The server.
        agent: Who tries them.
    """

    recall: Mapping[str, Any] = {
        "k": PRESET.k,
        "fetch_k": PRESET.fetch_k,
        "score_threshold": PRESET.score_threshold,
    }

    def __init__(
        self, setup: Setup, tasks: Sequence[DbTask], address: Address, agent: Agent
    ) -> None:
        self._known = {task.id: task for task in _drawn(tasks, setup)}
        self._steps = setup.steps or STEPS
        self._address = address
        self._agent = agent
        self._truths: dict[str, tuple[Row, ...] | str] = {}
        self.tasks = [
            Task(task.id, task.instruction, task.held_out) for task in self._known.values()
        ]

    def act(self, situation: Situation) -> Trial:
        """Try a task once, in a database of its own."""
        task = self._known[situation.task.id]
        truth = self._truth(task)
        with Database(self._address, task.table) as database:
            attempt = Attempt(task, database, self._steps)
            with suppress(StepLimitError):
                self._agent.play(situation, attempt)
            success = solved(attempt, truth)
        attempt.correction = self._agent.correction(situation, attempt, success)
        lesson = self._agent.lesson(situation, attempt, success) if situation.lessons else ""
        return Trial(
            success=success,
            answer=attempt.answer or attempt.unread,
            trajectory=attempt.as_text(),
            lesson=lesson,
            prompt_tokens=attempt.prompt_tokens,
            completion_tokens=attempt.completion_tokens,
            calls=attempt.calls,
        )

    def embeddings(self) -> Embeddings:
        """Static word vectors that come along."""
        return word_embeddings()

    def _truth(self, task: DbTask) -> tuple[Row, ...] | str:
        """The right rows, or the right state of the table; from the right statement if need be."""
        given = task.rows if task.asks else task.md5
        if given is not None:
            return given
        if task.id not in self._truths:
            with Database(self._address, task.table) as database:
                result = database.run(task.sql)
                if result.error:
                    raise InputError(f"the statement of task {task.id} fails: {result.error}")
                self._truths[task.id] = (result.rows or ()) if task.asks else database.state()
        return self._truths[task.id]


def solved(attempt: Attempt, truth: tuple[Row, ...] | str) -> bool:
    """Whether a try solved its task.

    A change is solved by the state of the table alone, as in the benchmark. A question is solved by
    the rows of the answer; unlike there, an answer counts only if a statement was carried out.
    """
    if isinstance(truth, str):
        return attempt.database.state() == truth
    rows = read_rows(attempt.answer) if attempt.answer is not None and attempt.acted else None
    return rows is not None and same_rows(rows, truth, order_of(attempt.task.sql))


@contextmanager
def prepare(setup: Setup) -> Iterator[Suite]:
    """Read the tasks, find or start the server, and give the suite that runs on it."""
    agent = setup.agent or "model"
    if agent != "model" and agent not in SCRIPTED:
        raise ConfigError(f"agent is {agent!r}; expected one of model, {', '.join(SCRIPTED)}")
    if setup.steps is not None and setup.steps < 2:
        raise ConfigError(f"steps is {setup.steps}; expected at least 2: a statement and an answer")
    data = load_tasks(setup.data)
    prompts = _prompts(setup.prompts)
    with ExitStack() as stack:
        dsn = setup.dsn or os.environ.get(DSN, "")
        address = Address.parse(dsn) if dsn else stack.enter_context(PrivateServer()).address
        version = server_version(address)

        def make(chosen: Setup) -> Environment:
            who = (
                Conversing(chosen.model, prompts, "MariaDB" if "MariaDB" in version else "MySQL")
                if agent == "model"
                else SCRIPTED[agent](chosen.seed)
            )
            return DatabaseTasks(replace(chosen, steps=setup.steps), data.tasks, address, who)

        yield replace(
            SUITE,
            make=make,
            asks_model=agent == "model",
            once=agent in SCRIPTED and not SCRIPTED[agent].learns,
            settings={
                "agent": agent,
                "steps": setup.steps or STEPS,
                "data": dict(data.hashes),
                "embeddings": "wordllama",
                "prompts": _digest(json.dumps(prompts)),
            },
            versions={"database": version},
            note=f"agent {agent}: {SCRIPTED[agent].about}" if agent in SCRIPTED else "",
            exceptions=_exceptions(data.tasks) if "MariaDB" in version else {},
            typical=_typical(agent, data.tasks, prompts),
        )


def _drawn(tasks: Sequence[DbTask], setup: Setup) -> list[DbTask]:
    """As many as asked for, drawn by the seed, in their own order."""
    if setup.tasks is None or setup.tasks >= len(tasks):
        return list(tasks)
    rng = random.Random(f"tasks {setup.seed}")  # noqa: S311 - an experiment, not a secret
    return [tasks[place] for place in sorted(rng.sample(range(len(tasks)), setup.tasks))]


def _prompts(path: Path | None) -> dict[str, str]:
    """The prompts, with those of the user's file in their place."""
    if path is None:
        return dict(PROMPTS)
    try:
        own = json.loads(path.read_text(encoding="utf-8"))
        unknown = sorted(set(own) - set(PROMPTS))
        if unknown:
            raise ValueError(f"unknown prompts {', '.join(unknown)}")
        for text in own.values():
            text.format(server="", steps=0, instruction="", table="", result="", left=0)
    except (OSError, ValueError, TypeError, AttributeError, LookupError) as error:
        raise ConfigError(
            f"{path} holds no prompts ({error}); expected a JSON object with some of "
            f"{', '.join(PROMPTS)}"
        ) from error
    return {**PROMPTS, **own}


def _exceptions(tasks: Sequence[DbTask]) -> dict[str, str]:
    known = {
        (id, digest): reason for reason, ids in EXCEPTIONS.items() for id, digest in ids.items()
    }
    marks = ((task.id, _digest(task.instruction)[:8]) for task in tasks)
    return {mark[0]: known[mark] for mark in marks if mark in known}


def _typical(agent: str, tasks: Sequence[DbTask], prompts: Mapping[str, str]) -> Typical:
    """What a try costs: two or three replies, each with the memories, and a lesson."""
    if agent != "model":
        return Typical(0, 0, SECONDS["scripted"])
    asked = sum(count_tokens(task.instruction + describe(task.table)) for task in tasks)
    opening = count_tokens("".join(prompts.values())) + asked // len(tasks)
    shown = PRESET.k * MEMORY_TOKENS
    return Typical(round(REPLIES * (opening + shown)), round(REPLIES * 80), SECONDS["model"])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _unprepared(setup: Setup) -> Environment:
    raise InputError(WHERE)


SUITE = Suite(
    "lifelong-db",
    _unprepared,
    epochs=10,
    batch=BATCH,
    asks_model=True,
    model_settings={"max_tokens": 1024},
    needs_data=WHERE,
    prepare=prepare,
)
