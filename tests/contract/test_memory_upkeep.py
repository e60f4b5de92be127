"""Disable, pin, prune and compact: what goes, what stays, what is left on disk."""

import random
from base64 import b64encode

import pytest

from langchain_memrl.errors import InputError, MemoryNotFoundError


@pytest.fixture
def rated(open_bank):
    """A bank on disk and four memories of one task with Q -.3, -.51, .3 and 0."""
    memory = open_bank()
    made = [memory.remember("task", f"lesson-{name}-text") for name in ("a", "b", "c", "d")]
    for number, (place, reward) in enumerate([(0, -1.0), (1, -1.0), (1, -1.0), (2, 1.0)]):
        memory.reinforce(f"e{number}", reward=reward, ids=[made[place].id])
    return memory, made


def test_a_disabled_memory_is_kept_but_not_recalled(rated):
    memory, made = rated
    memory.disable(made[2].id)
    assert made[2].id not in memory.recall("task", k=9).ids
    assert memory.get(made[2].id).disabled
    assert memory.get(made[2].id).q_value == pytest.approx(0.3)
    memory.enable(made[2].id)
    assert made[2].id in memory.recall("task", k=9).ids


def test_an_intent_whose_memories_are_all_disabled_takes_no_place_in_the_pool(bank):
    near = bank.remember("task one", "near")
    far = bank.remember("another", "far")
    bank.disable(near.id)
    assert bank.recall("task one", fetch_k=1, score_threshold=None).ids == (far.id,)


def test_pruning_forgets_what_was_tried_and_failed(rated):
    memory, made = rated
    assert memory.prune(max_q=-0.2, min_updates=2, dry_run=True) == (made[1].id,)
    assert len(memory.list()) == 4
    assert memory.prune(max_q=-0.2, min_updates=1) == (made[0].id, made[1].id)
    assert {item.id for item in memory.list()} == {made[2].id, made[3].id}


def test_pruning_leaves_pinned_and_untried_memories(rated):
    memory, made = rated
    memory.pin(made[0].id)
    assert memory.prune(max_q=1.0, min_updates=1) == (made[1].id, made[2].id)
    memory.unpin(made[0].id)
    assert memory.prune(max_q=1.0, min_updates=1) == (made[0].id,)
    assert [item.id for item in memory.list()] == [made[3].id]


@pytest.mark.parametrize(
    "arguments",
    [
        {"max_q": float("nan"), "min_updates": 1},
        {"max_q": "0", "min_updates": 1},
        {"max_q": True, "min_updates": 1},
        {"max_q": 0.0, "min_updates": 0},
        {"max_q": 0.0, "min_updates": 1.5},
    ],
)
def test_unusable_limits_prune_nothing(rated, arguments):
    memory, _ = rated
    with pytest.raises(InputError):
        memory.prune(**arguments)
    assert len(memory.list()) == 4


@pytest.mark.parametrize("verb", ["disable", "enable", "pin", "unpin"])
def test_another_tenants_memory_cannot_be_marked(rated, verb):
    memory, made = rated
    with pytest.raises(MemoryNotFoundError):
        getattr(memory.in_namespace("other"), verb)(made[0].id)


def test_after_compacting_no_file_holds_what_was_forgotten(rated, behind):
    memory, made = rated
    memory.recall("task", k=9)
    memory.forget(ids=[made[0].id])
    memory.compact()
    files = behind.raw()
    assert b"lesson-a-text" not in files
    assert b"lesson-b-text" in files
    assert memory.verify().ok
    assert made[0].id not in memory.recall("task", k=9).ids


def test_compacting_frees_space(open_bank, behind):
    memory = open_bank()
    text = b64encode(random.Random(0).randbytes(15_000)).decode()  # which nobody can compress
    made = [memory.remember(f"task {n}", text) for n in range(50)]
    memory.forget(ids=[item.id for item in made[1:]])
    before = len(behind.raw())
    memory.compact()
    assert len(behind.raw()) < before / 3
    assert memory.list() == [memory.get(made[0].id)]
