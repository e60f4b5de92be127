import asyncio
import operator
from typing import Annotated, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send
from loops import STEPS, TASK, answering, ask, closed_form, in_parent, run, stream, thread

from langchain_memrl import (
    EpisodicMemory,
    FromConfig,
    MemRLRetriever,
    Verdict,
    create_memrl_builder,
    create_memrl_graph,
    make_memrl_nodes,
)
from langchain_memrl.errors import EpisodeError, InputError
from langchain_memrl.graph.state import MemRLInput, MemRLOutput, MemRLState


@pytest.fixture
def loop(retriever):
    """The loop around an agent that answers and is always right."""
    return create_memrl_graph(answering(), retriever, evaluator=lambda state: 1.0)


def never(messages):
    pytest.fail("the agent acted")


def visited(form, graph, given, config=None):
    updates = stream(form, graph, given, config, stream_mode="updates")
    return [name for update in updates for name in update]


# --- the wiring ---------------------------------------------------------------------------------


def test_the_steps_run_in_order(form, loop):
    assert visited(form, loop, ask()) == STEPS


def test_without_a_reward_the_loop_ends_before_the_summary(form, retriever):
    loop = create_memrl_graph(answering(), retriever, evaluator=lambda state: None)
    assert visited(form, loop, ask()) == STEPS[:4]


def test_a_frozen_loop_only_recalls_acts_and_judges(form, retriever):
    loop = create_memrl_graph(answering(), retriever, evaluator=lambda state: 1.0, learn=False)
    assert visited(form, loop, ask()) == STEPS[:3]


def test_the_builder_shows_the_wiring(retriever):
    builder = create_memrl_builder(answering(), retriever, evaluator=lambda state: 1.0)
    assert list(builder.nodes) == STEPS
    assert builder.edges == {
        (START, "retrieve"),
        ("retrieve", "generate"),
        ("generate", "evaluate"),
        ("evaluate", "update_q"),
        ("summarize", "write"),
        ("write", END),
    }


def test_the_nodes_come_by_name_in_order(retriever):
    evaluator = {"evaluator": lambda state: 1.0}
    assert list(make_memrl_nodes(answering(), retriever, **evaluator)) == STEPS
    frozen = make_memrl_nodes(answering(), retriever, **evaluator, learn=False)
    assert list(frozen) == STEPS[:3]


def test_the_nodes_fit_into_a_graph_of_ones_own(form, retriever, bank, seed):
    nodes = make_memrl_nodes(answering(), retriever, evaluator=lambda state: 1.0)
    builder = StateGraph(MemRLState, input_schema=MemRLInput, output_schema=MemRLOutput)
    builder.add_sequence([(name, nodes[name]) for name in STEPS])
    builder.add_edge(START, STEPS[0])
    run(form, builder.compile(), ask())
    assert bank.get(seed.id).q_value == pytest.approx(0.3)
    assert bank.stats().memories == 2


def test_the_graph_has_the_given_name(retriever):
    options = {"evaluator": lambda state: 1.0}
    assert create_memrl_graph(answering(), retriever, **options).name == "memrl"
    assert create_memrl_graph(answering(), retriever, **options, name="mine").name == "mine"


# --- one episode --------------------------------------------------------------------------------


def test_one_run_answers_rewards_and_remembers(form, loop, bank, seed):
    result = run(form, loop, ask())
    assert set(result) == {"messages", "episode_id", "reward"}
    assert [message.text for message in result["messages"]] == [TASK, "Hold the button."]
    assert result["reward"] == 1.0
    assert bank.get(seed.id).q_value == pytest.approx(0.3)
    assert bank.get(seed.id).updates == bank.get(seed.id).selections == 1
    (written,) = bank.list(filter={"source": "agent"})
    assert (written.intent, written.lesson) == (TASK, "Hold the button.")
    assert (written.trajectory, written.outcome) == ("", "success")  # lesson = trajectory: once
    assert (written.q_value, written.updates, written.selections) == (0.0, 0, 0)
    assert written.parents == (seed.id,)
    assert written.episode_id == result["episode_id"]
    episode = bank.episode(result["episode_id"])
    assert (episode.memory_ids, episode.reward) == ((seed.id,), 1.0)
    assert episode.memory_id == written.id


def test_a_failure_is_punished_and_remembered_too(form, retriever, bank, seed):
    loop = create_memrl_graph(answering("Pull."), retriever, evaluator=lambda state: False)
    assert run(form, loop, ask())["reward"] == -1.0
    assert bank.get(seed.id).q_value == pytest.approx(-0.3)
    assert bank.list(filter={"source": "agent"})[0].outcome == "failure"


def test_the_verdicts_outcome_overrules_the_rewards_sign(form, retriever, bank):
    verdict = Verdict(-0.5, outcome="success")
    loop = create_memrl_graph(answering(), retriever, evaluator=lambda state: verdict)
    assert run(form, loop, ask())["reward"] == -0.5
    assert bank.list(filter={"source": "agent"})[0].outcome == "success"


def test_the_evaluator_sees_the_conversation_and_the_episode(form, retriever):
    seen = []

    def evaluator(state):
        seen.append(dict(state))
        return 1.0

    result = run(form, create_memrl_graph(answering(), retriever, evaluator=evaluator), ask())
    (state,) = seen
    assert [message.text for message in state["messages"]] == [TASK, "Hold the button."]
    assert (state["intent"], state["trajectory"]) == (TASK, "Hold the button.")
    assert state["episode_id"] == result["episode_id"]


def test_the_first_task_of_an_empty_bank_is_learned(form, open_bank):
    bank = open_bank(":memory:")
    loop = create_memrl_graph(answering(), MemRLRetriever(memory=bank), evaluator=lambda state: 1.0)
    result = run(form, loop, ask())
    assert bank.episode(result["episode_id"]).memory_ids == ()
    assert bank.list()[0].parents == ()
    assert not bank.reinforce(result["episode_id"], reward=1.0).applied


def test_an_unknown_topic_recalls_nothing_and_is_answered_all_the_same(form, bank, seed):
    retriever = MemRLRetriever(memory=bank, score_threshold=0.9)
    prompts = []

    def agent(messages):
        prompts.append(messages)
        return "an answer"

    result = run(form, create_memrl_graph(agent, retriever, evaluator=lambda s: 1.0), ask())
    assert result["messages"][-1].text == "an answer"
    assert [message.text for message in prompts[0]] == [TASK]
    assert bank.get(seed.id).updates == 0
    assert bank.stats().memories == 2


def test_what_was_learned_is_recalled_the_next_time(form, open_bank):
    bank = open_bank(":memory:")
    prompts = []

    def agent(messages):
        prompts.append("\n".join(message.text for message in messages))
        return "Hold the blue button."

    retriever = MemRLRetriever(memory=bank)
    loop = create_memrl_graph(agent, retriever, evaluator=lambda state: 1.0)
    run(form, loop, ask())
    run(form, loop, ask())
    assert "Hold the blue button." not in prompts[0]
    assert "Hold the blue button." in prompts[1]
    assert bank.list()[1].q_value == pytest.approx(0.3)
    assert bank.list()[0].parents == (bank.list()[1].id,)


def test_a_conversation_without_a_task_is_an_error_before_the_agent_acts(form, retriever, bank):
    before = bank.stats()
    loop = create_memrl_graph(never, retriever, evaluator=lambda state: 1.0)
    for messages in ([], [("ai", "hello")]):
        with pytest.raises(InputError, match="human message"):
            run(form, loop, {"messages": messages})
    assert bank.stats() == before


@pytest.mark.parametrize("text", ["", " \n", "\u200b"])
def test_a_blank_task_is_an_error_before_the_agent_acts(form, retriever, bank, text):
    before = bank.stats()
    loop = create_memrl_graph(never, retriever, evaluator=lambda state: 1.0)
    with pytest.raises(InputError, match="blank"):
        run(form, loop, ask(text))
    assert bank.stats() == before


def test_the_callers_input_is_never_changed(form, loop):
    message = HumanMessage(TASK)
    given = {"messages": [message]}
    run(form, loop, given)
    assert given == {"messages": [message]}
    assert message == HumanMessage(TASK, id=message.id)


# --- composed -----------------------------------------------------------------------------------


def test_as_a_node_only_messages_reach_a_parent_that_knows_nothing_else(form, loop, bank, seed):
    result = run(form, in_parent(loop), ask())
    assert set(result) == {"messages"}
    assert [message.text for message in result["messages"]] == [TASK, "Hold the button."]
    assert bank.get(seed.id).updates == 1
    assert bank.stats().memories == 2


class Wider(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    log: Annotated[list[str], operator.add]
    episode_id: str
    reward: float | None
    intent: str


def test_a_parent_may_take_episode_and_reward_and_keeps_its_other_keys(form, loop, bank):
    builder = StateGraph(Wider).add_node("memrl", loop).add_edge(START, "memrl")
    given = ask() | {"log": ["in"], "episode_id": "mine", "reward": -7.0, "intent": "mine"}
    result = run(form, builder.compile(), given)
    assert result["log"] == ["in"]
    assert result["intent"] == "mine"
    assert result["reward"] == 1.0
    assert bank.episode(result["episode_id"]).reward == 1.0
    with pytest.raises(EpisodeError):
        bank.episode("mine")


def test_two_loops_in_a_row_are_two_episodes(form, loop, bank, seed):
    builder = StateGraph(MessagesState).add_node("one", loop).add_node("two", loop)
    builder.add_edge(START, "one").add_edge("one", "two")
    result = run(form, builder.compile(), ask())
    assert [message.type for message in result["messages"]] == ["human", "ai", "ai"]
    assert bank.get(seed.id).q_value == pytest.approx(closed_form(1.0, 2))
    assert bank.stats().memories == 3


def test_parallel_branches_with_the_same_task_are_two_episodes(form, loop, bank, seed, saver):
    builder = StateGraph(MessagesState).add_node("one", loop).add_node("two", loop)
    builder.add_edge(START, "one").add_edge(START, "two")
    run(form, builder.compile(checkpointer=saver), ask(), thread())
    assert bank.get(seed.id).updates == 2
    assert bank.stats().memories == 3


def test_one_node_sent_the_same_task_many_times_is_as_many_episodes(form, loop, bank, seed):
    builder = StateGraph(MessagesState).add_node("memrl", loop)
    builder.add_conditional_edges(START, lambda state: [Send("memrl", ask())] * 4, ["memrl"])
    run(form, builder.compile(), ask())
    assert bank.get(seed.id).updates == 4
    assert bank.stats().memories == 5


@pytest.mark.parametrize("saved", [False, True])
def test_a_function_that_runs_the_loop_twice_makes_two_episodes(loop, bank, seed, saver, saved):
    def node(state):
        found = [loop.invoke(ask()) for _ in range(2)]
        assert found[0]["episode_id"] != found[1]["episode_id"]
        return {"messages": [AIMessage("done")]}

    builder = StateGraph(MessagesState).add_node("node", node).add_edge(START, "node")
    builder.compile(checkpointer=saver if saved else None).invoke(ask(), thread())
    assert bank.get(seed.id).updates == 2
    assert bank.stats().memories == 3


def test_a_batch_of_thirty_learns_every_episode_once(form, loop, bank, seed):
    given, config = [ask(f"{TASK} {n}") for n in range(30)], {"max_concurrency": 8}
    if form == "blocking":
        results = loop.batch(given, config)
    else:
        results = asyncio.run(loop.abatch(given, config))
    assert bank.stats().memories == 31
    assert len({result["episode_id"] for result in results}) == 30
    assert bank.get(seed.id).updates == bank.get(seed.id).selections == 30
    assert bank.get(seed.id).q_value == pytest.approx(closed_form(1.0, 30), abs=1e-9)
    assert {memory.intent for memory in bank.list(filter={"source": "agent"})} == {
        f"{TASK} {n}" for n in range(30)
    }
    assert bank.verify().ok


def test_a_batch_of_the_same_task_is_as_many_episodes(form, loop, bank, seed):
    given = [ask()] * 6
    config = {"max_concurrency": 3}
    results = (
        loop.batch(given, config) if form == "blocking" else asyncio.run(loop.abatch(given, config))
    )
    assert len({result["episode_id"] for result in results}) == 6
    assert bank.get(seed.id).updates == 6


@pytest.mark.parametrize("nested", [False, True], ids=["standalone", "in a parent"])
def test_it_runs_under_a_checkpointer(retriever, bank, seed, any_saver, nested):
    builder = create_memrl_builder(answering(), retriever, evaluator=lambda state: 1.0)
    if nested:
        graph = in_parent(builder.compile(), checkpointer=any_saver)
    else:
        graph = builder.compile(checkpointer=any_saver)
    graph.invoke(ask(), thread())
    assert graph.get_state(thread()).next == ()
    assert bank.get(seed.id).updates == 1
    assert bank.stats().memories == 2


@pytest.mark.parametrize("nested", [False, True], ids=["standalone", "in a parent"])
async def test_it_runs_awaited_under_an_sqlite_checkpointer(
    retriever, bank, seed, tmp_path, nested
):
    builder = create_memrl_builder(answering(), retriever, evaluator=lambda state: 1.0)
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "saved.sqlite3")) as saver:
        if nested:
            graph = in_parent(builder.compile(), checkpointer=saver)
        else:
            graph = builder.compile(checkpointer=saver)
        await graph.ainvoke(ask(), thread())
        assert (await graph.aget_state(thread())).next == ()
    assert bank.get(seed.id).updates == 1
    assert bank.stats().memories == 2


async def test_a_blocking_run_inside_a_running_loop_learns(loop, bank, seed):
    loop.invoke(ask())
    assert bank.get(seed.id).updates == 1


# --- tenants ------------------------------------------------------------------------------------


def test_each_request_learns_in_its_own_namespace(form, bank):
    retriever = MemRLRetriever(
        memory=bank, namespace=FromConfig("memrl_namespace"), score_threshold=None
    )
    loop = create_memrl_graph(answering(), retriever, evaluator=lambda state: 1.0)
    for tenant in ("acme", "acme-corp", "acme"):
        run(form, in_parent(loop), ask(), {"configurable": {"memrl_namespace": tenant}})
    assert bank.stats(namespace="acme").memories == 2
    assert bank.stats(namespace="acme").updates == 1
    assert bank.stats(namespace="acme-corp").memories == 1
    assert bank.stats(namespace="acme-corp").updates == 0
    assert bank.stats().memories == 0


def test_a_loop_over_a_view_learns_in_its_namespace_only(form, bank):
    view = bank.in_namespace("acme")
    retriever = MemRLRetriever(memory=view, score_threshold=None)
    loop = create_memrl_graph(answering(), retriever, evaluator=lambda state: 1.0)
    for _ in range(2):
        run(form, loop, ask(), {"configurable": {"memrl_namespace": "other"}})
    assert bank.namespaces() == ("acme",)
    assert view.stats().updates == 1


def test_a_request_without_a_namespace_is_an_error_before_the_agent_acts(form, bank):
    retriever = MemRLRetriever(memory=bank, namespace=FromConfig("memrl_namespace"))
    loop = create_memrl_graph(never, retriever, evaluator=lambda state: 1.0)
    with pytest.raises(InputError, match="memrl_namespace"):
        run(form, in_parent(loop), ask())
    assert bank.namespaces() == ()


def test_the_loop_survives_a_reopened_bank(form, folder, embeddings):
    for number in range(3):
        with EpisodicMemory.open(folder, embeddings=embeddings) as bank:
            loop = create_memrl_graph(
                answering(), MemRLRetriever(memory=bank), evaluator=lambda state: 1.0
            )
            run(form, loop, ask())
            assert bank.stats().memories == number + 1
            assert bank.verify().ok
