"""Runs that end early: by an error, a limit, another middleware, or without a verdict."""

import contextlib

import pytest
from agents import ANSWER, SAME, Beside, agent_of, calling, is_memory, scripted, written
from langchain_core.messages import AIMessage
from langgraph.errors import GraphRecursionError
from loops import TASK, ask, events, kinds, run, thread
from watched import CrashError

from langchain_memrl.errors import EpisodeError

BLOCKED = {"messages": [AIMessage("I must not.")], "jump_to": "end"}


def assert_open_until_reinforced(bank, seed, episode_id):
    assert bank.episode(episode_id).reward is None
    assert bank.episode(episode_id).memory_ids == (seed.id,)
    assert bank.get(seed.id).updates == 0
    assert bank.reinforce(episode_id, reward=-1.0).applied
    assert not bank.reinforce(episode_id, reward=-1.0).applied
    assert bank.get(seed.id).q_value == pytest.approx(-0.3)


# --- a run that dies ----------------------------------------------------------------------------


@pytest.mark.parametrize("answers", [[], [calling()]], ids=["at once", "in the middle"])
def test_a_models_error_leaves_an_open_episode_that_a_reward_closes(
    form, bank, seed, retriever, answers
):
    agent = agent_of(retriever, scripted(*answers, CrashError("the model is gone")))
    with pytest.raises(CrashError):
        run(form, agent, ask(), SAME)
    assert_open_until_reinforced(bank, seed, "job-42")
    assert written(bank) == []


def test_a_run_that_never_ends_leaves_an_open_episode(form, bank, seed, retriever):
    agent = agent_of(retriever, scripted(calling()))
    with pytest.raises(GraphRecursionError):
        run(form, agent, ask(), SAME | {"recursion_limit": 9})
    assert_open_until_reinforced(bank, seed, "job-42")


def test_the_id_of_a_dead_run_is_in_its_thread_and_was_told(
    form, bank, seed, retriever, saver, caplog
):
    agent = agent_of(retriever, scripted(CrashError("gone")), agent={"checkpointer": saver})
    caplog.set_level("DEBUG", "langchain_memrl")
    with pytest.raises(CrashError):
        run(form, agent, ask(), thread())
    episode_id = agent.get_state(thread()).values["memrl_episode_id"]
    assert episode_id in caplog.text
    assert TASK not in caplog.text
    assert_open_until_reinforced(bank, seed, episode_id)


def test_a_dead_run_that_is_resumed_is_the_same_episode(form, bank, seed, retriever, saver):
    model = scripted(calling(), CrashError("gone"), ANSWER)
    agent = agent_of(retriever, model, agent={"checkpointer": saver})
    with pytest.raises(CrashError):
        run(form, agent, ask(), thread())
    episode_id = agent.get_state(thread()).values["memrl_episode_id"]
    result = run(form, agent, None, thread())
    assert (result["memrl_episode_id"], result["memrl_reward"]) == (episode_id, 1.0)
    assert (bank.get(seed.id).updates, bank.get(seed.id).selections) == (1, 1)
    assert written(bank)[0].trajectory.startswith("ai: Let me see.")
    assert all(sum(map(is_memory, call)) == 1 for call in model.calls)


def test_a_new_turn_after_a_dead_run_is_another_episode(form, bank, seed, retriever, saver):
    model = scripted(CrashError("gone"), ANSWER)
    agent = agent_of(retriever, model, agent={"checkpointer": saver})
    with pytest.raises(CrashError):
        run(form, agent, ask(), thread())
    dead = agent.get_state(thread()).values["memrl_episode_id"]
    result = run(form, agent, ask("another task"), thread())
    assert result["memrl_episode_id"] != dead
    assert bank.episode(dead).reward is None
    assert [memory.intent for memory in written(bank)] == ["another task"]


def test_an_evaluators_error_surfaces_and_is_no_failure_of_the_task(
    form, bank, seed, retriever, saver
):
    verdicts = [CrashError("no tests here"), 1.0]

    def evaluator(state):
        verdict = verdicts.pop(0)
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    agent = agent_of(retriever, agent={"checkpointer": saver}, evaluator=evaluator)
    with pytest.raises(CrashError):
        run(form, agent, ask(), thread())
    assert bank.get(seed.id).updates == 0
    assert run(form, agent, None, thread())["memrl_reward"] == 1.0
    assert (bank.get(seed.id).updates, len(written(bank))) == (1, 1)


# --- a run that another middleware ends ---------------------------------------------------------


@pytest.mark.parametrize("hook", ["before_agent", "before_model"])
def test_a_run_that_ends_before_a_model_was_asked_learns_nothing(form, bank, seed, retriever, hook):
    model = scripted()
    agent = agent_of(retriever, model, after=[Beside(**{hook: lambda state: BLOCKED})])
    result = run(form, agent, ask())
    assert model.calls == []
    assert (result["memrl_episode_id"], result["memrl_reward"]) == (None, None)
    assert (bank.get(seed.id).updates, written(bank)) == (0, [])


def test_an_answer_given_in_place_of_the_model_learns_nothing(form, bank, seed, retriever):
    def canned(request, ask):
        return AIMessage("canned")

    result = run(form, agent_of(retriever, before=[Beside(around=canned)]), ask())
    assert (result["messages"][-1].text, result["memrl_reward"]) == ("canned", None)
    assert (bank.get(seed.id).updates, written(bank)) == (0, [])


def test_a_run_that_is_ended_after_the_model_was_asked_learns(form, bank, retriever):
    agent = agent_of(
        retriever,
        scripted(calling()),
        after=[Beside(after_model=lambda state: {"jump_to": "end"})],
        evaluator=lambda state: -1.0,
    )
    result = run(form, agent, ask())
    assert result["memrl_reward"] == -1.0
    assert (written(bank)[0].outcome, written(bank)[0].lesson) == ("failure", "Let me see.")


EARLIER = {
    "open": ([ANSWER], None),
    "learned": ([ANSWER], 1.0),
    "dead at once": ([CrashError("gone")], 1.0),
    "dead in the middle": ([calling(), CrashError("gone")], 1.0),
}


@pytest.mark.parametrize(("first", "verdict"), EARLIER.values(), ids=EARLIER)
def test_a_turn_that_never_reaches_our_recall_touches_no_earlier_episode(
    form, bank, seed, retriever, saver, first, verdict
):
    """A middleware before ours ends the second turn; what the first left must not be learned."""
    blocked = []
    guard = Beside(before_agent=lambda state: BLOCKED if blocked else None)
    agent = agent_of(
        retriever,
        scripted(*first, ANSWER),
        before=[guard],
        agent={"checkpointer": saver},
        evaluator=lambda state: verdict,
    )
    with contextlib.suppress(CrashError):
        run(form, agent, ask(), thread())
    episode_id = agent.get_state(thread()).values["memrl_episode_id"]
    before = (bank.episode(episode_id), bank.get(seed.id), written(bank))
    blocked.append(True)
    result = run(form, agent, ask("do harm"), thread())
    assert (result["memrl_episode_id"], result["memrl_reward"]) == (None, None)
    assert (bank.episode(episode_id), bank.get(seed.id), written(bank)) == before
    blocked.clear()
    third = run(form, agent, ask("another task"), thread())
    assert third["memrl_episode_id"] != episode_id


# --- no verdict yet -----------------------------------------------------------------------------


def test_without_a_verdict_the_run_is_held_until_its_reward_comes(form, bank, seed, retriever):
    agent = agent_of(retriever, scripted(calling(), ANSWER), evaluator=lambda state: None)
    found = events(form, agent, ask(), SAME)
    assert kinds(found) == ["retrieved", "evaluated", "held"]
    assert (bank.get(seed.id).updates, written(bank)) == (0, [])
    result = bank.reinforce("job-42", reward=1.0)
    (memory,) = written(bank)
    assert (memory.id, memory.intent, memory.outcome) == (result.memory_id, TASK, "success")
    assert memory.trajectory.endswith(f"ai: {ANSWER}")
    assert bank.get(seed.id).q_value == pytest.approx(0.3)


def test_without_a_verdict_the_id_comes_with_the_result(form, bank, retriever):
    result = run(form, agent_of(retriever, evaluator=lambda state: None), ask())
    assert result["memrl_reward"] is None
    assert bank.reinforce(result["memrl_episode_id"], reward=0.5).applied


def test_an_episode_of_nobody_is_still_an_error(bank):
    with pytest.raises(EpisodeError):
        bank.reinforce("nobody", reward=1.0)


def test_what_a_run_writes_names_the_user_it_was_for(form, bank, retriever):
    agent = agent_of(retriever, scripted(ANSWER))
    run(form, agent, ask(), {"metadata": {"memrl_writer": "user 7"}})
    assert [one.writer for one in written(bank)] == ["user 7"]
