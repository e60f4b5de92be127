"""The one loop: every arm meets the same tasks in the same order, and every line is kept.

Units of a simulated suite run in several processes with banks in memory; one that was not finished
is run again, which gives the same lines. Units of other suites run one after the other, with a
bank on disk beside the records, and go on after the last complete batch; where a suite keeps its
banks in memory, a unit that was not finished begins anew. Either way the lines of a run stand in
the order of its plan, whoever finishes first; a later run with more arms or seeds adds its own
behind them.
"""

import shutil
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from langchain_memrl.evals.arms import Arm
from langchain_memrl.evals.environment import Setup, Suite
from langchain_memrl.evals.records import EpisodeRecord, Header, line
from langchain_memrl.evals.running.checking import make_environment
from langchain_memrl.evals.running.headers import fingerprint
from langchain_memrl.evals.running.processes import Processes, processes
from langchain_memrl.evals.running.protocols import plan
from langchain_memrl.evals.running.recorder import Recorder, fitting, record_path
from langchain_memrl.evals.running.unit import Record, Unit, UnitRun, units
from langchain_memrl.evals.settings import RunSettings, versions

Progress = Callable[[int, int, Unit | None], None]
"""Gets the episodes recorded so far, how many there will be, and the last unit; None before any."""

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
    source: str = "",
    accept_edits: bool = False,
    retry_errors: bool = False,
) -> list[Path]:
    """Run what is not in the folder yet.

    Args:
        suite: The suite. For several processes `make` has to be importable.
        settings: What to run.
        out: The folder of the records; a run of the same settings is continued, and one that
            differs only in arms or in the number of seeds is added to.
        model: The chat model, where the suite asks one.
        model_name: Its name, for the header.
        jobs: Processes of a simulated suite, tasks tried at a time in any other.
        progress: Told before anything is run, then after each unit, or each batch.
        source: SHA-256 of the suite's file, for the header.
        accept_edits: Whether that may differ from the one in the folder.
        retry_errors: Whether units with environment errors are run again from the first one on.

    Returns:
        The files of the records, one per world.

    Raises:
        InputError: The suite is unusable, or the folder cannot be written or holds another run.
        MemRLError: The environment is down; what was answered is kept.
    """
    asks, sizes = {}, {}
    for world in settings.worlds:
        setup = Setup(world, settings.first_seed, settings.tasks, model)
        environment = make_environment(suite, setup)
        asks[world] = fingerprint(environment, settings.tasks)
        tasks = environment.tasks[: settings.tasks]
        sizes[world] = sum(len(batch.tasks) for batch in plan(settings, tasks, setup.seed))
    chosen = settings.as_header() | suite.as_settings() | {"asks": asks}
    chosen["source"] = [source] if source else []
    header = Header(suite.name, model_name, chosen, {**versions(), **suite.versions})
    header, anew = fitting(out, header, accept_edits=accept_edits)
    paths = [record_path(out, world) for world in settings.worlds]
    with ExitStack() as stack:
        found = [stack.enter_context(Recorder.open(path, header, anew=anew)) for path in paths]
        if anew:
            shutil.rmtree(out / "banks", ignore_errors=True)
        every = units(settings)
        told = _Told(progress, sum(sizes[unit.world] for unit in every))
        job = _Job(suite, _with_arms(settings, header), out, model, jobs, retry_errors, told)
        own = [[unit for unit in every if unit.world == world] for world in settings.worlds]
        for recorder, wanted in zip(found, own, strict=True):
            told.done += sum(recorder.units[u].episodes for u in wanted if u in recorder.units)
        told(0, None)
        pool = None
        if suite.simulated and jobs > 1:
            pool = stack.enter_context(processes(jobs))
        for recorder, wanted in zip(found, own, strict=True):
            if suite.simulated:
                job.run_simulated(recorder, wanted, pool)
            else:
                job.run_slow(recorder, wanted)
    return paths


def _with_arms(settings: RunSettings, header: Header) -> RunSettings:
    """The settings with every arm of the folder, for a unit that another run left unfinished."""
    known = {arm.name for arm in settings.arms}
    others = (
        Arm(**fields) for name, fields in header.settings["arms"].items() if name not in known
    )
    return replace(settings, arms=(*settings.arms, *others))


@dataclass
class _Told:
    """The caller's progress, in episodes."""

    progress: Progress
    total: int
    done: int = 0

    def __call__(self, more: int, unit: Unit | None) -> None:
        self.done += more
        self.progress(self.done, self.total, unit)


@dataclass(frozen=True)
class _Job:
    """What all units of a run have in common."""

    suite: Suite
    settings: RunSettings
    out: Path
    model: Any
    jobs: int
    retry_errors: bool
    told: _Told

    def _to_retry(self, recorder: Recorder, own: Sequence[Unit]) -> list[Unit]:
        if not self.retry_errors:
            return []
        return [unit for unit in own if unit in recorder.units and recorder.units[unit].errors]

    # --- simulated: whole units, in several processes -------------------------------------------

    def run_simulated(
        self, recorder: Recorder, own: Sequence[Unit], pool: Processes | None
    ) -> None:
        """Run the units of a world that are not there, or not whole."""
        if recorder.last is not None:
            unit = recorder.last
            last = UnitRun(self.suite, self.settings, unit)
            if last.complete([line.record for line in recorder.read(unit)]) < last.length:
                self._drop(recorder, unit, own)
        again = self._to_retry(recorder, own)
        rest = [unit for unit in own if unit not in recorder.units or unit in again]
        for unit, lines in self._whole_units(rest, pool):
            if unit in again:
                self._drop(recorder, unit, own)
            recorder.append(lines)
            self.told(sum(text.startswith('{"kind": "episode"') for text in lines), unit)

    def _drop(self, recorder: Recorder, unit: Unit, own: Sequence[Unit]) -> None:
        if unit in own:
            self.told.done -= recorder.units[unit].episodes
        recorder.reopen(unit, 0)

    def _whole_units(
        self, rest: Sequence[Unit], pool: Processes | None
    ) -> Iterator[tuple[Unit, list[str]]]:
        """The lines of each unit, in order."""
        if pool is None:
            for unit in rest:
                yield unit, _lines(self.suite, self.settings, unit)
            return
        begun: deque[tuple[Unit, Future[list[str]]]] = deque()
        for unit in rest:
            begun.append((unit, pool.submit(_lines, self.suite, self.settings, unit)))
            if len(begun) >= AHEAD * self.jobs:
                first, future = begun.popleft()
                yield first, future.result()
        for first, future in begun:
            yield first, future.result()

    # --- slow: batch by batch, with a bank on disk ----------------------------------------------

    def run_slow(self, recorder: Recorder, own: Sequence[Unit]) -> None:
        """Finish the last unit of a file, whoever began it; then run what is not there."""
        there = set(recorder.units)  # one that begins anew has no records for a while
        last = [] if recorder.last is None else [recorder.last]
        for unit in last:
            self._go_on(recorder, unit, own, retry=False)
        for unit in self._to_retry(recorder, own):
            self._go_on(recorder, unit, own, retry=True)
        for unit in own:
            if unit not in there:
                self._go_on(recorder, unit, own, retry=False)

    def _go_on(self, recorder: Recorder, unit: Unit, own: Sequence[Unit], *, retry: bool) -> None:
        run_ = UnitRun(
            self.suite,
            self.settings,
            unit,
            model=self.model,
            folder=None if self.suite.in_memory else _folder(self.out, unit),
            workers=self.jobs,
        )
        earlier = [line.record for line in recorder.read(unit)]
        kept = run_.take_back(earlier) if retry else run_.complete(earlier)
        if self.suite.in_memory and (retry or kept < run_.length):
            kept = 0  # what its bank had learned is gone
        counts = unit in own
        if kept < len(earlier):
            recorder.reopen(unit, kept)
            self.told(-_episodes(earlier[kept:]) * counts, unit)
        for batch in run_.run(earlier[:kept]):
            recorder.append(map(line, batch))
            self.told(_episodes(batch) * counts, unit)


def _lines(suite: Suite, settings: RunSettings, unit: Unit) -> list[str]:
    run_ = UnitRun(suite, settings, unit)
    return [line(record) for batch in run_.run() for record in batch]


def _episodes(found: Sequence[Record]) -> int:
    return sum(isinstance(record, EpisodeRecord) for record in found)


def _folder(out: Path, unit: Unit) -> Path:
    """Where a unit's bank is."""
    name = "-".join(part for part in (unit.world, unit.arm, str(unit.seed)) if part)
    return out / "banks" / name.replace("/", "-")
