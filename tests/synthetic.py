"""Made-up records with the shape of a real experiment, for tests of tables and pages."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from langchain_memrl.evals.records import BankRecord, EpisodeRecord, Header, write_records

ARMS = ("none", "rag", "memrl", "shrunk", "placebo", "oracle")
SKILL = {"none": 0.35, "rag": 0.5, "memrl": 0.45, "shrunk": 0.47, "placebo": 0.4, "oracle": 0.9}
GAIN = {"memrl": 0.08, "shrunk": 0.08, "rag": 0.01}
HEADER = Header(
    "worlds",
    "",
    {
        "protocol": "runtime",
        "epochs": 4,
        "guard": False,
        "arms": {arm: {"name": arm, "about": f"what {arm} is"} for arm in ARMS},
    },
    {"langchain-memrl": "0.1.0", "numpy": "2.4.6"},
)


def make_run(
    world: str, arm: str, seed: int, tasks: int = 12, epochs: int = 4
) -> Iterator[EpisodeRecord | BankRecord]:
    """The lines of one run; every number is drawn from its key."""
    draw = random.Random(f"{world} {arm} {seed}")
    hard = random.Random(f"{world} {seed}").uniform(-0.15, 0.15)  # what arms share
    harm = 0.3 if world.endswith("0") and arm in ("rag", "memrl") else 0.0
    q_values: list[float] = []
    failures: list[bool] = []
    for epoch in range(epochs):
        for place in range(tasks):
            chance = min(
                0.98, max(0.02, SKILL.get(arm, 0.45) + GAIN.get(arm, 0) * epoch + hard - harm)
            )
            shown = tuple(draw.sample(q_values, min(3, len(q_values)))) if arm != "none" else ()
            chance += 0.2 * (sum(shown) / len(shown)) if shown else 0.0
            won = None if draw.random() < 0.01 else draw.random() < chance
            yield EpisodeRecord(
                world,
                arm,
                seed,
                epoch,
                epoch * tasks + place,
                f"task-{place}",
                won,
                tuple(f"memory-{number:020}" for number in range(len(shown))),
                shown,
                draw.expovariate(200) + (0.002 if arm != "none" else 0.0005),
                reward=None if won is None else float(won),
                prompt_tokens=0 if arm == "none" else 40,
                completion_tokens=9,
                calls=1 if arm == "none" else 2,
            )
            if won is not None and arm != "none":
                q_values.append(
                    0.0 if draw.random() < 0.4 else draw.gauss(0.5 if won else -0.4, 0.3)
                )
                failures.append(not won)
        yield BankRecord(
            world,
            arm,
            seed,
            epoch,
            tuple(f"memory-{number:020}" for number in range(len(q_values))),
            tuple(q_values),
            tuple(int(q != 0) for q in q_values),
            tuple(failures),
        )


def make_records(
    worlds: int = 3, seeds: int = 5, arms: Sequence[str] = ARMS, tasks: int = 12, epochs: int = 4
) -> list[EpisodeRecord | BankRecord]:
    """The lines of every arm in every world."""
    return [
        line
        for world in range(worlds)
        for seed in range(seeds)
        for arm in arms
        for line in make_run(f"tell {world / 10:.1f}", arm, seed, tasks, epochs)
    ]


def write_folder(folder: Path, records: Sequence[EpisodeRecord | BankRecord]) -> None:
    """One file per world and seed, in a folder per world."""
    files: dict[Path, list[EpisodeRecord | BankRecord]] = {}
    for record in records:
        path = folder / record.world.replace(" ", "-") / f"seed-{record.seed}.jsonl"
        files.setdefault(path, []).append(record)
    for path, own in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_records(path, HEADER, own)
