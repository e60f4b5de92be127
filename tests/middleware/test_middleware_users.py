"""One middleware object, many users: nobody's memory, reward or answer reaches another."""

import asyncio
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from agents import agent_of, calling, is_memory, scripted
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from watched import WatchedStore

from langchain_memrl import EpisodicMemory, FromConfig, MemRLRetriever
from langchain_memrl.store.embedded.local import LocalStore

USERS, TURNS = 50, 2
TENANTS = ("acme", "globex")


@pytest.fixture
def store():
    return WatchedStore(LocalStore(":memory:"))


@pytest.fixture
def bank(store, embeddings):
    with EpisodicMemory(store, embeddings) as memory:
        yield memory


def tenant_of(user):
    return TENANTS[user % 2]


def reward_of(user):
    return 1.0 if user % 4 < 2 else -1.0


def task_of(user, turn):
    return f"task of user {user} in turn {turn} for {tenant_of(user)}"


def config_of(user):
    return {"configurable": {"thread_id": f"thread {user}", "tenant": tenant_of(user)}}


def own_task(messages):
    """The task of a prompt: the last human message that shows no memories."""
    return [m.text for m in messages if m.type == "human" and not is_memory(m)][-1]


def answer(messages):
    """A tool call, then an answer that names the task; users overtake each other meanwhile."""
    time.sleep(random.random() / 200)
    if messages[-1].type == "tool":
        return AIMessage(f"answer to {own_task(messages)}")
    return calling(host=own_task(messages))


class Office:
    """An agent that everybody shares, and what its model and its evaluator saw."""

    def __init__(self, bank, **options):
        self.judged = []
        self.model = scripted()
        self.model.responses = answer
        retriever = MemRLRetriever(
            memory=bank, namespace=FromConfig("tenant"), score_threshold=None, k=3
        )
        options = {"evaluator": self.judge} | options
        self.agent = agent_of(
            retriever, self.model, agent={"checkpointer": InMemorySaver()}, **options
        )

    def judge(self, state):
        self.judged.append((state["intent"], state["messages"][-1].text, state["namespace"]))
        return reward_of(int(state["intent"].split()[3]))


def ask(user, turn):
    return {"messages": [("user", task_of(user, turn))]}


def assert_nobody_crossed(bank, office, seeds, results):
    assert {len(results[user]) for user in range(USERS)} == {TURNS}
    ids = [result["memrl_episode_id"] for turns in results.values() for result in turns]
    assert len(set(ids)) == USERS * TURNS
    for user, turns in results.items():
        for turn, result in enumerate(turns):
            mine = bank.in_namespace(tenant_of(user))
            assert result["messages"][-1].text == f"answer to {task_of(user, turn)}"
            assert len(result["messages"]) == 4 * (turn + 1)
            assert result["memrl_reward"] == reward_of(user)
            episode = mine.episode(result["memrl_episode_id"])
            assert (episode.intents, episode.reward) == ((task_of(user, turn),), reward_of(user))
            memory = mine.get(episode.memory_id)
            assert (memory.intent, memory.parents) == (task_of(user, turn), episode.memory_ids)
            assert memory.lesson == f"answer to {task_of(user, turn)}"
            for id in episode.memory_ids:
                assert mine.get(id).namespace == tenant_of(user)
    for tenant in TENANTS:
        mine, other = bank.in_namespace(tenant), TENANTS[1 - TENANTS.index(tenant)]
        memories = mine.list()
        assert len(memories) == 1 + USERS * TURNS // 2
        assert all(other not in memory.intent for memory in memories)
        episodes = [mine.episode(m.episode_id) for m in memories if m.id != seeds[tenant].id]
        shown = [id for episode in episodes for id in episode.memory_ids]
        for memory in memories:
            assert memory.selections == memory.updates == shown.count(memory.id)
    for prompt in office.model.calls:
        tenant = own_task(prompt).split()[-1]
        other = TENANTS[1 - TENANTS.index(tenant)]
        assert sum(map(is_memory, prompt)) == 1
        assert other not in str([m.text for m in prompt])
    expected = [
        (task_of(u, t), f"answer to {task_of(u, t)}", tenant_of(u))
        for u in range(USERS)
        for t in range(TURNS)
    ]
    assert sorted(office.judged) == sorted(expected)
    assert bank.verify().ok


@pytest.fixture
def seeds(bank):
    """Each tenant has one memory, so that every prompt shows some."""
    return {t: bank.in_namespace(t).remember("seed", f"lesson of {t}") for t in TENANTS}


def test_fifty_users_of_two_tenants_in_threads_never_cross(bank, seeds):
    office, start = Office(bank), threading.Barrier(USERS)

    def use(user):
        start.wait(30)
        return [office.agent.invoke(ask(user, turn), config_of(user)) for turn in range(TURNS)]

    with ThreadPoolExecutor(USERS) as threads:
        results = dict(enumerate(threads.map(use, range(USERS))))
    assert_nobody_crossed(bank, office, seeds, results)


async def test_fifty_users_of_two_tenants_on_one_event_loop_never_cross(bank, store, seeds):
    office = Office(bank)
    store.calls.clear()

    async def use(user):
        return [
            await office.agent.ainvoke(ask(user, turn), config_of(user)) for turn in range(TURNS)
        ]

    results = await asyncio.gather(*map(use, range(USERS)))
    assert threading.get_ident() not in store.threads
    assert_nobody_crossed(bank, office, seeds, dict(enumerate(results)))


async def test_fifty_people_who_reply_in_any_order_reward_their_own_run(bank, seeds):
    office = Office(bank, evaluator="human")
    users = list(range(USERS))
    waiting = await asyncio.gather(
        *(office.agent.ainvoke(ask(user, 0), config_of(user)) for user in users)
    )
    random.Random(7).shuffle(users)
    replies = await asyncio.gather(
        *(
            office.agent.ainvoke(Command(resume={"reward": reward_of(user)}), config_of(user))
            for user in users
        )
    )
    for user, result in zip(users, replies, strict=True):
        assert result["memrl_episode_id"] == waiting[user]["memrl_episode_id"]
        episode = bank.in_namespace(tenant_of(user)).episode(result["memrl_episode_id"])
        assert (episode.intents, episode.reward) == ((task_of(user, 0),), reward_of(user))
    assert [bank.in_namespace(t).stats().memories for t in TENANTS] == [1 + USERS // 2] * 2
