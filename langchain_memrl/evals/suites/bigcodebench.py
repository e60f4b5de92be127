"""BigCodeBench's programming tasks, graded as the benchmark grades: by running their unit tests.

The agent reads a task in words (the benchmark's instruct prompt, which MemRL's authors use too) and
replies once, with a whole program. Each program runs in a process of its own behind walls; see
`benchmarks.programs.sandbox` for what they keep in and `benchmarks.programs.examining` for what a
program cannot fake. The tasks come from the user's own download.
"""

import importlib.metadata
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

from langchain_memrl.config import PRESETS
from langchain_memrl.errors import ConfigError
from langchain_memrl.evals.benchmarks.agents import MODEL, Agent, check_agent
from langchain_memrl.evals.benchmarks.benchmark import (
    BATCH,
    EPOCHS,
    MEMORY_TOKENS,
    Benchmark,
    about_agent,
    choose_agent,
    drawn,
    listed,
    own_prompts,
    prompts_digest,
    unprepared,
)
from langchain_memrl.evals.benchmarks.programs.attempt import ProgramAttempt
from langchain_memrl.evals.benchmarks.programs.conversing import ConversingAboutPrograms
from langchain_memrl.evals.benchmarks.programs.prompts import PLACES, PROMPTS
from langchain_memrl.evals.benchmarks.programs.runner import LIBRARIES, ProgramRunner, Verdict
from langchain_memrl.evals.benchmarks.programs.sandbox import Limits
from langchain_memrl.evals.benchmarks.programs.script import ProgramScript
from langchain_memrl.evals.benchmarks.programs.tasks import (
    WHERE,
    ProgramTask,
    load_tasks,
    missing_modules,
)
from langchain_memrl.evals.environment import (
    Environment,
    Setup,
    Situation,
    Suite,
    Task,
    Typical,
)
from langchain_memrl.rendering import count_tokens

PRESET = PRESETS["bigcodebench"]
LIMITS = Limits()
SECONDS = {"scripted": 1.0, "model": 60.0}
"""Typical, per try."""
MISSING = (
    "needs {name}, which is not installed here; the extra bench-code of langchain-memrl brings "
    "most of what the tasks need"
)
NETWORK = "its tests read pages of the web, and there is no network"
NLTK_DATA = "its solution or tests need data of NLTK, which `python -m nltk.downloader {}` brings"
CHANGED = "its solution does not do with today's {} what it did with that of 2023"
EXCEPTIONS: Mapping[str, Mapping[str, str]] = {
    NETWORK: {"101": "5d55a8f1", "590": "b0fdbe10", "1006": "275620d0", "1012": "3af67efe"},
    NLTK_DATA.format("punkt_tab"): {"177": "ccb1a638"},
    NLTK_DATA.format("stopwords"): {"655": "f4a42e91"},
    CHANGED.format("Matplotlib"): {"511": "ec6181e0"},
}
"""Tasks whose own solution does not pass here, each with the beginning of the SHA-256 of what is
asked, so that a number means the same task in every download."""

Judge = Callable[[ProgramTask, str], Verdict]


class ProgrammingTasks(Benchmark[ProgramAttempt]):
    """The tasks.

    Args:
        setup: The seed and the number of tasks, a draw from all of them.
        tasks: All tasks.
        judge: Runs the tests of a task on an answer.
        agent: Who tries them.
    """

    def __init__(
        self,
        setup: Setup,
        tasks: Sequence[ProgramTask],
        judge: Judge,
        agent: Agent[ProgramAttempt],
    ) -> None:
        self._known = {task.id: task for task in drawn(tasks, setup)}
        self._judge = judge
        chosen = [Task(task.id, task.instruction, task.held_out) for task in self._known.values()]
        super().__init__(chosen, agent, PRESET)

    @contextmanager
    def attempt(self, situation: Situation) -> Iterator[ProgramAttempt]:
        """A try: one program."""
        task = self._known[situation.task.id]
        yield ProgramAttempt(instruction=task.instruction, steps=1, task=task)

    def solved(self, attempt: ProgramAttempt) -> bool:
        """Whether every unit test of the task passes."""
        if attempt.answer is None:
            return False
        verdict = self._judge(attempt.task, attempt.answer)
        attempt.report = verdict.report
        return verdict.passed


@contextmanager
def prepare(setup: Setup) -> Iterator[Suite]:
    """Read the tasks, start the process that runs programs, and give the suite."""
    agent = check_agent(setup.agent)
    if setup.steps is not None or setup.dsn or setup.root is not None:
        raise ConfigError("bigcodebench takes no --steps, --dsn or --root: an agent has one reply")
    data = load_tasks(setup.data)
    prompts = own_prompts(setup.prompts, PROMPTS, PLACES)
    needed = {module for task in data.tasks for module in task.modules}
    modules = [name for name in LIBRARIES if name.partition(".")[0] in needed]
    with ProgramRunner(LIMITS, modules=modules) as runner:
        judge = judge_with(runner, remembers=agent != MODEL)

        def make(chosen: Setup) -> Environment:
            asking = ConversingAboutPrograms(chosen.model, prompts)
            who = choose_agent(agent, chosen, ProgramScript(), asking)
            return ProgrammingTasks(chosen, data.tasks, judge, who)

        yield replace(
            SUITE,
            make=make,
            settings={
                "agent": agent,
                "data": dict(data.hashes),
                "embeddings": "wordllama",
                "limits": LIMITS._asdict(),
                "prompts": prompts_digest(prompts),
                "steps": 1,
                "walls": runner.kind,
            },
            versions={"python": platform.python_version(), "libraries": libraries(data.tasks)},
            exceptions=exceptions(data.tasks),
            typical=_typical(agent, data.tasks, prompts),
            **about_agent(agent),
        )


def judge_with(runner: ProgramRunner, *, remembers: bool) -> Judge:
    """What runs the tests of a task on an answer.

    Args:
        runner: Where programs run.
        remembers: Whether an answer that was judged before gets the same verdict without a run.
            Agents without a model hand in few different programs, again and again. That rests on
            tests that always say the same of the same program, which a few do not.
    """
    known: dict[tuple[str, str], Verdict] = {}

    def judge(task: ProgramTask, answer: str) -> Verdict:
        key = (task.id, answer)
        if key in known:
            return known[key]
        verdict = runner.judge(task.completed(answer), task.tests, task.function)
        if remembers:
            known[key] = verdict
        return verdict

    return judge


def exceptions(tasks: Sequence[ProgramTask]) -> dict[str, str]:
    """Tasks that cannot be solved here, and why: found by looking, or known."""
    lacking = {id: MISSING.format(name=name) for id, name in missing_modules(tasks).items()}
    return {**listed(EXCEPTIONS, {task.id: task.instruction for task in tasks}), **lacking}


def libraries(tasks: Sequence[ProgramTask]) -> str:
    """The packages that the tasks import, as far as they are installed, with their versions."""
    homes = _packages()
    needed = {module for task in tasks for module in task.modules}
    packages = sorted({package for module in needed for package in homes.get(module, ())})
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)


@cache
def _packages() -> Mapping[str, list[str]]:
    """What is installed, by the modules that it brings; looked up once, it takes a second."""
    return importlib.metadata.packages_distributions()


def _typical(agent: str, tasks: Sequence[ProgramTask], prompts: Mapping[str, str]) -> Typical:
    """What a try costs: the task with the memories, a program, and a lesson from both."""
    if agent != MODEL:
        return Typical(0, 0, SECONDS["scripted"])
    asked = sum(count_tokens(task.instruction) for task in tasks) // len(tasks)
    program = sum(count_tokens(task.right) for task in tasks) // len(tasks)
    opening = count_tokens("".join(prompts.values())) + asked
    sent = opening + PRESET.k * (MEMORY_TOKENS + program) + opening + program
    return Typical(sent, program + MEMORY_TOKENS // 2, SECONDS["model"])


SUITE = Suite(
    "bigcodebench",
    unprepared(WHERE),
    epochs=EPOCHS,
    batch=BATCH,
    asks_model=True,
    model_settings={"max_tokens": 1280},
    needs_data=WHERE,
    prepare=prepare,
    about={"": "programs against unit tests (BigCodeBench)"},
)
