"""The one loop: every arm meets the same tasks in the same order."""

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.messages import HumanMessage, SystemMessage

from langchain_memrl.evals.arms import ARMS, Arm, build_loop, open_bank
from langchain_memrl.evals.records import EpisodeRecord
from langchain_memrl.evals.suites.runbooks import INSTRUCTION, Ticket, make_runbooks, score
from langchain_memrl.memory import EpisodicMemory


def run_runbooks(
    model: Any,
    embeddings: Embeddings,
    *,
    seed: int,
    tickets: int | None = None,
    epochs: int = 3,
    arms: Sequence[Arm] = ARMS,
) -> Iterator[EpisodeRecord]:
    """Run the runbooks suite; records come as they happen.

    Args:
        model: A chat model, or anything the graph accepts as an agent.
        embeddings: Embeddings of the banks.
        seed: Seed of the world and of the order in each epoch.
        tickets: How many tickets; all by default.
        epochs: How often the tickets come back, in another order.
        arms: Which configurations.

    Yields:
        One record per arm and ticket. An error of the model ends the run: it is no failed ticket.
    """
    world = make_runbooks(seed, tickets)
    truth = {ticket.text: ticket.queue for ticket in world.tickets}

    def judge(state: Any) -> bool:
        return score(state["answer"], truth[state["intent"]])

    with ExitStack() as stack:
        banks = {
            arm.name: stack.enter_context(open_bank(arm, world, embeddings, seed)) for arm in arms
        }
        loops = {arm.name: build_loop(arm, banks[arm.name], model, judge) for arm in arms}
        order = random.Random(seed)  # noqa: S311 - an experiment, not a secret
        step = 0
        for epoch in range(epochs):
            for ticket in order.sample(world.tickets, len(world.tickets)):
                for arm in arms:
                    episode_id = f"{epoch}-{ticket.id}"
                    started = time.perf_counter()
                    result = _answer(loops[arm.name], ticket, episode_id)
                    yield EpisodeRecord(
                        world="",
                        arm=arm.name,
                        seed=seed,
                        epoch=epoch,
                        step=step,
                        task=ticket.id,
                        success=result["reward"] > 0,
                        **_shown(banks[arm.name], ticket, episode_id),
                        seconds=time.perf_counter() - started,
                        reward=result["reward"],
                        answer=result["messages"][-1].text,
                    )
                step += 1


def _answer(loop: Any, ticket: Ticket, episode_id: str) -> Any:
    """Let an arm answer a ticket and learn from it."""
    return loop.invoke(
        {"messages": [SystemMessage(INSTRUCTION), HumanMessage(ticket.text)]},
        {"metadata": {"memrl_episode_id": episode_id}},
    )


def _shown(memory: EpisodicMemory, ticket: Ticket, episode_id: str) -> dict[str, Any]:
    """What the episode recorded: ids in its prompt and their Q at that moment."""
    recorded = memory.recall(ticket.text, episode_id=episode_id)
    q_values = {candidate.id: candidate.q_value for candidate in recorded.candidates}
    return {"shown": recorded.ids, "q_values": tuple(q_values[id] for id in recorded.ids)}
