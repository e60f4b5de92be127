import itertools

import pytest
from hostile import HOSTILE, assert_inside_the_fence
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from loops import TASK, ask, events, run, thread

from langchain_memrl import (
    LLMJudge,
    LLMSummarizer,
    MemRLRetriever,
    create_memrl_builder,
    create_memrl_graph,
    verbatim,
)
from langchain_memrl.offline import ScriptedChatModel

RENDERS = ("fenced", "turns")


def showing(bank, render):
    """Gives the messages an agent gets when the one memory consists of a text."""
    model = ScriptedChatModel(responses=["an answer"], cycle=True)
    loop = create_memrl_graph(
        model,
        MemRLRetriever(memory=bank, score_threshold=None),
        evaluator=lambda state: 1.0,
        summarizer=verbatim,
        render=render,
        learn=False,
    )

    def show(text, outcome):
        bank.forget(all=True)
        bank.remember(text, text, trajectory=text, outcome=outcome, source="seed")
        loop.invoke({"messages": [SystemMessage("Be brief."), HumanMessage(TASK)]})
        return model.calls[-1]

    return show


@pytest.mark.parametrize("outcome", ["success", "failure", "unknown"])
@pytest.mark.parametrize("render", RENDERS)
def test_hostile_texts_arrive_unchanged_as_data_and_change_no_roles(bank, render, outcome):
    assert len(HOSTILE) == 30
    show = showing(bank, render)
    harmless = show("press it", outcome)
    for name, text in HOSTILE.items():
        messages = show(text, outcome)
        assert [m.type for m in messages] == [m.type for m in harmless], name
        assert messages[0] == SystemMessage("Be brief.", id=messages[0].id), name
        assert messages[-1].content == TASK, name
        assert all(type(m.content) is str for m in messages), name
        assert not any(getattr(m, "tool_calls", None) for m in messages), name
        # Every place where the harmless text stood holds the hostile one, and nothing else moved.
        for plain, hostile in zip(harmless[1:-1], messages[1:-1], strict=True):
            expected = plain.content.replace("press it", text)
            assert without_fence(hostile.content) == without_fence(expected), name
            if render == "fenced":
                assert_inside_the_fence(text, hostile.content)


def without_fence(content):
    """The content with its fence, which depends on the text, replaced."""
    lines = content.split("\n")
    return content.replace(lines[1], "FENCE") if content.startswith("Notes from") else content


def test_hostile_texts_reach_summariser_and_judge_unchanged_and_outside_their_instructions(bank):
    grade = {"name": "Grade", "args": {"score": 1, "reason": "x"}, "id": "1"}
    writer = ScriptedChatModel(responses=["a lesson"], cycle=True)
    judge = ScriptedChatModel(responses=[AIMessage("", tool_calls=[grade])], cycle=True)
    texts = iter(HOSTILE.values())
    loop = create_memrl_graph(
        lambda messages: next(texts),
        MemRLRetriever(memory=bank, filter={"source": "nobody"}),
        evaluator=LLMJudge(judge),
        summarizer=LLMSummarizer(writer),
    )
    for name, text in HOSTILE.items():
        result = loop.invoke(ask(text))
        for system, record in (writer.calls[-1], judge.calls[-1]):
            assert (system.type, record.type) == ("system", "human"), name
            assert record.content.count(text) >= 2, name
            assert text not in system.content, name
        memory = bank.get(bank.episode(result["episode_id"]).memory_id)
        assert (memory.intent, memory.trajectory, memory.lesson) == (text, text, "a lesson"), name


# --- where the memories stand -------------------------------------------------------------------


def turns_of(builder, saver, count, form):
    loop = builder.compile(checkpointer=saver)
    for number in range(count):
        result = run(form, loop, ask(f"{TASK} {number}"), thread())
    return result


@pytest.mark.parametrize(
    "render",
    [
        *RENDERS,
        lambda messages, memories: [
            SystemMessage(memories[0].lesson, id="of the caller"),
            *messages,
        ],
    ],
    ids=["fenced", "turns", "callable"],
)
def test_memories_are_in_every_prompt_and_never_in_the_conversation(form, retriever, saver, render):
    model = ScriptedChatModel(responses=["an answer"], cycle=True)
    builder = create_memrl_builder(
        model, retriever, evaluator=lambda state: 1.0, summarizer=verbatim, render=render
    )
    result = turns_of(builder, saver, 4, form)
    assert [message.type for message in result["messages"]] == ["human", "ai"] * 4
    for call in model.calls:
        assert sum("Press it for ten seconds." in message.text for message in call) == 1
    kept = builder.compile(checkpointer=saver).get_state_history(thread())
    for snapshot in kept:
        said = [message.text for message in snapshot.values.get("messages", [])]
        assert not any("Press it for ten seconds." in text for text in said)


def test_the_prompt_before_the_memories_is_the_same_from_turn_to_turn(form, retriever, saver):
    model = ScriptedChatModel(responses=lambda messages: f"answer {len(messages)}")
    builder = create_memrl_builder(
        model, retriever, evaluator=lambda state: None, summarizer=verbatim
    )
    turns_of(builder, saver, 10, form)
    prompts = [[(message.type, message.content) for message in call] for call in model.calls]
    blocks = {prompt[-2] for prompt in prompts}
    assert len(blocks) == 1  # the same memory, the same bytes
    for earlier, later in itertools.pairwise(prompts):
        assert later[: len(earlier) - 2] == earlier[:-2]


# --- only what reached the prompt ---------------------------------------------------------------


@pytest.fixture
def three(bank):
    """Lessons of 400 characters: 104 tokens each, and 5 for the task."""
    return [
        bank.remember("task", letter * 400, outcome="success", source="seed").id for letter in "abc"
    ]


def test_only_what_fitted_into_the_prompt_is_recorded_counted_and_rewarded(form, bank, three):
    model = ScriptedChatModel(responses=["an answer"], cycle=True)
    retriever = MemRLRetriever(memory=bank, score_threshold=None)
    loop = create_memrl_graph(
        model,
        retriever,
        evaluator=lambda state: 1.0,
        summarizer=verbatim,
        max_memory_tokens=2 * 109 + 20,
    )
    found = events(form, loop, ask())
    retrieved = found[0]
    assert len(retrieved["ids"]) == 2
    assert bank.episode(retrieved["episode_id"]).memory_ids == tuple(retrieved["ids"])
    (lost,) = set(three) - set(retrieved["ids"])
    assert retrieved["cut"] == [{"id": lost, "part": "memory", "characters": 400}]
    prompt = model.calls[0][0].text
    for id in three:
        shown = id != lost
        memory = bank.get(id)
        assert (memory.lesson in prompt) is shown
        assert (memory.selections, memory.updates) == ((1, 1) if shown else (0, 0))
    assert bank.list(filter={"source": "agent"})[0].parents == tuple(retrieved["ids"])


def test_a_budget_that_holds_nothing_shows_and_rewards_nothing(form, bank, three):
    model = ScriptedChatModel(responses=["an answer"], cycle=True)
    loop = create_memrl_graph(
        model,
        MemRLRetriever(memory=bank, score_threshold=None),
        evaluator=lambda state: 1.0,
        summarizer=verbatim,
        max_memory_tokens=1,
    )
    run(form, loop, ask())
    assert [message.text for message in model.calls[0]] == [TASK]
    assert bank.stats().updates == 0
    assert bank.stats().selections == 0


def test_a_callable_that_renders_gets_what_fitted(form, bank, three):
    seen = []

    def render(messages, memories):
        seen.append([memory.id for memory in memories])
        return messages

    loop = create_memrl_graph(
        lambda messages: "x",
        MemRLRetriever(memory=bank, score_threshold=None),
        evaluator=lambda state: 1.0,
        render=render,
        max_memory_tokens=120,
    )
    result = run(form, loop, ask())
    assert bank.episode(result["episode_id"]).memory_ids == tuple(seen[0])
    assert len(seen[0]) == 1


def test_a_rendering_that_fails_surfaces_and_learns_nothing(form, retriever, bank, seed):
    def render(messages, memories):
        raise ZeroDivisionError

    loop = create_memrl_graph(
        lambda messages: "x", retriever, evaluator=lambda state: 1.0, render=render
    )
    with pytest.raises(ZeroDivisionError):
        run(form, loop, ask())
    assert bank.get(seed.id).updates == 0
    assert bank.stats().memories == 1


def test_turns_show_the_memory_as_an_earlier_exchange(form, retriever):
    model = ScriptedChatModel(responses=["an answer"])
    loop = create_memrl_graph(
        model, retriever, evaluator=lambda s: 1.0, summarizer=verbatim, render="turns"
    )
    run(form, loop, ask())
    assert [(message.type, message.text) for message in model.calls[0]] == [
        ("human", "restart the modem"),
        ("ai", "Press it for ten seconds.\n\npressed it"),
        ("human", TASK),
    ]
