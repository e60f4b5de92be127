"""What is measured: every kind of call beside the least that the same work can cost."""

import tempfile
import time
from pathlib import Path

from langchain_memrl.bench import adapters, recalls, servers, writes
from langchain_memrl.bench.data import Filled, Tasks, fill
from langchain_memrl.bench.episodes import what_episodes_cost
from langchain_memrl.bench.footprint import imports, opening
from langchain_memrl.bench.peers import peers
from langchain_memrl.bench.plan import Step
from langchain_memrl.bench.rows import Found, Row, Say
from langchain_memrl.bench.shared import processes
from langchain_memrl.bench.timing import summary
from langchain_memrl.memory import EpisodicMemory
from langchain_memrl.store.embedded.coarse import LARGE

CHILDREN = 3
"""How often something is measured in a fresh process."""


def measure_once(updates: int, episodes: int, rounds: int, say: Say) -> Found:
    """Measure what does not depend on the size of a bank.

    Args:
        updates: Rewards per process where four write at once.
        episodes: Over how many episodes tokens and model calls are counted.
        rounds: A fifth of it is how often the import is timed, at most three times.
        say: Told what comes next.

    Returns:
        The rows.
    """
    say("the import")
    rows = list(imports(_children(rounds)))
    say(f"four processes, {updates:,} rewards each")
    rows.append(processes(updates))
    say(f"tokens, model calls and cache hits of {episodes} episodes")
    return Found([*rows, *what_episodes_cost(episodes)], {})


def measure(step: Step, say: Say, server: str | None = None) -> Found:
    """Measure one bank.

    Args:
        step: Which one, and how often each call is timed.
        say: Told what comes next.
        server: `postgresql://...`, where the same is measured on a server too.

    Returns:
        The rows, and what could not be measured.
    """
    say("making the vectors")
    tasks = Tasks(step.size, step.dimension)
    missing: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="memrl-bench-") as name:
        folder = Path(name)
        say("filling the bank")
        start = time.perf_counter()
        with EpisodicMemory.open(folder / "bank", embeddings=tasks, exact=True) as memory:
            fill(memory, tasks)
            filled = summary([1000 * (time.perf_counter() - start) / step.size])
            bank = Filled(memory, tasks, folder, step.rounds)
            rows = [bank.row("load, per memory", filled), *_calls(bank, say)]
        if step.size > recalls.REFERENCE_LIMIT:
            name = f"the paper's code, {step.size:,} memories"
            missing[name] = "one retrieval takes many seconds"
        if step.size * step.dimension >= LARGE:
            say("recall by codes")
            with EpisodicMemory.open(folder / "bank", embeddings=tasks) as memory:
                rows += recalls.by_codes(bank._replace(memory=memory))
        say("opening the bank")
        rows += opening(folder / "bank", tasks, _children(step.rounds))
        if server is not None and step.size <= servers.LIMIT:
            rows += servers.on_server(server, folder / "beside", tasks, step.rounds, say)
        elif server is not None:
            missing[f"PostgreSQL, {step.size:,} memories"] = "it takes long to fill"
        if step.peers:
            found = peers(bank, say)
            rows, missing = rows + found.rows, missing | found.missing
    return Found(rows, missing)


def _calls(bank: Filled, say: Say) -> list[Row]:
    bank.memory.recall(bank.tasks.text(0))
    say("recall")
    rows = [recalls.scan(bank), *recalls.in_episodes(bank)]
    if len(bank.tasks.texts) <= recalls.REFERENCE_LIMIT:
        say("recall beside the paper's code")
        rows.append(recalls.reference(bank))
    say("reinforce")
    rows += writes.rewards(bank)
    say("remember")
    rows += [*writes.inserts(bank), writes.counting(bank)]
    say("the retriever")
    rows += adapters.retriever(bank)
    say("the whole graph loop")
    return [*rows, adapters.graph(bank)]


def _children(rounds: int) -> int:
    return max(1, min(CHILDREN, rounds // 5))
