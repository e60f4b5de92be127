"""The one loop: every arm meets the same tasks in the same order, and every line is kept.

Units of a simulated suite run in several processes with banks in memory; one that was not finished
is run again, which gives the same lines. Units of other suites run one after the other, with a
bank on disk beside the records, and go on after the last complete batch. Either way the lines
stand in the order of the plan, whoever finishes first.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any, NamedTuple

from langchain_memrl.errors import InputError
from langchain_memrl.evals.environment import Suite
from langchain_memrl.evals.recorder import Recorder, check_header, record_path
from langchain_memrl.evals.records import Header, line
from langchain_memrl.evals.settings import RunSettings, versions
from langchain_memrl.evals.unit import Record, Unit, UnitRun, units

Progress = Callable[[float, int, Unit], None]
"""Gets the units done so far (a part of one counts as such), how many there are, and the last."""

AHEAD = 4
"""Units per process that are begun before the first of them is written."""


def records(suite: Suite, settings: RunSettings, model: Any = None) -> Iterator[Record]:
    """Run everything with banks in memory and keep nothing on disk; records as they happen."""
    for unit in units(settings):
        for batch in UnitRun(suite, settings, unit, model=model).run():
            yield from batch


def run(
    suite: Suite,
    settings: RunSettings,
    out: Path,
    *,
    model: Any = None,
    model_name: str = "",
    jobs: int = 1,
    progress: Progress = lambda done, total, unit: None,
) -> list[Path]:
    """Run what is not in the folder yet.

    Args:
        suite: The suite. For several processes `make` has to be importable.
        settings: What to run.
        out: The folder of the records; a run of the same settings is continued.
        model: The chat model, where the suite asks one.
        model_name: Its name, for the header.
        jobs: Processes of a simulated suite, tasks tried at a time in any other.
        progress: Told after each unit, or each batch.

    Returns:
        The files of the records, one per world.

    Raises:
        InputError: The folder cannot be written or holds another run.
        MemRLError: The environment is down; what was answered is kept.
    """
    chosen = settings.as_header() | suite.as_settings()
    header = Header(suite.name, model_name, chosen, {**versions(), **suite.versions})
    for path in sorted(out.glob("*.jsonl")):
        check_header(path, header)  # none of them may be another run's
    every = units(settings)
    with ExitStack() as stack:
        pool = stack.enter_context(_processes(jobs)) if suite.simulated and jobs > 1 else None
        done = 0
        for world in settings.worlds:
            own = [unit for unit in every if unit.world == world]
            told = _Told(progress, done, len(every))
            with Recorder.open(record_path(out, world), header) as recorder:
                if suite.simulated:
                    _run_simulated(recorder, suite, settings, own, pool, jobs, told)
                else:
                    _run_slow(recorder, suite, settings, own, out, model, jobs, told)
            done += len(own)
    return [record_path(out, world) for world in settings.worlds]


class _Told(NamedTuple):
    """The caller's progress, from where a world begins."""

    progress: Progress
    before: int
    total: int

    def __call__(self, done: float, unit: Unit) -> None:
        self.progress(self.before + done, self.total, unit)


def _finished(recorder: Recorder, own: Sequence[Unit]) -> int:
    """How many units of a world are finished; the last one in the file may be."""
    there = [*recorder.finished, *([] if recorder.last is None else [recorder.last])]
    if there != list(own[: len(there)]):
        raise InputError(f"{recorder.path} holds other units than this run; choose another folder")
    return len(recorder.finished)


# --- simulated: whole units, in several processes -----------------------------------------------


def _run_simulated(
    recorder: Recorder,
    suite: Suite,
    settings: RunSettings,
    own: Sequence[Unit],
    pool: Executor | None,
    jobs: int,
    told: _Told,
) -> None:
    done = _finished(recorder, own)
    if recorder.last is not None:
        last = UnitRun(suite, settings, recorder.last)
        if last.complete([line.record for line in recorder.lines]) == last.length:
            done += 1
        else:
            recorder.cut(recorder.start)
    for unit, lines in _whole_units(suite, settings, own[done:], pool, jobs):
        recorder.append(lines)
        done += 1
        told(done, unit)


def _whole_units(
    suite: Suite, settings: RunSettings, rest: Sequence[Unit], pool: Executor | None, jobs: int
) -> Iterator[tuple[Unit, list[str]]]:
    """The lines of each unit, in order."""
    if pool is None:
        for unit in rest:
            yield unit, _lines(suite, settings, unit)
        return
    begun: deque[tuple[Unit, Future[list[str]]]] = deque()
    for unit in rest:
        begun.append((unit, pool.submit(_lines, suite, settings, unit)))
        if len(begun) >= AHEAD * jobs:
            first, future = begun.popleft()
            yield first, future.result()
    for first, future in begun:
        yield first, future.result()


def _lines(suite: Suite, settings: RunSettings, unit: Unit) -> list[str]:
    run_ = UnitRun(suite, settings, unit)
    return [line(record) for batch in run_.run() for record in batch]


@contextmanager
def _processes(jobs: int) -> Iterator[Executor]:
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_end_with_parent)
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _end_with_parent() -> None:
    """Leave no process behind when the one that started it is killed."""
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


# --- slow: batch by batch, with a bank on disk --------------------------------------------------


def _run_slow(
    recorder: Recorder,
    suite: Suite,
    settings: RunSettings,
    own: Sequence[Unit],
    out: Path,
    model: Any,
    jobs: int,
    told: _Told,
) -> None:
    done = _finished(recorder, own)
    for unit in own[done:]:
        run_ = UnitRun(suite, settings, unit, model=model, folder=_folder(out, unit), workers=jobs)
        earlier: list[Record] = []
        if unit == recorder.last:
            there = recorder.lines
            kept = run_.complete([line.record for line in there])
            recorder.cut(there[kept - 1].end if kept else recorder.start)
            earlier = [line.record for line in there[:kept]]
        count = len(earlier)
        told(done + count / run_.length, unit)
        for batch in run_.run(earlier):
            recorder.append(map(line, batch))
            count += len(batch)
            told(done + count / run_.length, unit)
        done += 1


def _folder(out: Path, unit: Unit) -> Path:
    """Where a unit's bank is."""
    name = "-".join(part for part in (unit.world, unit.arm, str(unit.seed)) if part)
    return out / "banks" / name.replace("/", "-")
