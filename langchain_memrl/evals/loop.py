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
        loops = {}
        for arm in arms:
            memory = stack.enter_context(open_bank(arm, world, embeddings, seed))
            loops[arm.name] = build_loop(arm, memory, model, judge)
        order = random.Random(seed)  # noqa: S311 - an experiment, not a secret
        step = 0
        for epoch in range(epochs):
            for ticket in order.sample(world.tickets, len(world.tickets)):
                for arm in arms:
                    yield _answer(loops[arm.name], arm.name, epoch, step, ticket)
                step += 1


def _answer(loop: Any, arm: str, epoch: int, step: int, ticket: Ticket) -> EpisodeRecord:
    started = time.perf_counter()
    state = loop.invoke(
        {"messages": [SystemMessage(INSTRUCTION), HumanMessage(ticket.text)]},
        {"metadata": {"memrl_episode_id": f"{arm}-{epoch}-{ticket.id}"}},
    )
    return EpisodeRecord(
        arm=arm,
        epoch=epoch,
        step=step,
        task=ticket.id,
        answer=state["answer"],
        success=state["outcome"] == "success",
        shown=tuple(memory["id"] for memory in state["memories"]),
        q_values=tuple(memory["q_value"] for memory in state["memories"]),
        seconds=time.perf_counter() - started,
    )
