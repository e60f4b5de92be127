"""What a user pays for the memory besides time: tokens, model calls, and cache hits lost.

A scripted model plays an agent that calls two tools and answers, so three calls per episode, with
and without the memory, on the same tasks. What it was asked is counted.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately

from langchain_memrl.bench.caches import is_memory, served, wire
from langchain_memrl.bench.rows import Goal, Row
from langchain_memrl.bench.timing import Times, summary
from langchain_memrl.memory import EpisodicMemory
from langchain_memrl.offline import HashingEmbeddings, ScriptedChatModel
from langchain_memrl.prompts import LESSON_SYSTEM
from langchain_memrl.retriever import MemRLRetriever
from langchain_memrl.summarizers import LLMSummarizer

TURNS = 5
TOOL_CALLS = 2
KNOWN = 200
"""Memories in the bank before the first counted episode."""
DIMENSION = 384
BUDGET = Goal(0, 1500)
"""The default `max_memory_tokens`; what frames the memories comes on top."""
DONE = ("Restore the backup of", "Rotate the keys of", "Renew the certificate of", "Resize")
THINGS = ("the billing database", "the mail server", "the build machine", "the archive", "the shop")
SYSTEM = "You keep the computers of a small company running.\n" + "\n".join(
    f"Rule {n}: before you change anything of kind {n}, look at its state and write it down."
    for n in range(1, 51)
)
RESULT = "state: running\n" + "\n".join(
    f"line {n}: all checks of part {n} passed" for n in range(8)
)
ANSWER = (
    "Done. I looked at its state first, stopped what wrote to it, made the change, started it "
    "again and compared both states; nothing else was touched."
)
LESSON = (
    "1. Look at the state and write it down. 2. Stop every writer before the change. 3. Change one "
    "thing. 4. Start it again and compare both states; go back where they differ."
)


class Asked(NamedTuple):
    """What the model was asked in one episode: by the agent, and by the summariser."""

    agent: list[list[BaseMessage]]
    summary: list[list[BaseMessage]]


def what_episodes_cost(episodes: int) -> Iterator[Row]:
    """Injected tokens, extra model calls and lost cache hits, over the whole graph loop."""
    single, bare = (_asked(episodes, 1, with_memory=way) for way in (True, False))
    yield from _tokens(single, bare)
    calls = _extra(single, bare)
    yield _row("extra model calls, at most", calls, unit="calls", of="largest", goal=Goal(0, 1))
    error = _changing_start(single) or _changing_memories(single)
    yield from _cache(single, bare, "", error)
    talk, bare = (_asked(episodes, TURNS, with_memory=way) for way in (True, False))
    yield from _cache(talk, bare, f", {TURNS} turns", _changing_memories(talk))


def _row(what: str, times: Times, *beside: Any, **more: Any) -> Row:
    return Row(what, KNOWN, 0, times, *beside, **more)


def _tokens(single: Sequence[Asked], bare: Sequence[Asked]) -> Iterator[Row]:
    prompts = [prompt for one in single for prompt in one.agent]
    block = [_count([m for m in prompt if is_memory(m)]) for prompt in prompts]
    yield _row("injected per call", summary(block), unit="tok")
    yield _row("injected, worst call", summary(block), unit="tok", of="largest", goal=BUDGET)
    added = [sum(_count([m for m in p if is_memory(m)]) for p in one.agent) for one in single]
    plain = [sum(map(_count, one.agent)) for one in bare]
    beside = ("prompts without it", summary(plain))
    yield _row("injected per episode", summary(added), *beside, unit="tok")
    asked = [sum(map(_count, one.summary)) for one in single]
    yield _row("the summary's prompt", summary(asked), unit="tok")


def _extra(single: Sequence[Asked], bare: Sequence[Asked]) -> Times:
    pairs = zip(single, bare, strict=True)
    return summary([len(one.agent) + len(one.summary) - len(other.agent) for one, other in pairs])


def _cache(ours: Sequence[Asked], bare: Sequence[Asked], kind: str, error: str) -> Iterator[Row]:
    """The share of all prompt tokens that a cache serves, and what the conversation lost of it.

    The memories of a new task are new text, which no cache can hold: they count as tokens, not as
    lost hits. Lost is what would have been served without them and is not served with them.
    """
    found, before = (served([p for one in many for p in one.agent]) for many in (ours, bare))
    calls = len(ours)
    beside = ("without memory", _one(before.share, calls))
    yield _row(f"cache hits{kind}", _one(found.share, calls), *beside, unit="%")
    lost = _one(before.own_share - found.own_share, calls)
    yield _row(f"cache hits lost{kind}", lost, unit="pts", goal=Goal(0, 2), error=error)


def _one(value: float, calls: int) -> Times:
    return Times(value, value, value, calls)


def _count(messages: Sequence[BaseMessage]) -> int:
    return count_tokens_approximately(messages) if messages else 0


def _changing_start(episodes: Sequence[Asked]) -> str:
    """Whether prompts begin differently before the memories, which a cache needs to be the same."""
    starts = set()
    for prompt in (prompt for one in episodes for prompt in one.agent):
        places = [place for place, message in enumerate(prompt) if is_memory(message)]
        if places:
            starts.add(tuple(map(wire, prompt[: places[0]])))
    return f"{len(starts)} different beginnings before the memories" if len(starts) > 1 else ""


def _changing_memories(episodes: Sequence[Asked]) -> str:
    """Whether the memories change between the calls of one episode, or never come at all."""
    shown = [
        {tuple(wire(m) for m in prompt if is_memory(m)) for prompt in one.agent} for one in episodes
    ]
    if any(len(blocks) > 1 for blocks in shown):
        return "the memories change between the calls of one episode"
    return "" if any(blocks != {()} for blocks in shown) else "no episode was shown a memory"


# --- the episodes -------------------------------------------------------------------------------


def _asked(episodes: int, turns: int, *, with_memory: bool) -> list[Asked]:
    """Run conversations of so many turns, an episode each; what the model was asked."""
    from langchain_memrl.graph import create_memrl_graph
    from langchain_memrl.graph.bare import tool_agent

    model = ScriptedChatModel(responses=_reply)
    agent = tool_agent(model, SYSTEM, RESULT)
    if not with_memory:
        return _converse(agent, model, episodes, turns)
    with EpisodicMemory.open(":memory:", embeddings=HashingEmbeddings(DIMENSION)) as memory:
        memory.remember_many([_known(number) for number in range(KNOWN)])
        loop = create_memrl_graph(
            agent,
            MemRLRetriever(memory=memory),
            evaluator=lambda state: 1.0,
            summarizer=LLMSummarizer(model),
        )
        return _converse(loop, model, episodes, turns)


def _converse(agent: Any, model: ScriptedChatModel, episodes: int, turns: int) -> list[Asked]:
    ends: list[int] = [0]
    messages: list[BaseMessage] = []
    for number in range(episodes):
        history = messages if number % turns else []
        told = agent.invoke({"messages": [*history, HumanMessage(_task(KNOWN + number))]})
        messages = told["messages"]
        ends.append(len(model.calls))
    calls = model.calls
    return [
        Asked(
            [call for call in calls[start:end] if not _is_summary(call)],
            [call for call in calls[start:end] if _is_summary(call)],
        )
        for start, end in itertools.pairwise(ends)
    ]


def _task(number: int) -> str:
    done, thing = DONE[number % len(DONE)], THINGS[number % len(THINGS)]
    return f"{done} {thing} of customer {number}, and tell me what you changed."


def _known(number: int) -> dict[str, Any]:
    outcome = "failure" if number % 5 == 0 else "success"
    steps = "\n".join([f"ai calls look()\ntool: {RESULT}"] * TOOL_CALLS + [f"ai: {ANSWER}"])
    return {
        "intent": _task(number),
        "lesson": f"{LESSON} Customer {number} keeps it on disk {number}.",
        "trajectory": steps,
        "outcome": outcome,
    }


def _reply(messages: list[BaseMessage]) -> str | AIMessage:
    """Two tool calls, then the answer; or a lesson where one is asked for."""
    if _is_summary(messages):
        return LESSON
    last = max(n for n, message in enumerate(messages) if isinstance(message, HumanMessage))
    used = sum(isinstance(message, ToolMessage) for message in messages[last:])
    if used == TOOL_CALLS:
        return ANSWER
    call = {"name": "look", "args": {"step": used}, "id": f"call-{len(messages)}"}
    return AIMessage("", tool_calls=[call])


def _is_summary(messages: Sequence[BaseMessage]) -> bool:
    first = messages[0]
    return isinstance(first, SystemMessage) and str(first.content).startswith(LESSON_SYSTEM)
