import asyncio
import logging
import threading

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_memrl import Attempt, LLMSummarizer, Verdict, verbatim
from langchain_memrl.errors import ConfigError, InputError, SummaryError
from langchain_memrl.inputs import TEXT_LIMIT, check_text
from langchain_memrl.learner import NO_ANSWER, Learner, last_human_text, trajectory_text
from langchain_memrl.offline import ScriptedChatModel

TOOL_CALL = {"name": "ping", "args": {"host": "ä", "n": 1}, "id": "1"}


def learner(bank, **options):
    return Learner(bank, **{"evaluator": lambda state: 1.0, "summarizer": None} | options)


def attempt(answer="an answer"):
    return Attempt("task", answer, answer, "success", 1.0)


# --- settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"max_memory_tokens": 0},
        {"max_memory_tokens": -1},
        {"max_memory_tokens": True},
        {"max_memory_tokens": 1.5},
        {"max_memory_tokens": "1500"},
        {"max_memory_tokens": None},
        {"evaluator": "humans"},
        {"evaluator": None},
        {"evaluator": 1.0},
        {"summarizer": "verbatim"},
        {"summarizer": ScriptedChatModel(responses=[])},
        {"intent": "messages"},
        {"render": "fence"},
    ],
    ids=str,
)
def test_an_unusable_setting_is_refused_when_the_loop_is_made(bank, settings):
    with pytest.raises(ConfigError, match=next(iter(settings))):
        learner(bank, **settings)


# --- the task -----------------------------------------------------------------------------------


def test_the_task_is_the_last_human_message():
    messages = [
        SystemMessage("be brief"),
        HumanMessage("first"),
        AIMessage("answer"),
        HumanMessage("second"),
        ToolMessage("seen", tool_call_id="1"),
    ]
    assert last_human_text({"messages": messages}) == "second"
    blocks = [{"type": "text", "text": "look at "}, {"type": "text", "text": "this"}]
    assert last_human_text({"messages": [HumanMessage(blocks)]}) == "look at this"


@pytest.mark.parametrize("state", [{}, {"messages": []}, {"messages": [AIMessage("hello")]}])
def test_a_state_without_a_human_message_is_an_input_error(state):
    with pytest.raises(InputError, match="human message"):
        last_human_text(state)


def test_the_task_may_be_found_by_the_caller_and_is_a_plain_text(bank):
    found = learner(bank, intent=lambda state: state["messages"][-1].text)
    task = found.task({"messages": [HumanMessage("mine")]})
    assert task == "mine"
    assert type(task) is str
    assert type(learner(bank).task({"messages": [HumanMessage("mine")]})) is str


@pytest.mark.parametrize("task", [None, 7, HumanMessage("x"), ["x"]])
def test_a_task_that_is_no_text_is_an_input_error(bank, task):
    with pytest.raises(InputError, match="intent"):
        learner(bank, intent=lambda state: task).task({})


@pytest.mark.parametrize("task", ["", " \n", "\u200b"])
def test_a_blank_task_is_an_input_error(bank, task):
    with pytest.raises(InputError, match="blank"):
        learner(bank, intent=lambda state: task).task({})


# --- what the agent did, as text ----------------------------------------------------------------


def test_one_answer_is_its_own_trajectory():
    assert trajectory_text([AIMessage("Hold the button.")]) == "Hold the button."


def test_several_steps_are_one_line_each_with_their_tool_calls():
    messages = [
        AIMessage("Let me see.", tool_calls=[TOOL_CALL]),
        ToolMessage("pong", tool_call_id="1", name="ping"),
        ToolMessage("no name", tool_call_id="2"),
        AIMessage("It answers."),
    ]
    assert trajectory_text(messages).split("\n") == [
        "ai: Let me see.",
        'ai calls ping({"host": "ä", "n": 1})',
        "tool ping: pong",
        "tool: no name",
        "ai: It answers.",
    ]


def test_an_answer_that_only_calls_a_tool_is_told_as_the_call():
    assert trajectory_text([AIMessage("", tool_calls=[TOOL_CALL])]).startswith("ai calls ping(")


def test_arguments_that_are_no_json_are_told_all_the_same():
    call = {"name": "f", "args": {"x": {1, 2}.__class__}, "id": "1"}
    assert "ai calls f(" in trajectory_text([AIMessage("", tool_calls=[call])])


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [AIMessage("")],
        [AIMessage(" \n")],
        [AIMessage("\u200b\u2060")],
        [AIMessage("\x1b")],
        [ToolMessage("", tool_call_id="1")],
    ],
    ids=["nothing", "empty", "blank", "zero width", "control", "empty tool"],
)
def test_nothing_visible_is_told_as_no_answer(messages):
    assert trajectory_text(messages) == NO_ANSWER
    assert check_text("trajectory", NO_ANSWER)


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b", "x" * (3 * TEXT_LIMIT), "é" * TEXT_LIMIT])
def test_every_trajectory_can_be_stored(text):
    stored = trajectory_text([AIMessage(text)])
    assert check_text("trajectory", stored) == stored


def test_a_text_over_the_limit_loses_its_middle_and_says_how_much():
    text = "a" * TEXT_LIMIT + "b" * TEXT_LIMIT
    stored = trajectory_text([AIMessage(text)])
    head, note, tail = stored.split("\n")
    assert (set(head), set(tail)) == ({"a"}, {"b"})
    assert note == f"[... {2 * TEXT_LIMIT - len(head) - len(tail)} bytes left out ...]"
    assert len(stored) > 0.99 * TEXT_LIMIT


def test_a_text_at_the_limit_stays_whole():
    assert trajectory_text([AIMessage("x" * TEXT_LIMIT)]) == "x" * TEXT_LIMIT


# --- the lesson ---------------------------------------------------------------------------------


def test_by_default_a_chat_model_writes_its_own_lessons_and_the_log_says_so(bank, caplog):
    model = ScriptedChatModel(responses=["a lesson"])
    with caplog.at_level(logging.INFO, logger="langchain_memrl"):
        found = learner(bank, agent=model)
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert "own model" in caplog.text
    assert found.lesson(attempt()) == "a lesson"


def test_by_default_everything_else_is_kept_verbatim_and_the_log_says_so(bank, caplog):
    with caplog.at_level(logging.INFO, logger="langchain_memrl"):
        found = learner(bank, agent=lambda messages: "x")
    assert "verbatim" in caplog.text
    assert found.lesson(attempt()) == "an answer"
    assert asyncio.run(found.alesson(attempt())) == "an answer"


def test_a_given_summarizer_is_used_and_the_log_says_nothing(bank, caplog):
    with caplog.at_level(logging.INFO, logger="langchain_memrl"):
        found = learner(bank, summarizer=verbatim, agent=ScriptedChatModel(responses=[]))
    assert not caplog.records
    assert found.lesson(attempt()) == "an answer"


def test_a_long_answer_kept_verbatim_is_no_failure_of_the_summariser(bank):
    long = "x" * 20_000
    found = learner(bank)
    assert found.lesson(attempt(long)) in (None, long)
    assert asyncio.run(found.alesson(attempt(long))) in (None, long)


def test_a_lesson_is_checked_on_either_side(bank):
    found = learner(bank, summarizer=lambda given: " ")
    with pytest.raises(SummaryError):
        found.lesson(attempt())
    with pytest.raises(SummaryError):
        asyncio.run(found.alesson(attempt()))


def test_a_model_summariser_is_called_natively_on_either_side(bank):
    model = ScriptedChatModel(responses=["first", "second"])
    found = learner(bank, summarizer=LLMSummarizer(model))
    assert found.lesson(attempt()) == "first"
    assert asyncio.run(found.alesson(attempt())) == "second"


# --- the verdict --------------------------------------------------------------------------------


async def later(state):
    await asyncio.sleep(0)
    return True


@pytest.mark.parametrize(
    "evaluator", [lambda state: True, later, lambda state: Verdict(1.0)], ids=["bool", "async", "v"]
)
def test_the_verdict_is_settled_on_either_side(bank, evaluator):
    found = learner(bank, evaluator=evaluator)
    assert found.judge({}).reward == 1.0
    assert asyncio.run(found.ajudge({})).outcome == "success"


def test_the_verdict_follows_the_banks_settings_as_they_are_now(bank):
    found = learner(bank, evaluator=lambda state: True)
    bank.configure(success_reward=0.5)
    assert found.judge({}).reward == 0.5
    assert asyncio.run(found.ajudge({})).reward == 0.5


async def test_a_blocking_evaluator_never_runs_on_the_loops_thread(bank):
    threads = []
    found = learner(bank, evaluator=lambda state: threads.append(threading.get_ident()))
    await found.ajudge({})
    assert threads
    assert threading.get_ident() not in threads


def test_a_person_needs_the_graph(bank):
    with pytest.raises(ConfigError, match="graph"):
        learner(bank, evaluator="human").judge({})
