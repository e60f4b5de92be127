"""`learn=False`: transfer and production canaries. The bank stays as it is, byte for byte."""

import pytest
from langchain_core.messages import AIMessage
from langgraph.types import Command
from loops import TASK, ask, dump, events, in_parent, kinds, run, thread

from langchain_memrl import (
    EpisodicMemory,
    MemRLRetriever,
    create_memrl_builder,
    create_memrl_graph,
    verbatim,
)
from langchain_memrl.offline import ScriptedChatModel


@pytest.fixture
def filled(folder, embeddings):
    """A bank on disk with one memory, and what it holds."""
    with EpisodicMemory.open(folder, embeddings=embeddings) as bank:
        seed = bank.remember("restart the modem", "Press it for ten seconds.", source="seed")
        bank.reinforce("earlier", reward=1.0, ids=[seed.id])
        bank.recall(TASK)  # so that its index is in the folder too
    return dump(folder)


def frozen(bank, *, agent=lambda messages: AIMessage("an answer"), **options):
    settings = {"evaluator": lambda state: 1.0, "summarizer": verbatim, "learn": False} | options
    retriever = MemRLRetriever(memory=bank, score_threshold=None)
    return create_memrl_builder(agent, retriever, **settings)


@pytest.mark.parametrize("read_only", [False, True], ids=["writable", "read-only"])
@pytest.mark.parametrize("verdict", [1.0, None], ids=str)
def test_a_frozen_loop_recalls_and_judges_and_writes_nothing(
    form, folder, embeddings, filled, saver, read_only, nested, verdict
):
    model = ScriptedChatModel(responses=["an answer"], cycle=True)
    with EpisodicMemory.open(folder, embeddings=embeddings, read_only=read_only) as bank:
        builder = frozen(bank, agent=model, evaluator=lambda state: verdict)
        graph = in_parent(builder.compile()) if nested else builder.compile(checkpointer=saver)
        for config in (thread(), thread(metadata={"memrl_episode_id": "job-42"})):
            result = run(form, graph, ask(f"{TASK} now"), config)
        assert nested or result["reward"] == verdict
        assert nested or result["episode_id"] == "job-42"
        assert dump(folder) == filled
    assert all("Press it for ten seconds." in call[-2].text for call in model.calls)
    assert len(model.calls) == 2  # and no summary was paid for
    assert dump(folder) == filled


def test_a_frozen_batch_writes_nothing(folder, embeddings, filled):
    with EpisodicMemory.open(folder, embeddings=embeddings) as bank:
        graph = frozen(bank).compile()
        results = graph.batch([ask(f"{TASK} {n}") for n in range(10)], {"max_concurrency": 4})
    assert len({result["episode_id"] for result in results}) == 10
    assert dump(folder) == filled


def test_a_frozen_loop_on_an_empty_bank_does_not_even_fix_the_embedding_model(
    form, folder, embeddings
):
    with EpisodicMemory.open(folder, embeddings=embeddings) as bank:
        before = dump(folder)
        run(form, frozen(bank).compile(), ask())
    assert dump(folder) == before


def test_a_frozen_loop_that_fails_or_asks_a_person_writes_nothing(
    form, folder, embeddings, filled, saver
):
    def broken(state):
        raise TimeoutError("busy")

    with EpisodicMemory.open(folder, embeddings=embeddings) as bank:
        with pytest.raises(TimeoutError):
            run(form, frozen(bank, evaluator=broken).compile(), ask())
        graph = frozen(bank, evaluator="human").compile(checkpointer=saver)
        run(form, graph, ask(), thread())
        assert run(form, graph, Command(resume=-1.0), thread())["reward"] == -1.0
    assert dump(folder) == filled


def test_a_frozen_loop_emits_what_it_did_and_no_more(form, folder, embeddings, filled):
    with EpisodicMemory.open(folder, embeddings=embeddings) as bank:
        found = events(form, frozen(bank).compile(), ask())
    assert kinds(found) == ["retrieved", "generated", "evaluated"]


def test_a_learning_loop_on_the_same_bank_does_write(folder, embeddings, filled):
    with EpisodicMemory.open(folder, embeddings=embeddings) as bank:
        retriever = MemRLRetriever(memory=bank, score_threshold=None)
        create_memrl_graph(lambda m: "x", retriever, evaluator=lambda s: 1.0).invoke(ask())
    assert dump(folder) != filled


@pytest.mark.parametrize("reward", [1.0, None])
def test_without_writing_q_moves_and_no_memory_is_added(form, bank, retriever, seed, reward):
    graph = create_memrl_graph(
        lambda messages: "an answer", retriever, evaluator=lambda state: reward, write=False
    )
    result = run(form, graph, ask(), {})
    if reward is None:
        bank.reinforce(result["episode_id"], reward=1.0)
    assert bank.get(seed.id).q_value == pytest.approx(0.3)
    assert [memory.id for memory in bank.list()] == [seed.id]
