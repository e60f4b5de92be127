"""No reward yet, and everything that goes wrong: nothing is learned, nothing is lost."""

import logging

import pytest
from langchain_core.messages import AIMessage
from loops import TASK, alternating, ask, closed_form, events, in_parent, kinds, run, thread

from langchain_memrl import (
    EpisodicMemory,
    LLMJudge,
    LLMSummarizer,
    MemRLRetriever,
    Verdict,
    create_memrl_builder,
    create_memrl_graph,
    summarize_pending,
    verbatim,
)
from langchain_memrl.errors import RewardError, RewardTypeError, StoreError, VerdictError
from langchain_memrl.offline import ScriptedChatModel
from langchain_memrl.summarizers import LESSON_LIMIT


def loop_of(retriever, **options):
    settings = {"evaluator": lambda state: None, "summarizer": verbatim} | options
    agent = settings.pop("agent", lambda messages: AIMessage("an answer"))
    return create_memrl_builder(agent, retriever, **settings)


def written(bank):
    return bank.list(filter={"source": "agent"})


# --- no reward yet ------------------------------------------------------------------------------


def test_without_a_reward_the_answer_is_held_and_nothing_is_learned(form, retriever, bank, seed):
    result = run(form, in_parent(loop_of(retriever).compile()), ask())
    assert result["messages"][-1].text == "an answer"
    assert bank.get(seed.id).q_value == 0.0
    assert bank.get(seed.id).updates == 0
    assert bank.get(seed.id).selections == 1
    assert written(bank) == []
    assert bank.stats().open_episodes == 1


def test_a_verdict_without_a_reward_is_no_signal_either(form, retriever, bank):
    loop = loop_of(retriever, evaluator=lambda state: Verdict(None, reason="later")).compile()
    assert run(form, loop, ask())["reward"] is None
    assert written(bank) == []


@pytest.mark.parametrize(("reward", "outcome"), [(1.0, "success"), (-1.0, "failure"), (0.0, None)])
def test_a_later_reward_from_a_reopened_bank_completes_the_episode(
    form, folder, embeddings, reward, outcome
):
    call = {"name": "ping", "args": {}, "id": "1"}
    steps = [AIMessage("Let me see.", tool_calls=[call]), AIMessage("It answers.")]
    with EpisodicMemory.open(folder, embeddings=embeddings) as bank:
        seed = bank.remember("restart the modem", "Press it.", source="seed")
        retriever = MemRLRetriever(memory=bank, score_threshold=None)
        loop = loop_of(retriever, agent=lambda messages: steps).compile()
        episode = run(form, loop, ask())["episode_id"]
    with EpisodicMemory.open(folder) as bank:  # no embeddings: none are needed
        result = bank.reinforce(episode, reward=reward)
        assert result.applied
        assert bank.get(seed.id).q_value == pytest.approx(0.3 * reward)
        (memory,) = written(bank)
        assert memory.raw
        assert memory.trajectory == "ai: Let me see.\nai calls ping({})\nai: It answers."
        assert (memory.intent, memory.outcome) == (TASK, outcome or "unknown")
        assert memory.parents == (seed.id,)
        assert result.memory_id == memory.id
        again = bank.reinforce(episode, reward=reward)
        assert (again.applied, again.memory_id) == (False, memory.id)
        assert bank.get(seed.id).updates == 1
        assert summarize_pending(bank, lambda attempt: "a late lesson") == 1
        assert bank.get(memory.id).lesson == "a late lesson"
        assert bank.verify().ok
    with EpisodicMemory.open(folder, embeddings=embeddings) as bank:
        found = bank.recall(TASK, score_threshold=None).memories
        assert memory.id in [scored.id for scored in found]


def test_open_turns_of_one_thread_are_rewarded_each_on_their_own(
    form, retriever, bank, seed, saver
):
    loop = loop_of(retriever).compile(checkpointer=saver)
    ids = [run(form, loop, ask(f"{TASK} {n}"), thread())["episode_id"] for n in range(3)]
    assert bank.stats().open_episodes == 3
    for id in (ids[2], ids[0]):
        bank.reinforce(id, reward=1.0)
    assert bank.get(seed.id).q_value == pytest.approx(closed_form(1.0, 2))
    assert {memory.intent for memory in written(bank)} == {f"{TASK} 0", f"{TASK} 2"}
    assert bank.stats().open_episodes == 1


def test_two_hundred_recalls_without_a_reward_leave_q_and_rank_as_they_were(bank, seed):
    def ranking():
        found = bank.recall(TASK, score_threshold=None).memories
        return [(scored.id, scored.score, scored.memory.q_value) for scored in found]

    bank.remember("another task", "another lesson", source="seed")
    bank.reinforce("first", reward=0.5, ids=[seed.id])
    retriever = MemRLRetriever(memory=bank, score_threshold=None, filter={"source": "seed"})
    loop = loop_of(retriever).compile()
    before = ranking()
    for _ in range(20):
        loop.invoke(ask())
    for number in range(180):
        retriever.invoke(TASK, {"metadata": {"memrl_episode_id": f"job-{number}"}})
        assert not bank.reinforce(f"job-{number}", reward=None).applied
    assert ranking() == before
    assert bank.get(seed.id).selections == 201
    assert bank.get(seed.id).updates == 1
    assert bank.stats().memories == 2


# --- the model, the embedder, the store or the evaluator fails ----------------------------------


class ProviderError(Exception):
    """What a provider's client raises."""


def failing_once(error, then):
    left = [error]

    def call(value):
        if left:
            raise left.pop()
        return then

    return call


@pytest.mark.parametrize(
    ("form", "error"),
    alternating([ProviderError("429"), TimeoutError("busy"), ValueError("bad")]),
    ids=["provider", "timeout", "value"],
)
@pytest.mark.parametrize("part", ["agent", "evaluator"])
def test_an_error_surfaces_as_it_is_and_is_no_failure_of_the_task(
    form, retriever, bank, seed, saver, part, error
):
    then = {"agent": AIMessage("an answer"), "evaluator": 1.0}[part]
    options = {"evaluator": lambda state: 1.0} | {part: failing_once(error, then)}
    loop = loop_of(retriever, **options).compile(checkpointer=saver)
    with pytest.raises(type(error), match=str(error)):
        run(form, loop, ask(), thread())
    assert bank.get(seed.id).updates == 0
    assert bank.get(seed.id).q_value == 0.0
    assert written(bank) == []
    assert bank.stats().open_episodes == 1
    assert run(form, loop, None, thread())["reward"] == 1.0
    assert bank.get(seed.id).updates == 1
    assert [memory.outcome for memory in written(bank)] == ["success"]


UNUSABLE = {
    "1.0": RewardTypeError,
    (("reward", 1),): RewardTypeError,
    float("nan"): RewardError,
    float("inf"): RewardError,
    1.01: RewardError,
    Verdict(2, scale="unit"): RewardError,
    Verdict(1.0, "won"): RewardError,
}


def test_an_unusable_judgement_surfaces_and_learns_nothing(form, retriever, bank, seed):
    judgements = iter(UNUSABLE)
    loop = loop_of(retriever, evaluator=lambda state: next(judgements)).compile()
    for error in UNUSABLE.values():
        with pytest.raises(error):
            run(form, loop, ask())
    assert bank.get(seed.id).updates == 0
    assert written(bank) == []


def test_a_judge_that_cannot_be_read_surfaces_and_learns_nothing(form, retriever, bank, seed):
    judge = LLMJudge(ScriptedChatModel(responses=["Eight out of ten."]))
    loop = loop_of(retriever, evaluator=judge).compile()
    with pytest.raises(VerdictError):
        run(form, loop, ask())
    assert bank.get(seed.id).updates == 0
    assert written(bank) == []


def test_an_embedder_that_fails_surfaces_before_the_agent_acts(
    form, retriever, bank, seed, embeddings
):
    loop = loop_of(retriever, agent=lambda messages: pytest.fail("the agent acted")).compile()
    embeddings.break_call(1, "raise")
    with pytest.raises(Exception, match="429"):
        run(form, loop, ask("a task never seen"))
    assert bank.stats().open_episodes == 0
    assert bank.get(seed.id).selections == 0


def test_a_bank_that_cannot_learn_is_refused_before_the_agent_acts(form, folder, open_bank):
    open_bank(folder).remember("restart the modem", "Press it.")
    retriever = MemRLRetriever(memory=open_bank(folder, read_only=True), score_threshold=None)
    loop = loop_of(retriever, agent=lambda messages: pytest.fail("the agent acted")).compile()
    with pytest.raises(StoreError, match="read-only"):
        run(form, loop, ask())


# --- the summariser fails -----------------------------------------------------------------------

CANARY = "canary-5512"


def raising(attempt):
    raise ProviderError(CANARY)


async def raising_later(attempt):
    raise ProviderError(CANARY)


def model_that(reply):
    return lambda: LLMSummarizer(ScriptedChatModel(responses=[reply]))


BROKEN = {
    "raises": lambda: raising,
    "raises later": lambda: raising_later,
    "empty": lambda: lambda attempt: "",
    "blank": lambda: lambda attempt: " \n\u200b",
    "too long": lambda: lambda attempt: CANARY * LESSON_LIMIT,
    "number": lambda: lambda attempt: 7,
    "dict": lambda: lambda attempt: {"lesson": CANARY},
    "message": lambda: lambda attempt: AIMessage(CANARY),
    "nul": lambda: lambda attempt: f"{CANARY}\0",
    "surrogate": lambda: lambda attempt: f"{CANARY}\ud800",
    "model fails": model_that(TimeoutError(CANARY)),
    "model says nothing": model_that(""),
    "model is cut off": model_that(
        AIMessage(CANARY, response_metadata={"finish_reason": "length"})
    ),
    "model is endless": model_that(CANARY * 20_000),
}


@pytest.mark.parametrize(("form", "make"), alternating(BROKEN.values()), ids=BROKEN)
def test_a_summariser_that_fails_leaves_the_episode_stored_raw_and_marked(
    form, retriever, bank, seed, caplog, make
):
    loop = loop_of(retriever, evaluator=lambda state: -1.0, summarizer=make()).compile()
    with caplog.at_level(logging.INFO, logger="langchain_memrl"):
        found = events(form, loop, ask(f"{TASK} {CANARY}"))
    assert bank.get(seed.id).q_value == pytest.approx(-0.3)
    (memory,) = written(bank)
    assert memory.raw
    assert (memory.trajectory, memory.outcome) == ("an answer", "failure")
    assert bank.stats().raw == 1
    summarized = next(event for event in found if event["type"] == "memrl.summarized")
    assert summarized["raw"] is True
    assert summarized["error"]
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert memory.episode_id in record.getMessage()
    assert "summarize_pending" in record.getMessage()
    assert CANARY not in caplog.text
    assert CANARY not in str(summarized)
    assert kinds(found)[-1] == "written"
    assert summarize_pending(bank, lambda attempt: f"lesson of {attempt.trajectory}") == 1
    assert bank.get(memory.id).lesson == "lesson of an answer"
    assert bank.get(seed.id).updates == 1


def test_a_summariser_that_declines_stores_raw_without_a_warning(form, retriever, bank, caplog):
    loop = loop_of(
        retriever, evaluator=lambda state: 1.0, summarizer=lambda attempt: None
    ).compile()
    with caplog.at_level(logging.INFO, logger="langchain_memrl"):
        found = events(form, loop, ask())
    assert written(bank)[0].raw
    assert not caplog.records
    summarized = next(event for event in found if event["type"] == "memrl.summarized")
    assert (summarized["raw"], summarized["error"]) == (True, None)


@pytest.mark.parametrize(
    ("form", "answer"),
    alternating(["x" * 20_000, "", " ", "a\0b", "a\ud800b"]),
    ids=["long", "empty", "blank", "nul", "surrogate"],
)
def test_an_answer_that_can_be_no_lesson_is_kept_raw_without_a_warning(
    form, retriever, bank, caplog, answer
):
    loop = loop_of(retriever, evaluator=lambda s: 1.0, agent=lambda m: AIMessage(answer)).compile()
    with caplog.at_level(logging.INFO, logger="langchain_memrl"):
        run(form, loop, ask())
    assert written(bank)[0].raw
    assert not caplog.records


def test_one_episode_costs_at_most_one_more_model_call(form, retriever, bank):
    model = ScriptedChatModel(responses=["an answer", "a lesson"])
    run(form, create_memrl_graph(model, retriever, evaluator=lambda state: 1.0), ask())
    assert len(model.calls) == 2
    open_model = ScriptedChatModel(responses=["an answer"])
    run(form, create_memrl_graph(open_model, retriever, evaluator=lambda state: None), ask())
    assert len(open_model.calls) == 1


# --- on whose behalf ----------------------------------------------------------------------------


@pytest.mark.parametrize("reward", [1.0, None], ids=["at once", "later"])
def test_what_a_run_writes_names_the_user_it_was_for(form, retriever, bank, reward):
    loop = in_parent(loop_of(retriever, evaluator=lambda state: reward).compile())
    about = {"memrl_episode_id": "job", "memrl_writer": "user 7"}
    run(form, loop, ask(), {"metadata": about})
    if reward is None:
        bank.reinforce("job", reward=1.0)
    assert [one.writer for one in written(bank)] == ["user 7"]
    run(form, loop, ask("another task"))
    if reward is not None:
        assert {one.writer for one in written(bank)} == {"", "user 7"}
