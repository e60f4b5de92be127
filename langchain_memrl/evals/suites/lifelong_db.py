"""LifelongAgentBench's database tasks on a real server, graded as the benchmark grades.

A question is solved by committing the right rows, a change by the state of the table. Every try
has a fresh database of its own. The tasks come from the user's own download.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from langchain_memrl.config import PRESETS
from langchain_memrl.errors import ConfigError, InputError
from langchain_memrl.evals.benchmarks.agents import MODEL, Agent, check_agent
from langchain_memrl.evals.benchmarks.benchmark import (
    BATCH,
    EPOCHS,
    MEMORY_TOKENS,
    MODEL_SETTINGS,
    Benchmark,
    about_agent,
    choose_agent,
    drawn,
    listed,
    own_prompts,
    prompts_digest,
    unprepared,
)
from langchain_memrl.evals.benchmarks.databases.attempt import DbAttempt, describe
from langchain_memrl.evals.benchmarks.databases.connection import Database, server_version
from langchain_memrl.evals.benchmarks.databases.conversing import ConversingWithDatabase
from langchain_memrl.evals.benchmarks.databases.grading import order_of, read_rows, same_rows
from langchain_memrl.evals.benchmarks.databases.prompts import PLACES, PROMPTS
from langchain_memrl.evals.benchmarks.databases.script import SqlScript
from langchain_memrl.evals.benchmarks.databases.server import Address, PrivateServer
from langchain_memrl.evals.benchmarks.databases.tasks import WHERE, DbTask, Row, load_tasks
from langchain_memrl.evals.environment import (
    Environment,
    Setup,
    Situation,
    Suite,
    Task,
    Typical,
)
from langchain_memrl.rendering import count_tokens

PRESET = PRESETS["lifelong-db"]
STEPS = 15
"""Replies per try in MemRL's released configuration; the benchmark's own has 3."""
DSN = "MEMRL_DSN"
"""The environment variable with the address of a server to use instead of a private one."""
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


class DatabaseTasks(Benchmark[DbAttempt]):
    """The tasks on one server.

    Args:
        setup: The seed, the number of tasks (a draw from all of them) and the step limit.
        tasks: All tasks.
        address: The server.
        agent: Who tries them.
    """

    def __init__(
        self, setup: Setup, tasks: Sequence[DbTask], address: Address, agent: Agent[DbAttempt]
    ) -> None:
        self._known = {task.id: task for task in drawn(tasks, setup)}
        self._steps = setup.steps or STEPS
        self._address = address
        self._truths: dict[str, tuple[Row, ...] | str] = {}
        chosen = [Task(task.id, task.instruction, task.held_out) for task in self._known.values()]
        super().__init__(chosen, agent, PRESET)

    @contextmanager
    def attempt(self, situation: Situation) -> Iterator[DbAttempt]:
        """A try in a database of its own."""
        task = self._known[situation.task.id]
        with Database(self._address, task.table) as database:
            yield DbAttempt(
                instruction=task.instruction, steps=self._steps, task=task, database=database
            )

    def solved(self, attempt: DbAttempt) -> bool:
        """Whether a try solved its task.

        A change is solved by the state of the table alone, as in the benchmark. A question is
        solved by the rows of the answer; unlike there, an answer counts only if a statement was
        carried out.
        """
        truth = self._truth(attempt.task)
        if isinstance(truth, str):
            return attempt.database.state() == truth
        rows = read_rows(attempt.answer) if attempt.answer is not None and attempt.acted else None
        return rows is not None and same_rows(rows, truth, order_of(attempt.task.sql))

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


@contextmanager
def prepare(setup: Setup) -> Iterator[Suite]:
    """Read the tasks, find or start the server, and give the suite that runs on it."""
    agent = check_agent(setup.agent)
    if setup.steps is not None and setup.steps < 2:
        raise ConfigError(f"steps is {setup.steps}; expected at least 2: a statement and an answer")
    data = load_tasks(setup.data)
    prompts = own_prompts(setup.prompts, PROMPTS, PLACES)
    with ExitStack() as stack:
        dsn = setup.dsn or os.environ.get(DSN, "")
        address = Address.parse(dsn) if dsn else stack.enter_context(PrivateServer()).address
        version = server_version(address)
        kind = "MariaDB" if "MariaDB" in version else "MySQL"

        def make(chosen: Setup) -> Environment:
            asking = ConversingWithDatabase(chosen.model, prompts, kind)
            who = choose_agent(agent, chosen, SqlScript(), asking)
            return DatabaseTasks(replace(chosen, steps=setup.steps), data.tasks, address, who)

        yield replace(
            SUITE,
            make=make,
            settings={
                "agent": agent,
                "steps": setup.steps or STEPS,
                "data": dict(data.hashes),
                "embeddings": "wordllama",
                "prompts": prompts_digest(prompts),
            },
            versions={"database": version},
            exceptions=(
                listed(EXCEPTIONS, {task.id: task.instruction for task in data.tasks})
                if kind == "MariaDB"
                else {}
            ),
            typical=_typical(agent, data.tasks, prompts),
            **about_agent(agent),
        )


def _typical(agent: str, tasks: Sequence[DbTask], prompts: Mapping[str, str]) -> Typical:
    """What a try costs: two or three replies, each with the memories, and a lesson."""
    if agent != MODEL:
        return Typical(0, 0, SECONDS["scripted"])
    asked = sum(count_tokens(task.instruction + describe(task.table)) for task in tasks)
    opening = count_tokens("".join(prompts.values())) + asked // len(tasks)
    shown = PRESET.k * MEMORY_TOKENS
    return Typical(round(REPLIES * (opening + shown)), round(REPLIES * 80), SECONDS["model"])


SUITE = Suite(
    "lifelong-db",
    unprepared(WHERE),
    epochs=EPOCHS,
    batch=BATCH,
    asks_model=True,
    model_settings=MODEL_SETTINGS,
    needs_data=WHERE,
    prepare=prepare,
    about={"": "SQL on a real server (LifelongAgentBench)"},
)
