"""One run of an agent: recall before it, memories in its prompts, reward and memory after it."""

import importlib
import inspect
import json
import sys
from typing import NotRequired

import pytest
from agents import (
    ANSWER,
    SAME,
    agent_of,
    calling,
    is_memory,
    memrl,
    ping,
    scripted,
    texts,
    written,
)
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from loops import TASK, ask, closed_form, events, kinds, run, thread
from plain import foreign
from pydantic import BaseModel

from langchain_memrl import FromConfig, MemRLRetriever, Verdict
from langchain_memrl.errors import ConfigError, EpisodeError, InputError
from langchain_memrl.middleware import MemRLMiddleware

# --- a run --------------------------------------------------------------------------------------


def test_a_run_recalls_acts_and_learns(form, bank, seed, retriever):
    model = scripted(calling(), ANSWER)
    result = run(form, agent_of(retriever, model), ask())
    assert texts(result["messages"]) == [
        ("human", TASK),
        ("ai", "Let me see."),
        ("tool", "router is there"),
        ("ai", ANSWER),
    ]
    assert result["memrl_reward"] == 1.0
    (memory,) = written(bank)
    assert memory.episode_id == result["memrl_episode_id"]
    assert (memory.intent, memory.lesson, memory.outcome) == (TASK, ANSWER, "success")
    assert memory.trajectory.split("\n") == [
        "ai: Let me see.",
        'ai calls ping({"host": "router"})',
        "tool ping: router is there",
        f"ai: {ANSWER}",
    ]
    assert memory.parents == (seed.id,)
    assert (bank.get(seed.id).q_value, bank.get(seed.id).selections) == (pytest.approx(0.3), 1)


def test_only_episode_and_reward_leave_the_agent_and_nothing_enters_it(form, retriever):
    agent = agent_of(retriever)
    result = run(form, agent, ask() | {"memrl_episode_id": "mine", "memrl_reward": -1.0})
    assert set(result) == {"messages", "memrl_episode_id", "memrl_reward"}
    assert (result["memrl_episode_id"], result["memrl_reward"]) != ("mine", -1.0)
    assert set(agent.get_input_jsonschema()["properties"]) == {"messages"}
    assert set(agent.get_output_jsonschema()["properties"]) >= set(result)
    assert "memrl_run" not in agent.get_output_jsonschema()["properties"]


def test_a_finished_run_leaves_no_memories_in_the_state(form, retriever, saver):
    agent = agent_of(retriever, agent={"checkpointer": saver})
    run(form, agent, ask(), thread())
    state = agent.get_state(thread()).values
    assert (state["memrl_run"], state["memrl_asked"]) == (None, None)


def test_the_state_holds_plain_values_at_every_step(form, retriever, saver):
    agent = agent_of(retriever, scripted(calling(), ANSWER), agent={"checkpointer": saver})
    run(form, agent, ask(), thread())
    states = [snapshot.values for snapshot in agent.get_state_history(thread())]
    ours = [{k: v for k, v in state.items() if k.startswith("memrl_")} for state in states]
    assert any(values.get("memrl_run") for values in ours)
    assert foreign(ours) == []
    json.dumps(ours)


@pytest.mark.parametrize(("reward", "q"), [(1.0, 0.3), (-1.0, -0.3), (True, 0.3), (0.5, 0.15)])
def test_the_reward_moves_q(form, bank, seed, retriever, reward, q):
    run(form, agent_of(retriever, evaluator=lambda state: reward), ask())
    assert bank.get(seed.id).q_value == pytest.approx(q)


def test_the_evaluators_words_decide_the_outcome(form, bank, retriever):
    verdict = Verdict(1.0, outcome="failure", reason="too slow")
    found = events(form, agent_of(retriever, evaluator=lambda state: verdict), ask())
    assert found[1]["reason"] == "too slow"
    assert written(bank)[0].outcome == "failure"


def test_the_evaluator_sees_the_whole_state_and_the_episode(form, bank, retriever):
    class Ticket(AgentState):
        queue: NotRequired[str]

    seen = []
    agent = agent_of(
        retriever,
        scripted(calling(), ANSWER),
        agent={"state_schema": Ticket},
        evaluator=lambda state: seen.append(state) or 1.0,
    )
    result = run(form, agent, ask() | {"queue": "hardware"}, SAME)
    (state,) = seen
    assert (state["queue"], state["intent"], state["episode_id"]) == ("hardware", TASK, "job-42")
    assert state["messages"] == result["messages"]
    assert state["trajectory"] == written(bank)[0].trajectory


def test_intent_finds_the_task_somewhere_else(form, bank, retriever):
    class Ticket(AgentState):
        ticket: NotRequired[str]

    agent = agent_of(
        retriever, agent={"state_schema": Ticket}, intent=lambda state: state["ticket"]
    )
    run(form, agent, ask("please") | {"ticket": TASK})
    assert written(bank)[0].intent == TASK


@pytest.mark.parametrize("messages", [[], [("ai", "hello")], [("user", " ")]], ids=str)
def test_a_run_without_a_task_is_an_error_before_a_model_is_asked(form, retriever, messages):
    model = scripted()
    with pytest.raises(InputError, match="intent=callable"):
        run(form, agent_of(retriever, model), {"messages": messages})
    assert model.calls == []


def test_structured_output_is_judged_and_is_the_lesson(form, bank, retriever):
    class Queue(BaseModel):
        queue: str

    agent = agent_of(
        retriever,
        scripted(calling("Queue", said="", queue="hardware")),
        agent={"response_format": Queue},
        evaluator=lambda state: state["structured_response"].queue == "hardware",
    )
    result = run(form, agent, ask())
    assert result["structured_response"] == Queue(queue="hardware")
    assert result["memrl_reward"] == 1.0
    assert "queue='hardware'" in written(bank)[0].lesson


def test_a_tool_that_answers_directly_is_the_lesson(form, bank, retriever):
    @tool(return_direct=True)
    def look(host: str) -> str:
        """Look."""
        return "all is well"

    run(form, agent_of(retriever, scripted(calling("look", said="")), tools=[look]), ask())
    assert written(bank)[0].lesson == "all is well"


def test_a_summarizer_writes_the_lesson_and_a_failing_one_loses_nothing(form, bank, retriever):
    run(form, agent_of(retriever, summarizer=lambda attempt: f"do: {attempt.answer}"), ask())
    assert written(bank)[0].lesson == f"do: {ANSWER}"

    def broken(attempt):
        raise RuntimeError("no words")

    found = events(form, agent_of(retriever, summarizer=broken), ask())
    assert found[-2]["error"] == "RuntimeError"
    assert (written(bank)[0].lesson, written(bank)[0].trajectory) == ("", ANSWER)


def test_a_frozen_bank_is_judged_and_stays_byte_for_byte(form, bank, seed, retriever):
    before = bank.stats()
    model = scripted()
    result = run(form, agent_of(retriever, model, learn=False), ask())
    assert result["memrl_reward"] == 1.0
    assert any(map(is_memory, model.calls[0]))
    assert (bank.stats(), bank.get(seed.id)) == (before, seed)


def test_a_fixed_set_of_notes_learns_its_ranking_only(form, bank, seed, retriever):
    for _ in range(3):
        run(form, agent_of(retriever, write=False), ask())
    assert written(bank) == []
    assert bank.get(seed.id).q_value == pytest.approx(closed_form(1.0, 3))


def test_an_empty_bank_leaves_the_prompt_alone_and_is_filled(form, bank):
    model = scripted()
    run(form, agent_of(MemRLRetriever(memory=bank), model), ask())
    assert texts(model.calls[0]) == [("human", TASK)]
    assert len(written(bank)) == 1


def test_a_memory_dropped_by_the_budget_is_neither_recorded_nor_rewarded(form, bank, seed):
    other = bank.remember("restart the modem", "Pull the plug. " * 400, source="seed")
    retriever = MemRLRetriever(memory=bank, filter={"source": "seed"}, score_threshold=None)
    model = scripted()
    result = run(form, agent_of(retriever, model, max_memory_tokens=30), ask())
    assert "plug" not in str(model.calls[0])
    assert bank.episode(result["memrl_episode_id"]).memory_ids == (seed.id,)
    assert (bank.get(other.id).selections, bank.get(other.id).updates) == (0, 0)


def test_the_events_are_those_of_the_graph(form, retriever):
    found = events(form, agent_of(retriever), ask(), SAME)
    assert kinds(found) == ["retrieved", "evaluated", "q_updated", "summarized", "written"]
    assert {event["episode_id"] for event in found} == {"job-42"}


# --- turns of one thread ------------------------------------------------------------------------


def test_every_turn_is_an_episode_of_its_own(form, bank, seed, retriever, saver):
    model = scripted()
    agent = agent_of(retriever, model, agent={"checkpointer": saver})
    results = [run(form, agent, ask(), thread()) for _ in range(3)]
    assert len({result["memrl_episode_id"] for result in results}) == 3
    assert bank.get(seed.id).q_value == pytest.approx(closed_form(1.0, 3))
    assert [memory.experience for memory in written(bank)] == [ANSWER] * 3
    assert texts(results[-1]["messages"]) == [("human", TASK), ("ai", ANSWER)] * 3
    assert [sum(map(is_memory, call)) for call in model.calls] == [1, 1, 1]


def test_the_callers_id_is_the_episodes_and_is_learned_once(form, bank, seed, retriever, saver):
    agent = agent_of(retriever, agent={"checkpointer": saver})
    for number in range(3):
        result = run(form, agent, ask(), thread(f"thread {number}", **SAME))
        assert (result["memrl_episode_id"], result["memrl_reward"]) == ("job-42", 1.0)
    assert (bank.get(seed.id).updates, len(written(bank))) == (1, 1)


def test_one_callers_id_for_two_tasks_is_an_error_before_a_model_is_asked(form, retriever):
    model = scripted()
    run(form, agent_of(retriever, model), ask(), SAME)
    with pytest.raises(EpisodeError, match="already rewarded"):
        run(form, agent_of(retriever, model), ask("another task"), SAME)
    assert len(model.calls) == 1


def test_the_first_reward_stands_when_a_run_is_repeated(form, bank, seed, retriever):
    rewards = [1.0, -1.0]
    agent = agent_of(retriever, evaluator=lambda state: rewards.pop(0))
    assert [run(form, agent, ask(), SAME)["memrl_reward"] for _ in range(2)] == [1.0, 1.0]
    assert (bank.get(seed.id).updates, len(written(bank))) == (1, 1)


# --- several in one agent, or in each other -----------------------------------------------------


def test_two_of_them_in_one_agent_learn_beside_each_other(form, bank, seed, retriever):
    style = bank.remember("write an answer", "Be brief.", source="style")
    styles = MemRLRetriever(memory=bank, filter={"source": "style"}, score_threshold=None)
    model = scripted(calling(), ANSWER)
    second = memrl(styles, name="style", write=False, evaluator=lambda state: -1.0)
    result = run(form, agent_of(retriever, model, before=[second]), ask(), SAME)
    assert (result["memrl_reward"], result["style_reward"]) == (1.0, -1.0)
    assert result["memrl_episode_id"] == "job-42" != result["style_episode_id"]
    assert bank.get(seed.id).q_value == pytest.approx(0.3)
    assert bank.get(style.id).q_value == pytest.approx(-0.3)
    assert [sum(map(is_memory, call)) for call in model.calls] == [2, 2]


def test_two_of_the_same_name_are_refused(retriever):
    with pytest.raises(AssertionError, match="duplicate middleware"):
        agent_of(retriever, before=[memrl(retriever)])


def test_an_agent_called_by_a_tool_has_episodes_of_its_own(form, bank, seed, retriever, saver):
    inner = agent_of(retriever, name="helper", tools=())
    inside = []

    @tool
    def helper(task: str) -> str:
        """Let somebody else do it."""
        inside.append(inner.invoke(ask(task)))
        return inside[-1]["messages"][-1].text

    outer = agent_of(
        retriever,
        scripted(calling("helper", task="look"), ANSWER),
        tools=[helper],
        agent={"checkpointer": saver},
    )
    results = [run(form, outer, ask(), thread(metadata={"memrl_episode_id": id})) for id in "ab"]
    ids = [result["helper_episode_id"] for result in inside]
    assert [result["memrl_episode_id"] for result in results] == ["a", "b"]
    assert len({"a", "b", *ids}) == 4
    assert {memory.intent for memory in written(bank)} == {TASK, "look"}
    assert bank.get(seed.id).updates == 4


# --- what it is made of -------------------------------------------------------------------------

WRONG = [
    ({"evaluator": 1.0}, "evaluator is a float"),
    ({"evaluator": "people"}, "evaluator is a str"),
    ({"summarizer": "model"}, "summarizer is a str"),
    ({"intent": 7}, "intent is a int"),
    ({"render": "xml"}, "render is 'xml'"),
    ({"max_memory_tokens": 0}, "max_memory_tokens is 0"),
    ({"name": ""}, "name is ''"),
    ({"name": "a:b"}, "name is 'a:b'"),
    ({"name": 7}, "name is 7"),
]


@pytest.mark.parametrize(("options", "message"), WRONG, ids=str)
def test_an_unusable_setting_is_refused_when_it_is_made(retriever, options, message):
    with pytest.raises(ConfigError, match=message):
        memrl(retriever, **options)


def test_a_retriever_of_another_kind_and_a_misspelt_setting_are_refused(bank, retriever):
    with pytest.raises(ConfigError, match="expected a MemRLRetriever"):
        memrl(bank)
    with pytest.raises(TypeError, match="evaluater"):
        MemRLMiddleware(retriever, evaluater=lambda state: 1.0)
    with pytest.raises(TypeError, match="evaluator"):
        MemRLMiddleware(retriever)


def test_every_hook_has_both_forms_and_the_parameters_that_are_given_by_name():
    for hook in ("before_agent", "after_agent"):
        for name in (hook, f"a{hook}"):
            function = vars(MemRLMiddleware)[name]
            assert list(inspect.signature(function).parameters) == ["self", "state", "runtime"]
    assert {"wrap_model_call", "awrap_model_call"} <= vars(MemRLMiddleware).keys()
    assert issubclass(MemRLMiddleware, AgentMiddleware)


def test_without_langchain_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain.agents.middleware", None)
    monkeypatch.delitem(sys.modules, "langchain_memrl.middleware")
    with pytest.raises(ImportError, match=r'pip install "langchain-memrl\[agents\]"'):
        importlib.import_module("langchain_memrl.middleware")


def test_a_request_without_a_namespace_is_an_error_before_a_model_is_asked(form, bank):
    model = scripted()
    retriever = MemRLRetriever(memory=bank, namespace=FromConfig("tenant"))
    with pytest.raises(InputError, match="tenant"):
        run(form, agent_of(retriever, model), ask())
    assert model.calls == []


def test_it_works_as_an_agent_is_usually_made(bank, retriever):
    middleware = MemRLMiddleware(retriever, evaluator=lambda s: s["messages"][-1].text == ANSWER)
    agent = create_agent(scripted(), tools=[ping], middleware=[middleware])
    result = agent.invoke({"messages": [HumanMessage(TASK), AIMessage("?"), HumanMessage("go")]})
    assert result["memrl_reward"] == 1.0
    assert (written(bank)[0].intent, written(bank)[0].experience) == ("go", ANSWER)
