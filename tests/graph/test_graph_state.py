"""What a checkpoint holds: ids, numbers, text and messages, nothing else."""

from decimal import Decimal

import numpy as np
import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from loops import STEPS, TASK, ask, in_parent, run, thread, wrap_step
from plain import foreign
from watched import CrashError, crash_once

from langchain_memrl import MemRLRetriever, Verdict, create_memrl_builder
from langchain_memrl.graph.state import MemRLInput, MemRLOutput, MemRLState
from langchain_memrl.offline import ScriptedChatModel

KEYS = set(MemRLState.__annotations__) | set(MemRLOutput.__annotations__)


def loop_of(bank, **options):
    """A loop whose outside parts return what is easily kept by mistake."""
    retriever = MemRLRetriever(memory=bank, score_threshold=None)
    settings = {
        "evaluator": lambda state: Verdict(np.float32(0.75), reason="x", scale="unit"),
        "intent": lambda state: state["messages"][-1].text,  # a subclass of str
    } | options
    model = ScriptedChatModel(responses=["an answer", "a lesson"], cycle=True)
    return create_memrl_builder(model, retriever, **settings)


@pytest.fixture
def filled(bank, seed):
    bank.remember(TASK, "x" * 9000, metadata={"deep": [{"n": 1}]}, outcome="failure")
    bank.remember("another task", None, trajectory="raw", outcome="unknown")
    bank.reinforce("earlier", reward=0.5, ids=[seed.id])
    return bank


def checkpoints(saver):
    """The loop's own keys in every checkpoint of every namespace of the thread."""
    for item in saver.list(thread()):
        values = {k: v for k, v in item.checkpoint["channel_values"].items() if k in KEYS}
        if values:
            yield values
        for _, channel, value in item.pending_writes or ():
            if channel in KEYS:
                yield {channel: value}


JUDGEMENTS = [
    np.float64(0.5),
    np.int64(1),
    np.True_,
    Decimal("0.5"),
    None,
    Verdict(np.float32(0.75), scale="unit"),
]


@pytest.mark.parametrize("nested", [False, True], ids=["standalone", "in a parent"])
def test_every_checkpoint_holds_plain_types_only(filled, any_saver, nested):
    judgements = iter(JUDGEMENTS)
    builder = loop_of(filled, evaluator=lambda state: next(judgements))
    if nested:
        graph = in_parent(builder.compile(), checkpointer=any_saver)
    else:
        graph = builder.compile(checkpointer=any_saver)
    for number in range(len(JUDGEMENTS)):
        graph.invoke(ask(f"task {number}"), thread())
    found = list(checkpoints(any_saver))
    assert len(found) > 6 * len(JUDGEMENTS)
    assert any(values.get("memories") for values in found)
    assert [problem for values in found for problem in foreign(values, messages=True)] == []


def test_a_result_holds_plain_types_only(form, filled):
    result = run(form, loop_of(filled).compile(), ask())
    assert foreign(result, messages=True) == []
    assert set(result) == {"messages", "episode_id", "reward"}


def test_what_each_step_adds_to_the_state_is_plain(form, filled, saver):
    graph = loop_of(filled).compile(checkpointer=saver)
    run(form, graph, ask(), thread())
    for snapshot in graph.get_state_history(thread()):
        assert foreign(snapshot.values, messages=True) == []


def test_the_state_survives_the_strict_serialiser_unchanged(filled, saver):
    graph = loop_of(filled).compile(checkpointer=saver)
    graph.invoke(ask(), thread())
    strict = JsonPlusSerializer(allowed_msgpack_modules=None)
    values = graph.get_state(thread()).values
    assert strict.loads_typed(strict.dumps_typed(values)) == values


def test_the_graph_takes_messages_only_and_gives_episode_and_reward(bank):
    graph = loop_of(bank).compile()
    assert set(MemRLInput.__annotations__) == {"messages"}
    assert set(graph.get_input_jsonschema()["properties"]) == {"messages"}
    assert set(graph.get_output_jsonschema()["properties"]) == {
        "messages",
        "episode_id",
        "reward",
    }


def test_the_graph_can_be_drawn_with_its_steps(bank):
    drawing = loop_of(bank).compile().get_graph().draw_mermaid()
    assert all(f"{step}({step})" in drawing for step in STEPS)


def test_metadata_that_looks_like_a_serialised_object_stays_data(form, bank, saver):
    trap = {"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {}}
    memory = bank.remember(TASK, str(trap), metadata={"trap": trap})
    graph = loop_of(bank).compile(checkpointer=saver)
    run(form, graph, ask(), thread())
    assert bank.get(memory.id).metadata == {"trap": trap}
    (shown,) = [m for m in graph.get_state(thread()).values["memories"] if m["id"] == memory.id]
    assert shown["lesson"] == str(trap)


@pytest.mark.parametrize("step", STEPS)
def test_a_state_read_back_from_a_file_goes_on(filled, any_saver, step):
    builder = loop_of(filled)
    wrap_step(builder, step, before=crash_once())
    with pytest.raises(CrashError):
        builder.compile(checkpointer=any_saver).invoke(ask(), thread())
    result = builder.compile(checkpointer=any_saver).invoke(None, thread())
    assert result["reward"] == 0.5
    assert type(result["messages"][-1]) is AIMessage
