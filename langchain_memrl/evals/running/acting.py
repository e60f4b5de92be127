"""Trying the tasks of a batch: in several threads, again when the environment fails, never twice.

An answer is kept in a journal as soon as it is there, so that a killed run asks for it no more.
"""

import json
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from langchain_memrl.errors import InputError
from langchain_memrl.evals.environment import Environment, Situation, Trial
from langchain_memrl.evals.running.checking import check_trial

FIRST_PAUSE = 1.0
"""Seconds before the second attempt; each further pause is twice as long."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a try: a trial, or the reason why there is none.

    Attributes:
        trial: What came of it; None where the environment failed.
        seconds: How long it took, all attempts and no pauses.
        error: Why the environment failed.
    """

    trial: Trial | None
    seconds: float
    error: str = ""


class Journal:
    """Answers of the batch that is under way, one JSON line each, beside the unit's bank."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def read(self) -> dict[str, Answer]:
        """Answers by episode id. A line cut short by a kill was no answer yet."""
        if not self._path.exists():
            return {}
        answers = {}
        for line in self._path.read_bytes().split(b"\n")[:-1]:
            fields = json.loads(line)
            trial = Trial(**fields["trial"])
            answers[fields["episode_id"]] = Answer(trial, fields["seconds"])
        return answers

    def start(self, answers: dict[str, Answer]) -> None:
        """Keep only these answers, those of the batch that begins."""
        partial = self._path.with_suffix(".part")
        partial.write_text(
            "".join(_line(id, answer) for id, answer in answers.items()), encoding="utf-8"
        )
        partial.replace(self._path)

    def add(self, episode_id: str, answer: Answer) -> None:
        """Keep one answer."""
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(_line(episode_id, answer))


def _line(episode_id: str, answer: Answer) -> str:
    trial = None if answer.trial is None else asdict(answer.trial)
    fields = {"episode_id": episode_id, "seconds": answer.seconds, "trial": trial}
    return json.dumps(fields, ensure_ascii=False) + "\n"


def _usable(answer: Answer) -> bool:
    """Whether a kept answer could be recorded; one of an older version is else asked for again."""
    try:
        check_trial(answer.trial, "")
    except InputError:
        return False
    return True


class Actor:
    """Tries tasks.

    Args:
        environment: Where.
        attempts: How often a failing environment is asked.
        arm: Which arm asks, for the error of a trial that is none.
        workers: How many tasks are tried at a time.
        journal: Where answers are kept; None where an unfinished unit is simply run again.
        pause: Waits before another attempt.
    """

    def __init__(
        self,
        environment: Environment,
        *,
        attempts: int = 1,
        arm: str = "",
        workers: int = 1,
        journal: Journal | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._environment = environment
        self._attempts = attempts
        self._arm = arm
        self._workers = workers
        self._journal = journal
        self._pause = pause

    def act(self, episode_ids: Sequence[str], situations: Sequence[Situation]) -> list[Answer]:
        """Try every task of a batch, in any order; the answers are in the batch's own."""
        known: dict[str, Answer] = {}
        if self._journal is not None:
            kept = self._journal.read()
            known = {id: kept[id] for id in episode_ids if id in kept and _usable(kept[id])}
            self._journal.start(known)
        open_ = [pair for pair in zip(episode_ids, situations, strict=True) if pair[0] not in known]
        if self._workers == 1 or len(open_) < 2:
            known |= {id: self._try(id, situation) for id, situation in open_}
        else:
            pool = ThreadPoolExecutor(self._workers)
            try:
                found = pool.map(lambda pair: self._try(*pair), open_)
                known |= zip((id for id, _ in open_), found, strict=True)
            except BaseException as error:  # an interrupt does not wait for what is being asked
                pool.shutdown(wait=isinstance(error, Exception), cancel_futures=True)
                raise
            pool.shutdown()
        return [known[id] for id in episode_ids]

    def _try(self, episode_id: str, situation: Situation) -> Answer:
        """Ask until there is an answer, or the attempts are used up."""
        seconds, reason = 0.0, ""
        for attempt in range(self._attempts):
            if attempt:
                self._pause(FIRST_PAUSE * 2 ** (attempt - 1))
            started = time.perf_counter()
            try:
                trial = self._environment.act(situation)
            except Exception as error:
                seconds += time.perf_counter() - started
                reason = f"{type(error).__name__}: {error}"
                continue
            seconds += time.perf_counter() - started
            where = f"task {situation.task.id}, arm {self._arm}"
            answer = Answer(check_trial(trial, where), seconds)
            if self._journal is not None:
                self._journal.add(episode_id, answer)
            return answer
        return Answer(None, seconds, reason)
