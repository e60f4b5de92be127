"""LifelongAgentBench's operating-system tasks on real systems, graded as the benchmark grades.

A task is solved by the state of the system, whatever is said. Every try has a system of its own,
fresh files over the user's root folder. The tasks come from the user's own download.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from langchain_memrl.config import PRESETS
from langchain_memrl.errors import ConfigError, MemRLError
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
from langchain_memrl.evals.benchmarks.shells.attempt import OsAttempt
from langchain_memrl.evals.benchmarks.shells.conversing import ConversingWithShell
from langchain_memrl.evals.benchmarks.shells.machine import Machine, Machines
from langchain_memrl.evals.benchmarks.shells.prompts import PLACES, PROMPTS
from langchain_memrl.evals.benchmarks.shells.roots import find_root
from langchain_memrl.evals.benchmarks.shells.script import ShellScript
from langchain_memrl.evals.benchmarks.shells.tasks import WHERE, OsTask, load_tasks
from langchain_memrl.evals.environment import (
    Environment,
    Setup,
    Situation,
    Suite,
    Task,
    Typical,
)
from langchain_memrl.rendering import count_tokens

PRESET = PRESETS["lifelong-os"]
STEPS = 15
"""Replies per try in MemRL's released configuration; the benchmark's own has 5."""
SETTLING = 0.5
"""Seconds between the end of a try and its grading where something goes on in the background: some
right solutions need the moment that the benchmark's containers take."""
PREPARATION = 120.0
"""Seconds that a preparation may take: two of them have to read lists of packages."""
REPLIES = 4.0
"""Typical, a lesson included."""
SECONDS = {"scripted": 0.7, "model": 10.0}
"""Typical, per try; the tasks themselves wait for about half a second."""

BREAKS_OFF = "its own right solution breaks off at the last empty file and writes no report"
EXCEPTIONS = {BREAKS_OFF: {"359": "21e215f2"}}
"""Tasks that the ground truth cannot pass, each with the beginning of the SHA-256 of what is asked,
so that a number means the same task in every download."""


class OsTasks(Benchmark[OsAttempt]):
    """The tasks on systems over one root.

    Args:
        setup: The seed, the number of tasks (a draw from all of them) and the step limit.
        tasks: All tasks.
        machines: Makes the systems.
        agent: Who tries the tasks.
    """

    def __init__(
        self, setup: Setup, tasks: Sequence[OsTask], machines: Machines, agent: Agent[OsAttempt]
    ) -> None:
        self._known = {task.id: task for task in drawn(tasks, setup)}
        self._steps = setup.steps or STEPS
        self._machines = machines
        chosen = [Task(task.id, task.instruction, task.held_out) for task in self._known.values()]
        super().__init__(chosen, agent, PRESET)

    @contextmanager
    def attempt(self, situation: Situation) -> Iterator[OsAttempt]:
        """A try on a system of its own, prepared as the task says."""
        task = self._known[situation.task.id]
        with self._machines.open() as machine:
            if task.preparation:
                _prepare(machine, task)
            yield OsAttempt(
                instruction=task.instruction, steps=self._steps, task=task, machine=machine
            )

    def solved(self, attempt: OsAttempt) -> bool:
        """Whether the check of the task exits with 0, as in the benchmark."""
        if any(step.result.going_on for step in attempt.commands):
            time.sleep(SETTLING)
        return attempt.machine.run(attempt.task.check).code == 0


def _prepare(machine: Machine, task: OsTask) -> None:
    prepared = machine.run(task.preparation, seconds=PREPARATION)
    if prepared.code != 0:
        raise MemRLError(
            f"the preparation of task {task.id} fails here (exit code {prepared.code}): "
            f"{prepared.output.strip()[-500:]}"
        )


@contextmanager
def prepare(setup: Setup) -> Iterator[Suite]:
    """Read the tasks, look the root over, and give the suite that runs on it."""
    agent = check_agent(setup.agent)
    if setup.steps is not None and setup.steps < 2:
        raise ConfigError(f"steps is {setup.steps}; expected at least 2: a script and the end")
    data = load_tasks(setup.data)
    prompts = own_prompts(setup.prompts, PROMPTS, PLACES)
    root = find_root(setup.root)
    with Machines(root.folder) as machines:

        def make(chosen: Setup) -> Environment:
            asking = ConversingWithShell(chosen.model, prompts, root.name)
            who = choose_agent(agent, chosen, ShellScript(), asking)
            return OsTasks(replace(chosen, steps=setup.steps), data.tasks, machines, who)

        yield replace(
            SUITE,
            make=make,
            settings={
                "agent": agent,
                "steps": setup.steps or STEPS,
                "data": dict(data.hashes),
                "packages": root.packages,
                "embeddings": "wordllama",
                "prompts": prompts_digest(prompts),
            },
            versions={"system": root.name},
            exceptions=listed(EXCEPTIONS, {task.id: task.instruction for task in data.tasks}),
            typical=_typical(agent, data.tasks, prompts),
            **about_agent(agent),
        )


def _typical(agent: str, tasks: Sequence[OsTask], prompts: Mapping[str, str]) -> Typical:
    """What a try costs: three or four replies, each with the memories, and a lesson."""
    if agent != MODEL:
        return Typical(0, 0, SECONDS["scripted"])
    asked = sum(count_tokens(task.instruction) for task in tasks)
    opening = count_tokens("".join(prompts.values())) + asked // len(tasks)
    shown = PRESET.k * MEMORY_TOKENS
    return Typical(round(REPLIES * (opening + shown)), round(REPLIES * 100), SECONDS["model"])


SUITE = Suite(
    "lifelong-os",
    unprepared(WHERE),
    epochs=EPOCHS,
    batch=BATCH,
    asks_model=True,
    model_settings=MODEL_SETTINGS,
    needs_data=WHERE,
    prepare=prepare,
    about={"": "shell on real systems (LifelongAgentBench)"},
)
