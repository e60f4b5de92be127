"""What a suite is: tasks, and a way to try one. About 20 lines bring one's own.

```python
class Lookups(Environment):
    recall = {"k": 1}

    def __init__(self, setup: Setup) -> None:
        self.tasks = [Task(name, f"What is the code of {name}?") for name in CODES]

    def act(self, situation: Situation) -> Trial:
        answer = ask_my_agent(
            situation.task.text, [m.memory.experience for m in situation.memories]
        )
        right = CODES[situation.task.id]
        return Trial(success=answer == right, answer=answer, trajectory=f"{answer}; right: {right}")


SUITE = Suite("lookups", Lookups)
```

`memrl eval run my_module:SUITE` runs it, and `check_suite(SUITE)` of `evals.contract` tests it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from langchain_core.embeddings import Embeddings

from langchain_memrl.errors import InputError
from langchain_memrl.offline import HashingEmbeddings
from langchain_memrl.types import ScoredMemory


@dataclass(frozen=True, slots=True)
class Task:
    """One task.

    Attributes:
        id: Its name in the records; unique in its environment.
        text: What is asked, and what is embedded; unique too.
        held_out: Whether a transfer keeps it for the end. Where no task says so, a share is drawn.
    """

    id: str
    text: str
    held_out: bool = False


@dataclass(frozen=True, slots=True)
class Situation:
    """What an agent has in hand when it tries a task.

    Attributes:
        task: The task.
        memories: What was recalled for it, best first.
        epoch: Which pass over the tasks, from 0.
        progress: Share of the training that lies behind, in [0, 1].
        lessons: Whether the arm keeps lessons; if not, writing one would be wasted.
        sample: Whether each try shall be an independent draw (Pass@k), not the likeliest answer.
    """

    task: Task
    memories: tuple[ScoredMemory, ...] = ()
    epoch: int = 0
    progress: float = 0.0
    lessons: bool = True
    sample: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a try.

    Attributes:
        success: Whether the task was solved: the truth, which is what the records count.
        reward: What the bank is told, in [-1, 1]; None means +1 for success and -1 for failure.
        answer: What was answered, for the records.
        trajectory: What was done; with no trajectory and no lesson no memory is written.
        lesson: What was learned; empty keeps the trajectory raw.
        metadata: Kept with the memory, for the environment's own use.
        prompt_tokens: Tokens sent, over all calls.
        completion_tokens: Tokens received.
        calls: Calls of the model, a summary included.
    """

    success: bool
    reward: float | None = None
    answer: str = ""
    trajectory: str = ""
    lesson: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 1

    @property
    def told(self) -> float:
        """The reward as a number."""
        return (1.0 if self.success else -1.0) if self.reward is None else self.reward


class Environment(ABC):
    """Tasks and how to try them, for one world and one seed.

    Attributes:
        tasks: The tasks, in the order of a single-pass stream.
        notes: Memories that every bank starts with: arguments of `EpisodicMemory.remember`.
        recall: Settings of `recall` that suit the tasks, such as `{"k": 1}`.
    """

    tasks: Sequence[Task] = ()
    notes: Sequence[Mapping[str, Any]] = ()
    recall: Mapping[str, Any] = MappingProxyType({})

    @abstractmethod
    def act(self, situation: Situation) -> Trial:
        """Try a task once. May be called from several threads.

        Raises:
            Exception: The environment failed: a timeout, a rate limit, a crash. It is tried again
                and, if that does not help, recorded as such; it never counts as a failed task.
        """

    def embeddings(self) -> Embeddings:
        """What the banks embed task texts with."""
        return HashingEmbeddings()

    def oracle(self, situation: Situation) -> Mapping[str, Any]:
        """A filter of `recall` that lets through only memories that truly help with a task.

        Asked only where the suite says that it knows the truth.
        """
        raise InputError(f"{type(self).__name__} has no oracle; leave knows_truth out, or write it")


@dataclass(frozen=True, slots=True)
class Setup:
    """What an environment is made from.

    Attributes:
        world: Which variant of the suite; empty where it has one.
        seed: Draws what is random.
        tasks: How many tasks; None for the suite's own number. The loop takes the first ones of
            a suite that does not care.
        model: A chat model, for suites that ask one.
        data: The user's own download, for suites that come without their tasks.
        agent: Who tries the tasks, where a suite has a choice; empty for its own.
        steps: How many steps a try may take; None for the suite's own number.
        dsn: The address of a server to use, for suites that need one; never recorded.
        prompts: A file with prompts of one's own.
        root: A folder with the files of a system, for suites that need one; never recorded.
    """

    world: str = ""
    seed: int = 0
    tasks: int | None = None
    model: Any = None
    data: Path | None = None
    agent: str = ""
    steps: int | None = None
    dsn: str = field(default="", repr=False)
    prompts: Path | None = None
    root: Path | None = None


class Typical(NamedTuple):
    """What a try costs, roughly.

    Attributes:
        prompt_tokens: Tokens sent.
        completion_tokens: Tokens received.
        seconds: How long it takes.
    """

    prompt_tokens: int
    completion_tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Suite:
    """A family of tasks.

    Attributes:
        name: Its name in the records.
        make: Makes the environment; an `Environment` class that takes a `Setup` will do.
        worlds: Names of its variants, and what a pattern such as `alike-*` chooses from.
        stress: Further variants that are run only when named.
        epochs: Passes over the tasks, where none are asked for.
        batch: Episodes that recall together, where nothing else is asked for.
        simulated: Whether trying a task takes no time: then banks are in memory and units run in
            several processes. Otherwise banks are on disk and tasks are tried in several threads.
        in_memory: Whether nothing of a task may be written down: then banks are in memory though
            trying takes time, no answer is kept, and a unit that was killed begins anew.
        asks_model: Whether `Setup.model` is needed.
        model_settings: How it is asked: `max_tokens`, `stop`.
        knows_truth: Whether `Environment.oracle` is written.
        about: What each world is, in a few words.
        needs_data: Where to get the data that it needs, in one sentence; empty: it needs none.
        prepare: Reads the data, starts what all its environments share, and gives the suite to run.
        settings: What was chosen when it was prepared, for the header of the records.
        versions: Versions of its environment, for the same place.
        note: What has to be said wherever its numbers are shown.
        exceptions: Tasks that cannot be solved here, and why; counted, and listed beside.
        once: Whether nothing can be learned, so that one pass without memory is all there is to do.
        typical: What a try costs; None: unknown.
    """

    name: str
    make: Callable[[Setup], Environment]
    worlds: tuple[str, ...] = ("",)
    stress: tuple[str, ...] = ()
    epochs: int = 3
    batch: int = 1
    simulated: bool = False
    in_memory: bool = False
    asks_model: bool = False
    model_settings: Mapping[str, Any] = field(default_factory=dict)
    knows_truth: bool = False
    about: Mapping[str, str] = field(default_factory=dict)
    needs_data: str = ""
    prepare: Callable[[Setup], AbstractContextManager["Suite"]] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    exceptions: Mapping[str, str] = field(default_factory=dict)
    once: bool = False
    typical: Typical | None = None

    def as_settings(self) -> dict[str, Any]:
        """What the header of the records has to say of it."""
        told = {"note": self.note, "exceptions": dict(self.exceptions)}
        return {
            "simulated": self.simulated,
            **self.settings,
            **{name: value for name, value in told.items() if value},
        }
