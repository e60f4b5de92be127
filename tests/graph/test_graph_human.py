import pytest
from langchain_core.messages import AIMessage
from langgraph.types import Command, interrupt
from loops import TASK, ask, in_parent, run, thread

from langchain_memrl import Verdict, create_memrl_builder, create_memrl_graph, verbatim


class Counter:
    """An agent that counts how often it acted."""

    def __init__(self):
        self.acted = 0

    def __call__(self, messages):
        self.acted += 1
        return AIMessage("an answer")


@pytest.fixture
def agent():
    return Counter()


@pytest.fixture
def graph(nested, agent, retriever, saver):
    builder = create_memrl_builder(agent, retriever, evaluator="human", summarizer=verbatim)
    if nested:
        return in_parent(builder.compile(), checkpointer=saver)
    return builder.compile(checkpointer=saver)


def question(result):
    (waiting,) = result["__interrupt__"]
    return waiting.value


def written(bank):
    return bank.list(filter={"source": "agent"})


def test_the_person_is_shown_task_and_answer_and_nothing_is_learned_yet(form, graph, bank, seed):
    asked = question(run(form, graph, ask(), thread()))
    episode = asked.pop("episode_id")
    assert asked == {"type": "memrl.reward_request", "intent": TASK, "answer": "an answer"}
    assert bank.episode(episode).reward is None
    assert bank.get(seed.id).updates == 0
    assert written(bank) == []


@pytest.mark.parametrize(
    ("reply", "q_value", "outcome"),
    [
        (1.0, 0.3, "success"),
        (-1, -0.3, "failure"),
        (0.5, 0.15, "success"),
        (True, 0.3, "success"),
        (False, -0.3, "failure"),
        ({"reward": 1.0}, 0.3, "success"),
        ({"reward": -1.0, "outcome": "success", "reason": "slow"}, -0.3, "success"),
    ],
    ids=str,
)
def test_the_reply_is_learned_once_and_the_agent_acts_once(
    form, graph, agent, bank, seed, reply, q_value, outcome
):
    run(form, graph, ask(), thread())
    result = run(form, graph, Command(resume=reply), thread())
    assert "__interrupt__" not in result
    assert bank.get(seed.id).q_value == pytest.approx(q_value)
    assert bank.get(seed.id).updates == 1
    assert [memory.outcome for memory in written(bank)] == [outcome]
    assert agent.acted == 1


UNUSABLE = ["good", 1.5, [1], {"score": 1}, {"reward": "1"}, {"reward": 1, "outcome": "won"}]


def test_an_unusable_reply_is_asked_for_again_with_the_reason(form, graph, agent, bank, seed):
    asked = question(run(form, graph, ask(), thread()))
    assert "error" not in asked
    for reply in UNUSABLE:
        again = question(run(form, graph, Command(resume=reply), thread()))
        assert again["error"]
        assert {**again, "error": 0} == {**asked, "error": 0}
        assert bank.get(seed.id).updates == 0
    run(form, graph, Command(resume=1.0), thread())
    assert bank.get(seed.id).updates == 1
    assert len(written(bank)) == 1
    assert agent.acted == 1


def test_no_signal_yet_leaves_the_episode_open(form, graph, bank, seed):
    episode = question(run(form, graph, ask(), thread()))["episode_id"]
    run(form, graph, Command(resume={"reward": None}), thread())
    assert graph.get_state(thread()).next == ()
    assert bank.get(seed.id).updates == 0
    assert bank.reinforce(episode, reward=1.0).applied
    assert written(bank)[0].trajectory == "an answer"


def test_a_second_reply_to_a_finished_turn_changes_nothing(form, graph, bank, seed):
    run(form, graph, ask(), thread())
    run(form, graph, Command(resume=1.0), thread())
    run(form, graph, Command(resume=-1.0), thread())
    assert bank.get(seed.id).q_value == pytest.approx(0.3)
    assert len(written(bank)) == 1


def test_the_next_turn_asks_again(form, graph, bank, seed):
    for number in range(3):
        run(form, graph, ask(f"{TASK} {number}"), thread())
        run(form, graph, Command(resume=1.0), thread())
    assert bank.get(seed.id).updates == 3
    assert len(written(bank)) == 3


def test_another_reply_after_going_back_changes_nothing(form, agent, retriever, bank, seed, saver):
    builder = create_memrl_builder(agent, retriever, evaluator="human", summarizer=verbatim)
    graph = builder.compile(checkpointer=saver)
    episode = question(run(form, graph, ask(), thread()))["episode_id"]
    waiting = graph.get_state(thread()).config
    run(form, graph, Command(resume=1.0), thread())
    (memory,) = written(bank)
    assert question(run(form, graph, None, waiting))["episode_id"] == episode
    assert run(form, graph, Command(resume=-1.0), thread())["reward"] == 1.0
    assert bank.get(seed.id).q_value == pytest.approx(0.3)
    assert written(bank) == [memory]


def test_going_back_before_the_loop_in_a_parent_asks_about_a_new_episode(
    form, agent, retriever, bank, seed, saver
):
    builder = create_memrl_builder(agent, retriever, evaluator="human", summarizer=verbatim)
    graph = in_parent(builder.compile(), checkpointer=saver)
    episode = question(run(form, graph, ask(), thread()))["episode_id"]
    waiting = graph.get_state(thread()).config
    run(form, graph, Command(resume=1.0), thread())
    assert question(run(form, graph, None, waiting))["episode_id"] != episode
    run(form, graph, Command(resume=1.0), thread())
    assert bank.get(seed.id).updates == 2
    assert len(written(bank)) == 2


def test_it_waits_in_a_file_and_goes_on_in_another_graph(agent, retriever, bank, seed, any_saver):
    def build():
        return create_memrl_builder(
            agent, retriever, evaluator="human", summarizer=verbatim
        ).compile(checkpointer=any_saver)

    build().invoke(ask(), thread())
    build().invoke(Command(resume=1.0), thread())
    assert bank.get(seed.id).updates == 1
    assert agent.acted == 1


def test_without_a_checkpointer_the_run_ends_open_and_can_be_rewarded(form, agent, retriever, bank):
    graph = create_memrl_graph(agent, retriever, evaluator="human")
    episode = question(run(form, graph, ask()))["episode_id"]
    assert bank.reinforce(episode, reward=1.0).applied
    assert written(bank) == []  # nothing was held: the loop never came that far


def ask_twice(state):
    """An evaluator of the caller's own that waits for two people."""
    return Verdict((interrupt("first?") + interrupt("second?")) / 2)


async def ask_awaited(state):
    return interrupt("first?")


@pytest.mark.parametrize(
    ("evaluator", "replies"), [(ask_twice, [1.0, 0.0]), (ask_awaited, [0.5])], ids=["two", "async"]
)
def test_an_evaluator_may_wait_for_people_itself(
    form, agent, retriever, bank, seed, saver, evaluator, replies
):
    graph = create_memrl_builder(
        agent, retriever, evaluator=evaluator, summarizer=verbatim
    ).compile(checkpointer=saver)
    run(form, graph, ask(), thread())
    for reply in replies:
        result = run(form, graph, Command(resume=reply), thread())
    assert result["reward"] == 0.5
    assert bank.get(seed.id).q_value == pytest.approx(0.15)
    assert agent.acted == 1


def test_a_summariser_may_wait_for_a_person(form, agent, retriever, bank, saver):
    graph = create_memrl_builder(
        agent,
        retriever,
        evaluator=lambda state: 1.0,
        summarizer=lambda attempt: interrupt("what did we learn?"),
    ).compile(checkpointer=saver)
    assert question(run(form, graph, ask(), thread())) == "what did we learn?"
    run(form, graph, Command(resume="Patience."), thread())
    assert [memory.lesson for memory in written(bank)] == ["Patience."]


def test_waiting_for_a_person_without_a_checkpointer_is_said(agent, retriever, caplog):
    graph = create_memrl_graph(agent, retriever, evaluator="human", summarizer=verbatim)
    assert question(graph.invoke(ask()))["intent"] == TASK
    assert "no checkpointer" in caplog.text


def test_with_a_checkpointer_there_is_nothing_to_say(form, graph, caplog):
    run(form, graph, ask(), thread())
    assert "no checkpointer" not in caplog.text
