"""Figures as pure functions of records."""

from collections.abc import Sequence

from langchain_memrl.evals.records import EpisodeRecord


def arms(records: Sequence[EpisodeRecord]) -> list[str]:
    """The arms, in the order in which they first appear."""
    return list(dict.fromkeys(record.arm for record in records))


def success_per_epoch(records: Sequence[EpisodeRecord], arm: str) -> list[float]:
    """SR: share of the tasks solved in each epoch."""
    own = [record for record in records if record.arm == arm]
    return [
        _share([record.success for record in own if record.epoch == epoch])
        for epoch in sorted({record.epoch for record in own})
    ]


def cumulative_success(records: Sequence[EpisodeRecord], arm: str) -> list[float]:
    """CSR: share of the tasks solved at least once up to each epoch."""
    own = [record for record in records if record.arm == arm]
    tasks = {record.task for record in own}
    return [
        _share(
            [
                any(
                    record.success and record.epoch <= epoch
                    for record in own
                    if record.task == task
                )
                for task in sorted(tasks)
            ]
        )
        for epoch in sorted({record.epoch for record in own})
    ]


def running_success(records: Sequence[EpisodeRecord], arm: str, window: int = 8) -> list[float]:
    """Share solved among the last `window` tasks (fewer at the start), after each task."""
    won = [record.success for record in records if record.arm == arm]
    return [_share(won[max(0, end - window) : end]) for end in range(1, len(won) + 1)]


def _share(values: Sequence[bool | None]) -> float:
    return sum(map(bool, values)) / len(values) if values else 0.0
