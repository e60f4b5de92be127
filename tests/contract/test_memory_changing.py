"""update and forget: Q and history stay with a changed memory, nothing stays of a forgotten one."""

import pytest

from langchain_memrl.errors import EpisodeError, InputError, MemoryNotFoundError
from langchain_memrl.store.rows import seal

ALL = {"k": 50, "fetch_k": 50, "score_threshold": None}


@pytest.fixture
def used(memory):
    """A memory that was shown and rewarded twice."""
    made = memory.remember("reset a router", "hold the button", metadata={"a": 1})
    for n in range(2):
        memory.recall("reset a router", episode_id=f"use {n}")
        memory.reinforce(f"use {n}", reward=1)
    return memory.get(made.id)


# --- update -----------------------------------------------------------------------------------


def test_an_update_changes_the_text_and_keeps_q_and_history(memory, used):
    history = memory.history(used.id)
    changed = memory.update(used.id, lesson="press it", metadata={"b": [2]})
    assert changed == memory.get(used.id)
    assert (changed.lesson, changed.metadata) == ("press it", {"b": [2]})
    for name in (
        "intent",
        "trajectory",
        "outcome",
        "q_value",
        "updates",
        "selections",
        "created_at",
    ):
        assert getattr(changed, name) == getattr(used, name)
    assert changed.updated_at > used.updated_at
    assert memory.history(used.id) == history
    assert memory.recall("reset a router").memories[0].memory == changed
    assert memory.verify().ok


def test_what_is_not_named_stays(memory, used):
    assert memory.update(used.id, lesson="press it").metadata == {"a": 1}
    assert memory.update(used.id, metadata={}).lesson == "press it"
    assert memory.get(used.id).metadata == {}


def test_an_update_is_there_after_reopening(form, open_bank):
    memory = form(open_bank())
    made = memory.remember("reset a router", "hold the button")
    changed = memory.update(made.id, lesson="press it")
    memory.close()
    assert form(open_bank()).get(made.id) == changed


@pytest.mark.parametrize(
    "changes",
    [{}, {"lesson": ""}, {"lesson": " "}, {"lesson": 3}, {"metadata": []}, {"metadata": {1: 2}}],
    ids=repr,
)
def test_an_unusable_update_changes_nothing(memory, used, changes):
    with pytest.raises(InputError):
        memory.update(used.id, **changes)
    assert memory.get(used.id) == used


def test_what_does_not_exist_cannot_be_changed(memory, used):
    with pytest.raises(MemoryNotFoundError, match="no such id"):
        memory.update("no such id", lesson="x")
    with pytest.raises(TypeError):
        memory.update(used.id, q_value=1)
    with pytest.raises(TypeError):
        memory.update(used.id, intent="x")


# --- forget -----------------------------------------------------------------------------------


@pytest.fixture
def ids(memory):
    texts = ("reset a router", "bake a cake", "mend a bicycle")
    return [memory.remember(text, f"to {text}", episode_id=f"w {text}").id for text in texts]


def test_forgetting_by_ids_deletes_these_and_says_which(memory, ids):
    assert memory.forget(ids=[ids[2], ids[0], ids[2]]) == (ids[2], ids[0])
    assert [found.id for found in memory.list()] == [ids[1]]
    assert memory.forget(ids=[]) == ()


def test_forgetting_by_episode_deletes_what_it_wrote(memory, ids):
    assert memory.forget(episode_id="w bake a cake") == (ids[1],)
    assert memory.forget(episode_id="w bake a cake") == ()
    assert [found.id for found in memory.list()] == [ids[2], ids[0]]
    with pytest.raises(EpisodeError, match="unknown"):
        memory.forget(episode_id="nowhere")


def test_an_episode_that_wrote_nothing_has_nothing_to_forget(memory, ids):
    memory.recall("reset a router", episode_id="e")
    assert memory.forget(episode_id="e") == ()
    assert len(memory.list()) == 3


def test_forgetting_all_empties_the_namespace_and_its_ledger(memory, ids):
    memory.recall("reset a router", episode_id="e")
    memory.reinforce("e", reward=1)
    assert set(memory.forget(all=True)) == set(ids)
    stats = memory.stats()
    assert (stats.memories, stats.intents, stats.episodes, stats.updates) == (0, 0, 0, 0)
    assert memory.namespaces() == ()
    made = memory.remember("reset a router", "anew", episode_id="w reset a router")
    memory.recall("reset a router", episode_id="e")
    assert memory.reinforce("e", reward=-1).applied
    assert memory.get(made.id).updates == 1
    assert memory.verify().ok


def test_a_dry_run_tells_the_same_and_deletes_nothing(memory, ids):
    for target in ({"ids": ids[:2]}, {"episode_id": "w bake a cake"}, {"all": True}):
        told = memory.forget(**target, dry_run=True)
        assert len(memory.list()) == 3
        assert told == memory.forget(**target, dry_run=True)
    assert memory.forget(ids=ids[:2]) == tuple(ids[:2])


@pytest.mark.parametrize(
    "targets",
    [
        *({}, {"ids": None}, {"all": False}, {"ids": ["x"], "all": True}),
        *({"ids": ["x"], "episode_id": "e"}, {"episode_id": "e", "all": True}, {"ids": "x"}),
        *({"ids": [None]}, {"ids": [3]}, {"episode_id": ""}),
    ],
    ids=repr,
)
def test_anything_but_exactly_one_target_is_refused(memory, ids, targets):
    with pytest.raises(InputError):
        memory.forget(**targets)
    assert len(memory.list()) == 3


def test_one_unknown_id_keeps_all(memory, ids):
    with pytest.raises(MemoryNotFoundError, match="unknown one"):
        memory.forget(ids=[ids[0], "unknown one"])
    assert len(memory.list()) == 3


def test_forgotten_text_is_nowhere(behind, form, open_bank):
    memory = form(open_bank())
    secret = "CANARY"
    made = memory.remember(
        f"{secret} task", f"{secret} lesson", trajectory=secret, metadata={"note": secret}
    )
    kept = memory.remember("another task", "lesson")
    memory.recall(f"{secret} task", episode_id=made.episode_id)
    memory.forget(ids=[made.id])
    with pytest.raises(MemoryNotFoundError):
        memory.get(made.id)
    with pytest.raises(MemoryNotFoundError):
        memory.history(made.id)
    assert memory.list() == [kept]
    assert memory.search_text(secret) == []
    assert memory.recall(f"{secret} task", **ALL).ids == (kept.id,)
    assert secret not in "\n".join(behind.dump())
    memory.close()
    memory = form(open_bank())
    assert memory.recall(f"{secret} task", **ALL).ids == (kept.id,)
    assert memory.verify().ok


def test_an_intent_stays_as_long_as_one_memory_owns_it(memory):
    first, second = (memory.remember("reset a router", f"lesson {n}").id for n in range(2))
    memory.forget(ids=[first])
    assert memory.recall("reset a router", **ALL).ids == (second,)
    memory.forget(ids=[second])
    assert memory.recall("reset a router", **ALL).ids == ()
    assert memory.stats().intents == 0


def test_a_forgotten_memory_stays_named_as_a_parent(memory, ids):
    memory.recall("a question", episode_id="e", **ALL)
    child = memory.remember("a question", "answer", episode_id="e")
    memory.forget(ids=ids)
    assert set(memory.get(child.id).parents) == set(ids)
    assert memory.verify().ok


def test_other_memories_keep_their_q_and_history(memory, used):
    other = memory.remember("bake a cake", "weigh the flour")
    memory.reinforce("both", reward=-1, ids=[used.id, other.id])
    before = memory.get(used.id), memory.history(used.id)
    memory.forget(ids=[other.id])
    assert (memory.get(used.id), memory.history(used.id)) == before
    assert memory.verify().ok


# --- derived ----------------------------------------------------------------------------------


def make_derived(memory, child, *sources):
    with memory._store._rows.write() as db:
        names = "[" + ",".join(f'"{source}"' for source in sources) + "]"
        db.execute(
            "UPDATE experiences SET derived_from = ? "
            "WHERE seq = (SELECT seq FROM memories WHERE id = ?)",
            (names, child),
        )
        seal(db, *db.execute("SELECT seq FROM memories WHERE id = ?", (child,)).fetchone())


def test_derived_also_deletes_what_was_made_from_it_but_not_what_was_merely_shown_it(
    folder, form, open_bank
):
    memory = form(open_bank())
    root = memory.remember("root", "poison", episode_id="w").id
    child, grandchild, shown, other = (
        memory.remember(text, "lesson", parents=[root]).id
        for text in ("child", "grandchild", "shown", "other")
    )
    make_derived(memory, child, root)
    make_derived(memory, grandchild, other, child)
    family = {root, child, grandchild}
    assert memory.forget(ids=[root], dry_run=True) == (root,)
    assert set(memory.forget(ids=[root], derived=True, dry_run=True)) == family
    assert set(memory.forget(episode_id="w", derived=True)) == family
    assert {found.id for found in memory.list()} == {shown, other}
    assert memory.get(shown).parents == (root,)


def test_derivation_in_a_circle_ends(folder, form, open_bank):
    memory = form(open_bank())
    a, b = (memory.remember(text, "lesson").id for text in "ab")
    make_derived(memory, a, b)
    make_derived(memory, b, a)
    assert set(memory.forget(ids=[a], derived=True)) == {a, b}
