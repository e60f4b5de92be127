"""Tenants: exact names, and nothing of one is seen, counted, moved or deleted by another."""

import pytest

from langchain_memrl.errors import EpisodeError, InputError, MemoryNotFoundError

PAIRS = [
    *(("acme", "acme-corp"), ("a_b", "a-b"), ("a%", "ab"), ("a.b", "a"), ("A", "a"), ("a/b", "a")),
    *(("or", "and"), ("a b", "a  b"), ("main", "main "), ("日本", "日"), ("é", "e\u0301")),
    *(("../x", "x"), ("a*", "aa"), ("a'b", "a''b"), ("default", "Default"), ("@x", "x")),
    *(("null", "None"), ("x" * 255, "x" * 254), ("😀", "😁"), ("C:\\x", "C:x")),
]
ALL = {"k": 10, "score_threshold": None}


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=ascii)
def test_no_call_in_one_namespace_touches_another(memory, ours, theirs):
    mine = memory.remember("task", "mine", episode_id="e", namespace=ours)
    other = memory.remember("task", "secret", episode_id="e", namespace=theirs)
    for space, one in ((ours, mine), (theirs, other)):
        assert memory.recall("task", namespace=space, **ALL).ids == (one.id,)
        assert [found.id for found in memory.list(namespace=space)] == [one.id]
        assert memory.stats(namespace=space).memories == 1
        assert memory.search_text("secret", namespace=space) == ([other] if space == theirs else [])

    # the ids of another namespace are unknown ids
    for call in (
        lambda: memory.get(other.id, namespace=ours),
        lambda: memory.history(other.id, namespace=ours),
        lambda: memory.update(other.id, lesson="mine now", namespace=ours),
        lambda: memory.forget(ids=[other.id], namespace=ours),
        lambda: memory.reinforce("r", reward=1, ids=[other.id], namespace=ours),
    ):
        with pytest.raises(MemoryNotFoundError):
            call()

    # nor are its episodes
    memory.recall("task", episode_id="shown", namespace=theirs, **ALL)
    with pytest.raises(EpisodeError, match="unknown"):
        memory.reinforce("shown", reward=1, namespace=ours)
    assert memory.reinforce("e", reward=1, namespace=ours).credits == ()
    memory.forget(episode_id="e", namespace=ours)
    memory.forget(all=True, namespace=ours)
    assert memory.get(other.id, namespace=theirs).updates == 0
    assert memory.episode("e", namespace=theirs).memory_id == other.id
    assert memory.recall("task", namespace=theirs, **ALL).ids == (other.id,)
    assert memory.verify().ok


def test_a_namespace_works_the_same_after_reopening(form, open_bank):
    names = sorted({name for pair in PAIRS for name in pair})
    memory = form(open_bank())
    for name in names:
        memory.remember("task", f"lesson of {name}", namespace=name)
    memory.recall("task")
    memory.close()
    memory = form(open_bank())
    assert memory.namespaces() == tuple(names)
    for name in names:
        (hit,) = memory.recall("task", namespace=name, **ALL).memories
        assert hit.memory.lesson == f"lesson of {name}"


def test_the_default_is_the_namespace_the_bank_was_opened_with(form, open_bank):
    memory = form(open_bank(":memory:", namespace="acme"))
    assert memory.remember("task", "lesson").namespace == "acme"
    assert memory.recall("task").namespace == "acme"
    assert memory.namespaces() == ("acme",)
    assert memory.stats().namespace == "acme"


def test_without_a_namespace_the_name_is_default(memory):
    assert memory.remember("task", "lesson").namespace == "default"


def test_a_call_may_name_another_namespace(memory):
    memory.remember("task", "lesson", namespace="acme")
    assert memory.stats().memories == 0
    assert memory.stats(namespace="acme").memories == 1
    assert len(memory.recall("task", namespace="acme").ids) == 1
    assert memory.recall("task").ids == ()


def test_forgetting_one_tenant_leaves_the_others_as_they_were(memory):
    sizes = {"user 1": 250, "user 2": 1, "user 3": 3}
    for name, size in sizes.items():
        memory.remember_many(
            [{"intent": f"task {n}", "lesson": f"{name} {n}"} for n in range(size)], namespace=name
        )
    kept = [memory.list(namespace=name, limit=None) for name in ("user 2", "user 3")]
    gone = memory.forget(all=True, namespace="user 1")
    assert len(gone) == 250
    assert memory.list(namespace="user 1") == []
    assert [memory.list(namespace=name, limit=None) for name in ("user 2", "user 3")] == kept
    assert memory.namespaces() == ("user 2", "user 3")


@pytest.mark.parametrize("name", ["", " ", "\u200b", "x" * 256, "a\x00", "\ud800", 3, b"a"])
def test_an_unusable_namespace_is_refused_by_every_call(memory, name):
    for call in (
        lambda: memory.recall("task", namespace=name),
        lambda: memory.recall_many(["task"], namespace=name),
        lambda: memory.remember("task", "lesson", namespace=name),
        lambda: memory.reinforce("e", reward=1, namespace=name),
        lambda: memory.reinforce("e", reward=None, namespace=name),
        lambda: memory.hold("e", intent="task", trajectory="done", namespace=name),
        lambda: memory.episode("e", namespace=name),
        lambda: memory.get("id", namespace=name),
        lambda: memory.list(namespace=name),
        lambda: memory.stats(namespace=name),
        lambda: memory.search_text("task", namespace=name),
        lambda: memory.history("id", namespace=name),
        lambda: memory.update("id", lesson="x", namespace=name),
        lambda: memory.forget(all=True, namespace=name),
        lambda: memory.in_namespace(name),
    ):
        with pytest.raises(InputError, match="namespace"):
            call()
    assert memory.namespaces() == ()


def test_the_same_text_in_two_namespaces_is_two_intents(memory):
    memory.remember("task", "lesson")
    memory.remember("task", "lesson", namespace="acme")
    assert memory.stats().intents == memory.stats(namespace="acme").intents == 1
    assert memory.verify().intents == 2


# --- views ------------------------------------------------------------------------------------


def test_a_view_has_the_same_verbs_bound_to_one_namespace(memory):
    acme = memory.in_namespace("acme")
    made = acme.remember("task", "lesson", episode_id="w")
    recall = acme.recall("task", episode_id="e")
    assert (recall.namespace, recall.ids) == ("acme", (made.id,))
    assert acme.reinforce("e", reward=1).applied
    acme.hold("h", intent="task", trajectory="done")
    assert acme.stats().memories == 1
    assert memory.stats().memories == 0
    assert memory.get(made.id, namespace="acme").updates == 1
    assert acme.namespaces() == ("acme",)


def test_a_view_takes_no_other_namespace_than_its_own(memory):
    made = memory.remember("task", "lesson")
    acme = memory.in_namespace("acme")
    assert acme.recall("task", namespace="acme").namespace == "acme"
    for call in (
        lambda: acme.recall("task", namespace="default"),
        lambda: acme.remember("task", "lesson", namespace="default"),
        lambda: acme.reinforce("e", reward=1, ids=[made.id], namespace="default"),
        lambda: acme.get(made.id, namespace="default"),
        lambda: acme.list(namespace="default"),
        lambda: acme.forget(all=True, namespace="default"),
    ):
        with pytest.raises(InputError, match="bound to namespace 'acme'"):
            call()
    assert memory.get(made.id).updates == 0


def test_a_view_refuses_to_record_a_recall_of_another_namespace(memory):
    memory.remember("reset a router", "lesson")
    recall = memory.recall("reset a router", episode_id="e", record=False)
    with pytest.raises(InputError, match="bound to namespace 'acme'"):
        memory.in_namespace("acme").record(recall)
    assert memory.namespaces() == ("default",)
    assert memory.stats().open_episodes == 0


def test_closing_a_view_leaves_the_bank_open(memory):
    memory.in_namespace("acme").close()
    assert memory.remember("task", "lesson").id
