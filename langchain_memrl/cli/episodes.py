"""`memrl lift | episodes | expire`: what memories are worth, and what waits for a reward."""

import math
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from langchain_memrl.cli.bank import Bank, Json, Namespace, open_bank, print_json
from langchain_memrl.memory import EpisodicMemory
from langchain_memrl.reports import Lift

WORDS = {"helps": "memories help", "harms": "memories harm", "unknown": "cannot be told yet"}


def lift(
    bank: Bank,
    memories: Annotated[bool, typer.Option("--memories", help="Also for each memory.")] = False,
    namespace: Namespace = "default",
    as_json: Json = False,
) -> None:
    """How much success the memories add, from episodes that were held out by chance."""
    with open_bank(bank) as memory:
        found = memory.lift(memories=memories, namespace=namespace)
    if as_json:
        print_json(_plain(asdict(found)))
        return
    console = Console()
    if not found.episodes:
        console.print("Nothing was held out yet: recall with holdout=0.05, for example.")
        return
    for one in (found, *found.memories):
        console.print(_block(one))


def _block(one: Lift) -> Text:
    """A lift in four lines that fit a narrow terminal."""
    ends = f"({one.low:+.3f} to {one.high:+.3f})"
    if math.isnan(one.low):
        ends = "(too few episodes for an interval)"
    block = Text(one.memory_id or "All memories", style="bold")
    block.append(
        f"\n  success {one.success_with:.3f} in {one.episodes_with} episodes with, "
        f"{one.success_without:.3f} in {one.episodes_without} without"
        f"\n  difference {one.difference:+.3f} {ends}: {WORDS[one.verdict]}"
        f"\n  no reward yet: {one.waiting_with} with, {one.waiting_without} without",
        style="not bold",
    )
    return block


def _plain(value: Any) -> Any:
    """NaN as None, which JSON knows."""
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def episodes(
    bank: Bank,
    older_than: Annotated[float, typer.Option(min=0, help="Days since they began.")] = 0.0,
    limit: Annotated[int, typer.Option(min=1, help="How many, oldest first.")] = 20,
    namespace: Namespace = "default",
    as_json: Json = False,
) -> None:
    """List the episodes that wait for a reward."""
    with open_bank(bank) as memory:
        age = timedelta(days=older_than)
        found = memory.open_episodes(older_than=age, limit=limit, namespace=namespace)
    if as_json:
        print_json([asdict(one) for one in found])
        return
    console = Console()
    for one in found:
        shown = len(one.memory_ids)
        words = f"  {one.created_at:%Y-%m-%d %H:%M}, {shown} memor{'y' if shown == 1 else 'ies'}"
        console.print(Text(one.episode_id, style="bold") + Text(words, style="not bold"))
    if not found:
        console.print("No episode waits.")


def expire(
    bank: Bank,
    older_than: Annotated[float, typer.Option(min=0, help="Days since they began.")],
    reward: Annotated[
        float | None, typer.Option(help="What no signal means; without it nothing is learned.")
    ] = None,
    namespace: Namespace = "default",
) -> None:
    """Close episodes that waited too long for a reward."""
    with EpisodicMemory.open(bank, create=False) as memory:
        found = memory.expire_episodes(
            older_than=timedelta(days=older_than), reward=reward, namespace=namespace
        )
    Console().print(f"{len(found)} episodes closed.")
