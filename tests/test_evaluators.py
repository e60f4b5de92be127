import asyncio
import contextvars
import functools
import threading
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from uuid import uuid4

import numpy as np
import openevals
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.constants import TAG_NOSTREAM
from langsmith.evaluation import EvaluationResult
from openevals.llm import create_async_llm_as_judge, create_llm_as_judge

from langchain_memrl import (
    LearningConfig,
    LLMJudge,
    Verdict,
    contains,
    exact_match,
    from_openevals,
    reward_from,
)
from langchain_memrl.callables import acall, call
from langchain_memrl.errors import RewardError, RewardTypeError, VerdictError
from langchain_memrl.evaluators import NO_STREAM, answer_text, human_verdict, settle
from langchain_memrl.offline import ScriptedChatModel

LEARNING = LearningConfig()
SHIFTED = LearningConfig(reward_range=(0, 10), success_reward=8, failure_reward=1)


def state(answer, task="What is 2 + 2?"):
    messages = [HumanMessage(task), AIMessage(answer)]
    return {"messages": messages, "intent": task, "trajectory": answer, "episode_id": "e"}


def settled(judgement, learning=LEARNING):
    verdict = settle(judgement, learning)
    return verdict.reward, verdict.outcome


# --- what an evaluator may return ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("judgement", "reward", "outcome"),
    [
        (1.0, 1.0, "success"),
        (0.25, 0.25, "success"),
        (1, 1.0, "success"),
        (0, 0.0, "unknown"),
        (-1, -1.0, "failure"),
        (-0.001, -0.001, "failure"),
        (True, 1.0, "success"),
        (False, -1.0, "failure"),
        (None, None, "unknown"),
        (np.float32(0.5), 0.5, "success"),
        (np.float64(-0.5), -0.5, "failure"),
        (np.int64(1), 1.0, "success"),
        (np.array(0.5), 0.5, "success"),
        (np.True_, 1.0, "success"),
        (np.bool_(0), -1.0, "failure"),
        (Decimal("0.5"), 0.5, "success"),
        (Fraction(1, 4), 0.25, "success"),
        (Verdict(0.5), 0.5, "success"),
        (Verdict(True), 1.0, "success"),
        (Verdict(None), None, "unknown"),
        (Verdict(-1.0, "success"), -1.0, "success"),
        (Verdict(1.0, "unknown"), 1.0, "unknown"),
        (Verdict(None, "failure"), None, "failure"),
        (Verdict(0.0, scale="unit"), -1.0, "failure"),
        (Verdict(0.25, scale="unit"), -0.5, "failure"),
        (Verdict(0.5, scale="unit"), 0.0, "unknown"),
        (Verdict(1, scale="unit"), 1.0, "success"),
        (Verdict(False, scale="unit"), -1.0, "failure"),
        (Verdict(None, scale="unit"), None, "unknown"),
        (Verdict(np.float32(0.75), scale="unit"), 0.5, "success"),
    ],
    ids=repr,
)
def test_a_judgement_becomes_a_plain_reward_and_an_outcome(judgement, reward, outcome):
    found = settled(judgement)
    assert found == (reward, outcome)
    assert type(found[0]) in (float, type(None))
    assert type(found[1]) is str


def test_bools_and_unit_scores_follow_the_banks_own_range():
    assert settled(True, SHIFTED) == (8.0, "success")
    assert settled(False, SHIFTED) == (1.0, "failure")
    assert settled(Verdict(0.25, scale="unit"), SHIFTED) == (2.5, "failure")
    assert settled(5, SHIFTED) == (5.0, "unknown")


ends = st.floats(-1e6, 1e6)


@given(st.tuples(ends, ends).filter(lambda pair: pair[0] < pair[1]), st.floats(0, 1))
def test_a_unit_score_always_lands_inside_the_range(bounds, score):
    learning = LearningConfig(reward_range=bounds, q_init=bounds[0])
    reward = settle(Verdict(score, scale="unit"), learning).reward
    assert bounds[0] <= reward <= bounds[1]
    assert learning.reward(reward) == reward


def test_the_ends_of_the_unit_scale_are_the_ends_of_the_range_exactly():
    awkward = LearningConfig(reward_range=(-0.1, 0.3))  # -.1 + (.3 + .1) is more than .3
    assert settled(Verdict(1.0, scale="unit"), awkward) == (0.3, "success")
    assert settled(Verdict(0.0, scale="unit"), awkward) == (-0.1, "failure")
    assert settled(Verdict(0.5, scale="unit"), awkward)[1] == "unknown"


@pytest.mark.parametrize("value", ["1.0", "True", b"1", [], {}, object(), 1j, np.array([1, 2])])
def test_what_is_no_number_is_refused(value):
    for judgement in (value, Verdict(value), Verdict(value, scale="unit")):
        with pytest.raises(RewardTypeError):
            settle(judgement, LEARNING)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1.01, -2, 10**400])
def test_numbers_out_of_range_are_refused(value):
    with pytest.raises(RewardError):
        settle(value, LEARNING)


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan"), 85])
def test_a_unit_score_outside_zero_to_one_is_refused(score):
    with pytest.raises(RewardError, match=r"\[0, 1\]"):
        settle(Verdict(score, scale="unit"), LEARNING)


def test_an_unknown_outcome_or_scale_is_refused():
    with pytest.raises(RewardError, match="outcome is 'won'"):
        settle(Verdict(1.0, "won"), LEARNING)
    with pytest.raises(RewardError, match="scale is 'percent'"):
        settle(Verdict(0.5, scale="percent"), LEARNING)


@pytest.mark.parametrize(
    ("reply", "reward", "outcome"),
    [
        (1.0, 1.0, "success"),
        (True, 1.0, "success"),
        (None, None, "unknown"),
        ({"reward": -1}, -1.0, "failure"),
        ({"reward": False, "reason": "wrong"}, -1.0, "failure"),
        ({"reward": None}, None, "unknown"),
        ({"reward": 0.5, "outcome": "failure", "reason": None}, 0.5, "failure"),
    ],
)
def test_a_person_may_reply_with_a_number_or_a_mapping(reply, reward, outcome):
    assert settled(human_verdict(reply)) == (reward, outcome)


@pytest.mark.parametrize(
    "reply", [{}, {"score": 1}, {"reward": 1, "note": "x"}, {1: 2}, "1", [1], {"reward": "1"}]
)
def test_a_reply_that_cannot_be_used_is_a_reward_error(reply):
    with pytest.raises(RewardError):
        settle(human_verdict(reply), LEARNING)


# --- exact match and contains -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "same"),
    [("4", True), (" 4\n", True), ("4.", False), ("four", False), ("", False), ("The 4", False)],
)
def test_exact_match_compares_the_whole_answer_apart_from_outer_space(answer, same):
    assert settled(exact_match("4")(state(answer))) == settled(same)
    assert settled(exact_match(lambda found: str(2 + 2))(state(answer))) == settled(same)


def test_a_reference_may_depend_on_the_state():
    evaluate = exact_match(lambda found: found["intent"].upper())
    assert evaluate(state("WHO", task="who")).reward is True
    assert contains(lambda found: found["intent"])(state("who is it", task="who")).reward is True


@pytest.mark.parametrize(
    ("answer", "options", "hit"),
    [
        ("It is four.", {}, True),
        ("It is FOUR.", {}, True),
        ("It is FOUR.", {"ignore_case": False}, False),
        ("It is four.", {"ignore_case": False}, True),
        ("It is five.", {}, False),
        ("", {}, False),
    ],
)
def test_contains_finds_the_reference(answer, options, hit):
    assert contains("four", **options)(state(answer)).reward is hit


def test_contains_folds_case_beyond_ascii():
    assert contains("STRASSE")(state("In der Straße.")).reward is True


def test_a_blank_reference_is_refused_because_every_answer_contains_it():
    with pytest.raises(VerdictError, match="blank"):
        contains(" ")(state("x"))


def test_the_answer_is_the_last_message_of_the_agent_only():
    assert answer_text(state("four")) == "four"
    assert answer_text({"messages": [AIMessage("four"), HumanMessage("five")]}) == ""
    assert answer_text({"messages": []}) == ""
    blocks = [{"type": "text", "text": "fo"}, {"type": "text", "text": "ur"}]
    assert answer_text({"messages": [AIMessage(blocks)]}) == "four"


# --- a model as the judge -----------------------------------------------------------------------


def grade(name="Grade", **fields):
    return AIMessage("", tool_calls=[{"name": name, "args": fields, "id": "1"}])


def judged(judge, found, form):
    return asyncio.run(acall(judge, found)) if form == "awaited" else call(judge, found)


both_forms = pytest.mark.parametrize("form", ["blocking", "awaited"])


@both_forms
@pytest.mark.parametrize(("score", "reward"), [(0, -1.0), (0.5, 0.0), (0.75, 0.5), (1, 1.0)])
def test_the_judge_grades_from_zero_to_one_onto_the_range(form, score, reward):
    model = ScriptedChatModel(responses=[grade(score=score, reason="because")])
    verdict = judged(LLMJudge(model), state("4"), form)
    assert verdict.reason == "because"
    assert settle(verdict, LEARNING).reward == reward


@both_forms
def test_the_judge_reads_rubric_task_answer_and_reference_as_data(form):
    hostile = "{task} {0} {a.__class__} %s ${HOME} {{7*7}}"
    model = ScriptedChatModel(responses=[grade(score=1, reason="x")])
    judge = LLMJudge(model, rubric="Is it {right}?", reference=lambda found: f"ref {hostile}")
    judged(judge, state(f"answer {hostile}", task=f"task {hostile}"), form)
    system, record = model.calls[0]
    assert (system.type, record.type) == ("system", "human")
    parts = record.content.split("\n")
    fence = parts[4]
    assert parts[:3] == ["Rubric:", "Is it {right}?", ""]
    assert fence in parts[3]
    assert parts[4:] == [
        *(fence, "Task:", f"task {hostile}", "", "Answer:", f"answer {hostile}", fence),
        *("", "Reference answer:", f"ref {hostile}"),
    ]
    assert hostile not in system.content


UNREADABLE = [
    "It is a good answer: 8 out of 10.",
    "",
    '```json\n{"score": 1, "reason": "fine"}\n```',
    grade(score=1.5, reason="more than right"),
    grade(score=-1, reason="wrong"),
    grade(score="high", reason="x"),
    grade(score=float("nan"), reason="x"),
    grade(score=None, reason="x"),
    grade(reason="no score"),
    grade(score=1),
    grade("Rating", score=1, reason="another tool"),
    AIMessage(
        "",
        invalid_tool_calls=[
            {"name": "Grade", "args": '{"score": 1, "rea', "id": "1", "error": "cut off"}
        ],
    ),
]


@both_forms
@pytest.mark.parametrize("reply", UNREADABLE, ids=range(len(UNREADABLE)))
def test_a_reply_that_cannot_be_read_is_a_verdict_error_and_no_verdict(form, reply):
    model = ScriptedChatModel(responses=[reply])
    with pytest.raises(VerdictError, match="could not be read"):
        judged(LLMJudge(model), state("4"), form)


@both_forms
@pytest.mark.parametrize("error", [TimeoutError("busy"), ValueError("no such deployment")])
def test_the_judge_models_own_errors_surface_as_they_are(form, error):
    model = ScriptedChatModel(responses=[error])
    with pytest.raises(type(error), match=str(error)) as found:
        judged(LLMJudge(model), state("4"), form)
    assert not isinstance(found.value, VerdictError)


@both_forms
def test_an_error_of_the_reference_is_not_blamed_on_the_judge(form):
    def reference(found):
        raise ValueError("no reference for this task")

    model = ScriptedChatModel(responses=[])
    with pytest.raises(ValueError, match="no reference for this task") as found:
        judged(LLMJudge(model, reference=reference), state("4"), form)
    assert not isinstance(found.value, VerdictError)
    assert model.calls == []


def test_the_judges_error_quotes_nothing_of_the_reply():
    model = ScriptedChatModel(responses=[grade(score="canary-7731", reason="canary-7731")])
    with pytest.raises(VerdictError) as found:
        LLMJudge(model)(state("4"))
    assert "canary" not in str(found.value)


def test_the_tag_that_hides_tokens_is_langgraphs_own():
    assert NO_STREAM == TAG_NOSTREAM


# --- openevals ----------------------------------------------------------------------------------


@both_forms
def test_openevals_exact_match_judges_the_answer(form):
    evaluate = from_openevals(openevals.exact_match, reference="4")
    assert settled(judged(evaluate, state("4"), form)) == (1.0, "success")
    assert settled(judged(evaluate, state("5"), form)) == (-1.0, "failure")


@both_forms
def test_an_async_openevals_evaluator_works_on_either_side(form):
    evaluate = from_openevals(openevals.exact_match_async, reference=lambda found: "4")
    assert settled(judged(evaluate, state("4"), form)) == (1.0, "success")


@both_forms
def test_an_openevals_judge_gets_task_answer_and_reference(form):
    model = ScriptedChatModel(responses=[grade("score", reasoning="nearly", score=0.75)])
    judge = create_llm_as_judge(
        prompt="{inputs} / {outputs} / {reference_outputs}", judge=model, continuous=True
    )
    verdict = judged(from_openevals(judge, reference="4"), state("{x}"), form)
    assert model.calls[0][0].content == "What is 2 + 2? / {x} / 4"
    assert settled(verdict) == (0.5, "success")
    assert verdict.reason == "nearly"


@both_forms
def test_an_async_openevals_judge_works_on_either_side(form):
    model = ScriptedChatModel(responses=[grade("score", reasoning="no", score=False)])
    judge = create_async_llm_as_judge(prompt="{inputs} {outputs}", judge=model)
    assert settled(judged(from_openevals(judge), state("5"), form)) == (-1.0, "failure")


class AsyncScorer:
    """An evaluator object whose call is a coroutine."""

    async def __call__(self, *, inputs, outputs, **rest):
        return {"key": "k", "score": 0.25, "comment": None}


def result(score, **more):
    return {"key": "k", "score": score, "comment": None} | more


@both_forms
@pytest.mark.parametrize(
    "evaluator",
    [
        AsyncScorer(),
        functools.partial(AsyncScorer()),
        lambda **arguments: AsyncScorer()(**arguments),
        lambda **arguments: result(0.25),
        lambda **arguments: [result(0.25, metadata={"x": 1})],
    ],
    ids=["object", "partial", "returns a coroutine", "dict", "list of one"],
)
def test_every_kind_of_openevals_callable_works_on_either_side(form, evaluator):
    assert settled(judged(from_openevals(evaluator), state("4"), form)) == (-0.5, "failure")


def test_scores_already_in_the_banks_range_are_taken_as_they_are():
    evaluate = from_openevals(lambda **arguments: result(-0.25), scale="reward")
    assert settled(evaluate(state("4"))) == (-0.25, "failure")


@pytest.mark.parametrize(
    "reply",
    [None, 1.0, "good", [], [result(1), result(0)], {"key": "k"}, [1.0]],
    ids=["none", "number", "text", "empty", "two", "no score", "list of numbers"],
)
def test_an_openevals_reply_without_one_score_is_a_verdict_error(reply):
    with pytest.raises(VerdictError):
        from_openevals(lambda **arguments: reply)(state("4"))


@pytest.mark.parametrize("score", ["1", 85, float("nan")])
def test_an_openevals_score_that_is_unusable_is_a_reward_error(score):
    with pytest.raises(RewardError):
        settled(from_openevals(lambda **arguments: result(score))(state("4")))


def test_an_openevals_result_without_a_score_yet_is_no_signal():
    assert settled(from_openevals(lambda **arguments: result(None))(state("4"))) == (
        None,
        "unknown",
    )


# --- sync and async callables on either side ----------------------------------------------------


async def twice(value):
    await asyncio.sleep(0)
    return value * 2


class Doubler:
    async def __call__(self, value):
        return await twice(value)


class Native:
    """Has a form of its own for each side."""

    def __call__(self, value):
        return value * 2

    async def acall(self, value):
        return await twice(value)


CALLABLES = [
    lambda value: value * 2,
    twice,
    Doubler(),
    Native(),
    functools.partial(twice),
    lambda value: twice(value),
]


@pytest.mark.parametrize("function", CALLABLES, ids=range(len(CALLABLES)))
def test_any_callable_can_be_called_from_either_side(function):
    assert call(function, 2) == 4
    assert asyncio.run(acall(function, 2)) == 4


@pytest.mark.parametrize("function", CALLABLES, ids=range(len(CALLABLES)))
async def test_a_blocking_call_works_inside_a_running_loop(function):
    assert call(function, 2) == 4


@both_forms
def test_a_callable_sees_the_callers_context_variables(form):
    variable = contextvars.ContextVar("variable", default="lost")

    async def read(value):
        return variable.get()

    for function in (read, lambda value: variable.get()):
        variable.set("kept")
        assert judged(function, None, form) == "kept"


async def test_a_blocking_callable_never_runs_on_the_loops_thread():
    assert await acall(lambda value: threading.get_ident(), None) != threading.get_ident()


async def test_the_loop_goes_on_while_a_blocking_callable_works():
    loop, released = asyncio.get_running_loop(), threading.Event()

    def wait(value):
        loop.call_soon_threadsafe(released.set)
        return released.wait(10)

    assert await acall(wait, None)


@both_forms
@pytest.mark.parametrize("function", [twice, lambda value: value + None])
def test_an_error_of_the_callable_surfaces(form, function):
    with pytest.raises(TypeError):
        judged(function, None, form)


# --- scores of others as rewards ------------------------------------------------------------------


def langsmith_feedback(score):
    from langsmith.schemas import Feedback

    now = datetime.now(UTC)
    ids = {"id": uuid4(), "run_id": uuid4(), "trace_id": uuid4()}
    return Feedback(created_at=now, modified_at=now, key="k", score=score, **ids)


@pytest.mark.parametrize(
    ("score", "reward"), [(1, 1.0), (0.75, 0.5), (True, 1.0), (False, -1.0), (None, None)]
)
def test_feedback_and_results_of_others_become_rewards(score, reward):
    for result in (
        langsmith_feedback(score),
        EvaluationResult(key="k", score=score),
        {"key": "k", "score": score, "comment": "so so"},
        [{"key": "k", "score": score}],
        Verdict(score, scale="unit"),
    ):
        assert reward_from(result, LEARNING) == reward
    assert reward_from({"score": 0.25}, LEARNING, scale="reward") == 0.25
    assert reward_from({"score": 0.5}, SHIFTED) == 5.0


@pytest.mark.parametrize("result", [None, 1.0, {}, [], [{"score": 1}, {"score": 0}], "good"])
def test_what_holds_no_score_is_refused(result):
    with pytest.raises(VerdictError, match="expected one result with a score"):
        reward_from(result, LEARNING)
    with pytest.raises(RewardError):
        reward_from({"score": 1.5}, LEARNING)
