"""A real small model as an agent that routes support tickets with what it remembers."""

from langchain.agents import create_agent

from langchain_memrl import EpisodicMemory, MemRLRetriever
from langchain_memrl.evals.asking import word_embeddings
from langchain_memrl.evals.suites.runbooks import INSTRUCTION, SUITE, make_runbooks, score
from langchain_memrl.middleware import MemRLMiddleware
from langchain_memrl.offline import chat_model


def route(server, seed, episodes, tickets=None, **options):
    """Whether each of so many episodes found the queue, in order; the tickets come again.

    The bank starts with three notes per kind of ticket that read alike; one of them is right.
    """
    world = make_runbooks(seed, tickets)
    queues = {ticket.text: ticket.queue for ticket in world.tickets}

    def found(state):
        return score(state["messages"][-1].text, queues[state["intent"]])

    with EpisodicMemory.open(":memory:", embeddings=word_embeddings(), seed=seed) as memory:
        memory.remember_many(
            [{"intent": note.title, "lesson": f"Queue: {note.queue}"} for note in world.notes]
        )
        agent = create_agent(
            chat_model(server, **SUITE.model_settings),
            system_prompt=INSTRUCTION,
            middleware=[
                MemRLMiddleware(
                    MemRLRetriever(memory=memory, k=1), evaluator=found, render="turns", **options
                )
            ],
        )
        texts = [world.tickets[n % len(world.tickets)].text for n in range(episodes)]
        results = [agent.invoke({"messages": [("user", text)]}) for text in texts]
    return [result["memrl_reward"] > 0 for result in results]
