"""S3: nothing crosses from one namespace to another.

`contract/test_memory_namespaces.py` tries pairs of look-alike names with most calls; here is every
call that takes a namespace, many threads at once, and names that other stores accept and then
cannot find.
"""

import inspect
import random
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from langchain_memrl import EpisodicMemory, load_memories
from langchain_memrl.errors import MemRLError

EVERY_STORE = True
OURS, THEIRS = "acme", "acme-corp"
SECRET = "CANARY-of-the-others"
FREE = {"score_threshold": None}

CALLS = {
    "recall": lambda m, ids, **ns: m.recall("task", episode_id="a", **FREE, **ns),
    "recall_many": lambda m, ids, **ns: m.recall_many(["task"], **FREE, **ns),
    "recall_documents": lambda m, ids, **ns: m.recall_documents("task", [], **ns),
    "reinforce": lambda m, ids, **ns: m.reinforce("shown", reward=1.0, revise=True, **ns),
    "reinforce_many": lambda m, ids, **ns: m.reinforce_many(
        [{"episode_id": "new", "reward": 1.0, "ids": ids}], **ns
    ),
    "remember": lambda m, ids, **ns: m.remember("task", "ours", episode_id="wrote", **ns),
    "remember_many": lambda m, ids, **ns: m.remember_many(
        [{"intent": "task", "lesson": "ours", "episode_id": "wrote", "parents": ids}], **ns
    ),
    "hold": lambda m, ids, **ns: m.hold("held", intent="task", trajectory="ours", **ns),
    "episode": lambda m, ids, **ns: m.episode("shown", **ns),
    "open_episodes": lambda m, ids, **ns: m.open_episodes(**ns),
    "expire_episodes": lambda m, ids, **ns: m.expire_episodes(
        older_than=timedelta(0), reward=-1.0, **ns
    ),
    "get": lambda m, ids, **ns: m.get(ids[0], **ns),
    "list": lambda m, ids, **ns: m.list(limit=None, **ns),
    "search_text": lambda m, ids, **ns: m.search_text("CANARY", **ns),
    "history": lambda m, ids, **ns: m.history(ids[0], **ns),
    "stats": lambda m, ids, **ns: m.stats(**ns),
    "update": lambda m, ids, **ns: m.update(ids[0], lesson="ours", **ns),
    "forget": lambda m, ids, **ns: m.forget(ids=ids, **ns),
    "disable": lambda m, ids, **ns: m.disable(ids[0], **ns),
    "enable": lambda m, ids, **ns: m.enable(ids[0], **ns),
    "pin": lambda m, ids, **ns: m.pin(ids[0], **ns),
    "release": lambda m, ids, **ns: m.release(ids[0], **ns),
    "unpin": lambda m, ids, **ns: m.unpin(ids[0], **ns),
    "prune": lambda m, ids, **ns: m.prune(max_q=9, min_updates=1, **ns),
    "lift": lambda m, ids, **ns: m.lift(memories=True, **ns),
}


def test_every_call_that_takes_a_namespace_is_tried_here():
    found = {
        name
        for name, call in inspect.getmembers(EpisodicMemory, inspect.isfunction)
        if not name.startswith("_")
        and "namespace" in inspect.signature(call).parameters
        and not inspect.iscoroutinefunction(call)
    }
    assert found - {"in_namespace"} == set(CALLS)


def others(memory):
    """What another tenant has: a memory that was shown and rewarded, one that waits, one held."""
    made = memory.remember("task", SECRET, trajectory=SECRET, episode_id="wrote", namespace=THEIRS)
    memory.recall("task", episode_id="shown", holdout=0.5, namespace=THEIRS, **FREE)
    memory.reinforce("rated", reward=0.5, ids=[made.id], namespace=THEIRS)
    memory.recall("task", episode_id="open", namespace=THEIRS, **FREE)
    memory.hold("held", intent="task", trajectory=SECRET, namespace=THEIRS)
    return made


def state_of(memory):
    """All that the other tenant can see of its own."""
    return (
        memory.list(limit=None, namespace=THEIRS),
        memory.stats(namespace=THEIRS),
        [memory.episode(id, namespace=THEIRS) for id in ("wrote", "shown", "rated", "held")],
        memory.open_episodes(namespace=THEIRS),
        [memory.history(one.id, namespace=THEIRS) for one in memory.list(namespace=THEIRS)],
    )


def tried(call, memory, ids, scope):
    """What a call returns, and what it raises."""
    try:
        return call(memory, ids, **scope), None
    except MemRLError as error:
        return None, error


@pytest.mark.parametrize("view", [False, True], ids=["named", "view"])
@pytest.mark.parametrize("name", CALLS)
def test_no_call_shows_counts_rewards_or_deletes_what_is_anothers(bank, name, view):
    made = others(bank)
    before = state_of(bank)
    memory, scope = (bank.in_namespace(OURS), {}) if view else (bank, {"namespace": OURS})
    answer, error = tried(CALLS[name], memory, [made.id], scope)
    _, unknown = tried(CALLS[name], memory, [str(uuid.uuid4())], scope)  # an id that never was
    assert type(error) is type(unknown)
    assert len(str(error)) == len(str(unknown))
    assert made.id not in repr(answer) or name == "remember_many"  # which repeats its argument
    assert SECRET not in str(answer)
    if name in ("list", "search_text"):
        assert SECRET not in [one.lesson for one in answer]
    assert state_of(bank) == before
    assert bank.verify().ok


def test_two_tenants_and_sixteen_threads_never_meet(open_bank, much):
    bank, rounds = open_bank(), much(40, 4000)
    tenants = {"a": "alpha", "b": "beta"}
    for space, word in tenants.items():
        load_memories(
            bank,
            [{"intent": f"task {n}", "lesson": f"{word} {n}"} for n in range(30)],
            namespace=space,
        )

    def work(number):
        draw, seen, crossed = random.Random(number), 0, []
        space = "ab"[number % 2]
        for turn in range(rounds):
            episode, task = f"e{number}-{turn}", f"task {draw.randrange(30)}"
            recall = bank.recall(task, episode_id=episode, namespace=space, **FREE)
            listed = bank.list(limit=10, namespace=space)
            if turn % 4 == 0:
                bank.reinforce(episode, reward=draw.choice([-1, 1]), namespace=space)
                lesson = f"{tenants[space]} {number} {turn}"
                bank.remember(task, lesson, episode_id=episode, namespace=space)
            shown = [hit.memory for hit in recall.memories] + listed
            seen += len(shown)
            crossed += [
                one for one in shown if one.namespace != space or tenants[space] not in one.lesson
            ]
        return seen, crossed

    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(work, range(16)))
    assert sum(seen for seen, _ in results) > 200 * rounds
    assert [one for _, crossed in results for one in crossed] == []
    assert bank.verify().ok


NAMES = [
    *(str(uuid.UUID(int=7)), "my-group", "main", "or", "a b", "日本", "@x", "x" * 200),
    *("default", "NULL", "0", "-", "#", "a,b", "a;b", "[a]", "a\tb", "SELECT 1", "🙂", "a:b"),
]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_name_that_is_accepted_works_with_every_verb(memory, name):
    """K-M4: never accepted and then not found."""
    made = memory.remember("task", "lesson", namespace=name)
    assert memory.recall("task", episode_id="e", namespace=name, **FREE).ids == (made.id,)
    memory.reinforce("e", reward=1.0, namespace=name)
    assert memory.get(made.id, namespace=name).updates == 1
    assert name in memory.namespaces()
    assert memory.forget(ids=[made.id], namespace=name) == (made.id,)
    assert memory.recall("task", namespace=name, **FREE).ids == ()
