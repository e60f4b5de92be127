"""Several turns of one thread, and going back in time within it."""

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from loops import STEPS, TASK, alternating, ask, closed_form, events, in_parent, kinds, run, thread

from langchain_memrl import create_memrl_builder
from langchain_memrl.errors import EpisodeError

SAME = {"metadata": {"memrl_episode_id": "job-42"}}


class Parts:
    """What an agent, an evaluator and a summariser say next."""

    def __init__(self):
        self.answer, self.verdict, self.lesson = "an answer", 1.0, "a lesson"
        self.episodes = []

    def builder(self, retriever):
        return create_memrl_builder(
            lambda messages: AIMessage(self.answer),
            retriever,
            evaluator=self.judge,
            summarizer=lambda attempt: self.lesson,
        )

    def judge(self, state):
        self.episodes.append(state["episode_id"])
        return self.verdict


@pytest.fixture
def parts():
    return Parts()


@pytest.fixture
def loop(parts, retriever, saver):
    return parts.builder(retriever).compile(checkpointer=saver)


def written(bank):
    return bank.list(filter={"source": "agent"})


def before(loop, step, config=None):
    """The checkpoint from which a step was run, the latest such."""
    for snapshot in loop.get_state_history(config or thread()):
        if snapshot.next == (step,):
            return snapshot.config
    raise LookupError(step)


# --- turns --------------------------------------------------------------------------------------


def test_every_turn_is_an_episode_of_its_own(form, loop, bank, seed):
    results = [run(form, loop, ask(f"{TASK} {n}"), thread()) for n in range(4)]
    assert len({result["episode_id"] for result in results}) == 4
    assert [message.type for message in results[-1]["messages"]] == ["human", "ai"] * 4
    assert bank.get(seed.id).q_value == pytest.approx(closed_form(1.0, 4))
    assert bank.stats().memories == 5
    assert [memory.intent for memory in written(bank)] == [f"{TASK} {n}" for n in (3, 2, 1, 0)]


def test_the_same_task_in_two_turns_is_two_episodes(form, parts, retriever, bank, seed, saver):
    graph = in_parent(parts.builder(retriever).compile(), checkpointer=saver)
    for _ in range(3):
        run(form, graph, ask(), thread())
    assert len(set(parts.episodes)) == 3
    assert bank.get(seed.id).updates == 3
    assert bank.stats().memories == 4


def test_two_threads_with_the_same_task_are_two_episodes(form, loop, bank, seed):
    first, second = (run(form, loop, ask(), thread(name)) for name in ("1", "2"))
    assert first["episode_id"] != second["episode_id"]
    assert bank.get(seed.id).updates == 2


def test_nothing_of_an_earlier_turn_is_used_again(form, loop, parts, bank, seed, embeddings):
    run(form, loop, ask("first task"), thread())
    parts.verdict = None
    result = run(form, loop, ask("second task"), thread())
    assert result["reward"] is None
    state = loop.get_state(thread()).values
    assert state["intent"] == "second task"
    assert (state["reward"], state["lesson"], state["memory_id"]) == (None, None, None)
    assert [memory.intent for memory in written(bank)] == ["first task"]
    embeddings.break_call(1, "raise")
    with pytest.raises(Exception, match="429"):
        run(form, loop, ask("third task"), thread())
    assert bank.get(seed.id).updates == 1
    result = run(form, loop, None, thread())
    assert result["episode_id"] not in parts.episodes[:2]


def test_an_episode_id_left_in_the_state_is_never_used(form, loop, parts, bank, seed):
    first = run(form, loop, ask(), thread())
    loop.update_state(thread(), {"episode_id": "left", "reward": -1.0, "memory_id": "x"})
    second = run(form, loop, ask("another task"), thread())
    assert second["episode_id"] not in ("left", first["episode_id"])
    assert second["reward"] == 1.0
    assert bank.stats().memories == 3
    with pytest.raises(EpisodeError):
        bank.episode("left")


def test_an_episode_id_given_as_input_is_never_used(form, loop, bank):
    given = ask() | {"episode_id": "mine", "reward": -1.0, "memory_id": "x", "lesson": "y"}
    result = run(form, loop, given, thread())
    assert result["episode_id"] != "mine"
    assert result["reward"] == 1.0
    assert [memory.lesson for memory in written(bank)] == ["a lesson"]


def test_the_callers_episode_id_comes_with_the_config(form, parts, retriever, bank, saver):
    for graph in (
        parts.builder(retriever).compile(),
        in_parent(parts.builder(retriever).compile(), checkpointer=saver),
    ):
        run(form, graph, ask(), thread(**SAME))
    assert parts.episodes == ["job-42", "job-42"]
    assert bank.episode("job-42").reward == 1.0
    assert len(written(bank)) == 1


def test_one_callers_id_for_two_tasks_is_an_error_before_the_agent_acts(form, loop, parts, bank):
    run(form, loop, ask(), thread(**SAME))
    with pytest.raises(EpisodeError, match="already rewarded"):
        run(form, loop, ask("another task"), thread(**SAME))
    assert parts.episodes == ["job-42"]
    assert len(written(bank)) == 1


@pytest.mark.parametrize("id", ["", " ", 7, "x" * 256])
def test_an_unusable_episode_id_is_an_error_before_the_agent_acts(form, loop, parts, bank, id):
    with pytest.raises(ValueError, match="episode_id"):
        run(form, loop, ask(), thread(metadata={"memrl_episode_id": id}))
    assert parts.episodes == []


# --- time travel --------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["__start__", "retrieve"])
def test_going_back_before_retrieve_starts_a_new_episode(form, loop, parts, bank, seed, step):
    first = run(form, loop, ask(), thread())
    parts.answer = "a better answer"
    again = run(form, loop, None, before(loop, step))
    assert again["episode_id"] != first["episode_id"]
    assert again["messages"][-1].text == "a better answer"
    assert bank.get(seed.id).q_value == pytest.approx(closed_form(1.0, 2))
    assert bank.get(seed.id).selections == 2
    assert len(written(bank)) == 2


@pytest.mark.parametrize("step", STEPS[1:])
@pytest.mark.parametrize(
    ("form", "verdict"), alternating([1.0, -1.0, None]), ids=["same", "other", "none"]
)
def test_going_back_after_retrieve_changes_nothing_that_was_learned(
    form, loop, parts, bank, seed, step, verdict
):
    first = run(form, loop, ask(), thread())
    (memory,) = written(bank)
    parts.answer, parts.verdict, parts.lesson = "a better answer", verdict, "a better lesson"
    found = events(form, loop, None, before(loop, step))
    if step == "write":  # what it writes is what was written
        assert found[0]["memory_id"] == memory.id
    else:
        learned = {"episode_id": first["episode_id"], "reward": 1.0}
        assert {"type": "memrl.already_learned", **learned} in found
    state = loop.get_state(thread()).values
    assert loop.get_state(thread()).next == ()
    assert state["episode_id"] == first["episode_id"]
    assert (state["reward"], state["memory_id"]) == (1.0, memory.id)
    assert bank.get(seed.id).q_value == pytest.approx(0.3)
    assert written(bank) == [memory]
    assert bank.episode(first["episode_id"]).reward == 1.0


def test_going_back_again_and_again_changes_nothing(form, loop, parts, bank, seed):
    run(form, loop, ask(), thread())
    (memory,) = written(bank)
    for step in (*STEPS[1:], *reversed(STEPS[1:])):
        run(form, loop, None, before(loop, step))
    assert written(bank) == [memory]
    assert bank.get(seed.id).updates == 1
    assert bank.stats().raw == 0


@pytest.mark.parametrize("step", STEPS[1:4])
def test_going_back_in_an_open_episode_may_reward_it(form, loop, parts, bank, seed, step):
    parts.verdict = None
    first = run(form, loop, ask(), thread())
    assert first["reward"] is None
    parts.answer, parts.verdict = "a better answer", -1.0
    again = run(form, loop, None, before(loop, step))
    assert again["episode_id"] == first["episode_id"]
    if step == "update_q":  # its verdict was already in the state
        assert (again["reward"], written(bank)) == (None, [])
        return
    assert again["reward"] == -1.0
    assert bank.get(seed.id).q_value == pytest.approx(-0.3)
    # The answer that was held first stands, raw, with the reward's outcome.
    (memory,) = written(bank)
    assert (memory.trajectory, memory.outcome) == ("an answer", "failure")


def test_going_back_in_an_open_episode_with_another_answer_keeps_the_first(form, loop, parts, bank):
    parts.verdict = None
    first = run(form, loop, ask(), thread())
    parts.answer = "a better answer"
    run(form, loop, None, before(loop, "generate"))
    bank.reinforce(first["episode_id"], reward=1.0)
    assert [memory.trajectory for memory in written(bank)] == ["an answer"]


def test_an_edited_answer_does_not_learn_twice(form, loop, bank, seed):
    first = run(form, loop, ask(), thread())
    fork = loop.update_state(
        before(loop, "evaluate"), {"messages": [AIMessage("edited")]}, as_node="generate"
    )
    again = run(form, loop, None, fork)
    assert (again["episode_id"], again["reward"]) == (first["episode_id"], 1.0)
    assert bank.get(seed.id).updates == 1
    assert len(written(bank)) == 1


@pytest.mark.parametrize("step", ["__start__", "retrieve"])
def test_a_callers_episode_id_makes_even_a_new_start_the_same_episode(
    form, loop, parts, bank, seed, step
):
    run(form, loop, ask(), thread(**SAME))
    parts.answer, parts.verdict = "a better answer", -1.0
    again = run(form, loop, None, {**before(loop, step), **SAME})
    assert (again["episode_id"], again["reward"]) == ("job-42", 1.0)
    assert bank.get(seed.id).updates == 1
    assert len(written(bank)) == 1


def test_going_back_to_an_earlier_turn_starts_a_new_episode(form, loop, bank, seed):
    results = [run(form, loop, ask(f"{TASK} {n}"), thread()) for n in range(3)]
    starts = [s.config for s in loop.get_state_history(thread()) if s.next == ("retrieve",)]
    again = run(form, loop, None, starts[1])
    assert again["episode_id"] not in {result["episode_id"] for result in results}
    assert bank.get(seed.id).updates == 4
    assert written(bank)[0].intent == f"{TASK} 1"


def test_going_back_before_the_loop_in_a_parent_starts_a_new_episode(
    form, parts, retriever, bank, seed, saver
):
    graph = in_parent(parts.builder(retriever).compile(), checkpointer=saver)
    run(form, graph, ask(), thread())
    run(form, graph, None, before(graph, "memrl"))
    assert len(set(parts.episodes)) == 2
    assert bank.get(seed.id).updates == 2


def test_going_back_behind_the_loop_in_a_parent_learns_nothing(
    form, parts, retriever, bank, seed, saver
):
    builder = StateGraph(MessagesState).add_node("memrl", parts.builder(retriever).compile())
    builder.add_node("after", lambda state: {"messages": [AIMessage("bye")]})
    graph = builder.add_edge(START, "memrl").add_edge("memrl", "after").compile(checkpointer=saver)
    run(form, graph, ask(), thread())
    run(form, graph, None, before(graph, "after"))
    assert bank.get(seed.id).updates == 1
    assert len(written(bank)) == 1


def test_the_first_events_are_the_same_kind_on_every_turn(form, loop):
    first = kinds(events(form, loop, ask(), thread()))
    assert kinds(events(form, loop, ask(), thread())) == first
