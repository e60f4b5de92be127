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
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

from langchain_memrl.errors import InputError
from langchain_memrl.evals.environment import Suite
from langchain_memrl.evals.recorder import FILE, Recorder
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
) -> Path:
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
        The file of the records.

    Raises:
        InputError: The folder cannot be written or holds another run.
        MemRLError: The environment is down; what was answered is kept.
    """
    header = Header(suite.name, model_name, settings.as_header(), dict(versions()))
    with Recorder.open(out, header) as recorder:
        every = units(settings)
        rest = _rest(recorder, every, out)
        if suite.simulated:
            _run_simulated(recorder, suite, settings, rest, len(every), jobs, progress)
        else:
            _run_slow(recorder, suite, settings, rest, len(every), out, model, jobs, progress)
    return out / FILE


def _rest(recorder: Recorder, every: Sequence[Unit], out: Path) -> Sequence[Unit]:
    """The units that are not finished; the last one of the file may be."""
    count = len(recorder.finished)
    there = [*recorder.finished, *([] if recorder.last is None else [recorder.last])]
    if there != list(every[: len(there)]):
        raise InputError(f"{out / FILE} holds other units than this run has; choose another folder")
    return every[count:]


# --- simulated: whole units, in several processes -----------------------------------------------


def _run_simulated(
    recorder: Recorder,
    suite: Suite,
    settings: RunSettings,
    rest: Sequence[Unit],
    total: int,
    jobs: int,
    progress: Progress,
) -> None:
    if recorder.last is not None:
        last = UnitRun(suite, settings, recorder.last)
        there = [line.record for line in recorder.lines]
        if last.complete(there) == last.length:
            rest = rest[1:]
        else:
            recorder.cut(recorder.start)
    done = total - len(rest)
    if not rest:
        return
    progress(done, total, rest[0])
    for unit, lines in _whole_units(suite, settings, rest, jobs):
        recorder.append(lines)
        done += 1
        progress(done, total, unit)


def _whole_units(
    suite: Suite, settings: RunSettings, rest: Sequence[Unit], jobs: int
) -> Iterator[tuple[Unit, list[str]]]:
    """The lines of each unit, in order."""
    if jobs == 1:
        for unit in rest:
            yield unit, _lines(suite, settings, unit)
        return
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_end_with_parent)
    try:
        begun: deque[tuple[Unit, Future[list[str]]]] = deque()
        for unit in rest:
            begun.append((unit, pool.submit(_lines, suite, settings, unit)))
            if len(begun) >= AHEAD * jobs:
                first, future = begun.popleft()
                yield first, future.result()
        for first, future in begun:
            yield first, future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _lines(suite: Suite, settings: RunSettings, unit: Unit) -> list[str]:
    run_ = UnitRun(suite, settings, unit)
    return [line(record) for batch in run_.run() for record in batch]


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
    rest: Sequence[Unit],
    total: int,
    out: Path,
    model: Any,
    jobs: int,
    progress: Progress,
) -> None:
    done = total - len(rest)
    for unit in rest:
        run_ = UnitRun(suite, settings, unit, model=model, folder=_folder(out, unit), workers=jobs)
        earlier: list[Record] = []
        if unit == recorder.last:
            there = recorder.lines
            kept = run_.complete([line.record for line in there])
            recorder.cut(there[kept - 1].end if kept else recorder.start)
            earlier = [line.record for line in there[:kept]]
        count = len(earlier)
        progress(done + count / run_.length, total, unit)
        for batch in run_.run(earlier):
            recorder.append(map(line, batch))
            count += len(batch)
            progress(done + count / run_.length, total, unit)
        done += 1


def _folder(out: Path, unit: Unit) -> Path:
    """Where a unit's bank is."""
    name = "-".join(part for part in (unit.world, unit.arm, str(unit.seed)) if part)
    return out / "banks" / name.replace("/", "-")
