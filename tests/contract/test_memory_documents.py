"""What a bank keeps of documents: a key, Q and history; no text, no vector, none in searches."""

import json

import pytest
from fakes import FakeEmbeddings
from langchain_core.documents import Document

from langchain_memrl import EpisodicMemory, verbatim
from langchain_memrl.errors import MemoryNotFoundError
from langchain_memrl.learner import summarize_pending

TASK = "reset the router"
SECRET = "the text that stays where it is"


def pages(count=6):
    return [Document(id=f"p{n}", page_content=f"{SECRET} {n}") for n in range(count)]


def learn(bank, episode_id="a", reward=1.0, documents=None, **options):
    found = bank.recall_documents(TASK, documents or pages(), k=2, episode_id=episode_id, **options)
    bank.reinforce(episode_id, reward=reward)
    return found.ids


@pytest.fixture
def bare(open_bank):
    """A bank without embeddings."""
    return open_bank(embeddings=None)


@pytest.fixture
def mixed(open_bank):
    """A bank with four memories and six documents."""
    bank = open_bank()
    for number in range(4):
        bank.remember(f"task {number}", f"lesson {number}")
    learn(bank)
    return bank


def test_no_embeddings_are_needed_and_no_text_is_kept(bare, behind):
    shown = learn(bare)
    assert [bare.get(id).q_value for id in shown] == pytest.approx([0.3, 0.3])
    assert [step.reward for step in bare.history(shown[0])] == [1.0]
    bare.close()
    assert SECRET.encode() not in behind.raw()
    assert SECRET not in "\n".join(behind.dump())


def test_the_candidates_of_an_episode_are_kept_with_their_numbers(bare):
    learn(bare)
    assert bare.stats().memories == 6
    assert bare.stats().never_injected == 4
    repeated = bare.recall_documents(TASK, pages(), k=2, episode_id="a")
    assert [one.probability for one in repeated.candidates] == [1, 1, 0, 0, 0, 0]
    assert [one.q_value for one in repeated.candidates] == [0] * 6  # as it was then


def test_of_a_large_answer_only_the_best_fifty_are_kept(bare):
    learn(bare, documents=pages(300))
    assert bare.stats().memories == 50


def test_without_an_episode_nothing_is_kept(bare):
    bare.recall_documents(TASK, pages(), k=2)
    assert bare.list() == []
    with pytest.raises(MemoryNotFoundError):
        bare.get(bare.recall_documents(TASK, pages()).ids[0])


def test_a_document_is_a_memory_with_its_key_and_only_an_answer_shows_its_text(bare):
    found = bare.recall_documents(TASK, [*pages(1), Document(page_content="x")], episode_id="a")
    by_id, by_content = (bare.get(id) for id in found.ids)
    assert (by_id.intent, by_id.source, by_id.lesson) == ("document", "document", "id p0")
    assert by_content.lesson.startswith("sha256 2d711642b726b044")  # of "x"
    assert found.memories[0].memory.lesson == f"{SECRET} 0"
    assert found.memories[0].document == pages(1)[0]
    assert not by_id.raw
    assert [one.id for one in bare.search_text("id p0")] == [by_id.id]


def test_a_search_never_finds_them(mixed):
    for options in ({}, {"filter": {"source": "document"}}, {"score_threshold": None}):
        found = mixed.recall("task 1", k=50, fetch_k=50, **options).memories
        assert {one.memory.source for one in found} <= {"agent"}
    assert mixed.recall("document", score_threshold=0.99).ids == ()


def test_a_disabled_document_does_not_change_a_search(mixed):
    before = mixed.recall("task 1", score_threshold=None).ids
    mixed.disable(mixed.episode("a").memory_ids[0])
    assert mixed.recall("task 1", score_threshold=None).ids == before
    assert mixed.episode("a").memory_ids[0] not in mixed.recall_documents(TASK, pages()).ids


def test_a_bank_with_only_documents_asks_no_embedder(open_bank, embeddings):
    bank = open_bank()
    learn(bank)
    assert bank.recall(TASK).ids == ()
    assert embeddings.calls == []


def test_threshold_and_counts_of_intents_are_those_without_documents(open_bank, tmp_path):
    with_documents, without = open_bank(tmp_path / "one"), open_bank(tmp_path / "two")
    for bank in (with_documents, without):
        for number in range(9):
            if bank is with_documents:
                learn(bank, f"episode {number}", documents=pages(30))
            bank.remember(f"task {number}", "a lesson")
    settings = [bank.recall("task 1").settings for bank in (with_documents, without)]
    assert settings[0] == settings[1]
    assert with_documents.stats().intents == without.stats().intents == 9
    assert with_documents.stats().raw == 0
    assert with_documents.namespaces() == without.namespaces() == ("default",)


def test_the_summariser_leaves_them_alone(mixed):
    assert summarize_pending(mixed, verbatim) == 0
    assert {one.lesson[:3] for one in mixed.list(filter={"source": "document"})} == {"id "}


def test_everything_agrees_after_reopening_rebuilding_and_compacting(mixed, open_bank):
    expected = {one.id: one.q_value for one in mixed.list(limit=None)}
    assert mixed.verify().problems == ()
    mixed.rebuild_index()
    mixed.compact()
    mixed.close()
    again = open_bank()
    assert again.verify() == type(again.verify())((), 10, 4)
    assert {one.id: one.q_value for one in again.list(limit=None)} == expected
    assert len(again.recall("task 1", score_threshold=None).ids) == 4
    read = open_bank(read_only=True)
    assert len(read.recall_documents(TASK, pages(), k=2).ids) == 2


def test_another_embedding_model_leaves_them_alone(mixed):
    other = FakeEmbeddings(24, model="other")
    assert mixed.reembed(other) == 4
    assert [text for text in other.texts if text == "document"] == []
    assert mixed.verify().problems == ()
    assert learn(mixed, "b") == mixed.episode("a").memory_ids


def test_an_export_brings_them_back(mixed, tmp_path, embeddings):
    path = tmp_path / "bank.jsonl"
    mixed.export_jsonl(path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["text"] for line in lines if line["kind"] == "intents"] == [
        f"task {number}" for number in range(4)
    ]
    with EpisodicMemory.import_jsonl(path, ":memory:", embeddings=embeddings) as copy:
        assert copy.verify().problems == ()
        assert copy.stats() == mixed.stats()
        assert copy.recall_documents(TASK, pages(), k=2, episode_id="a").ids == learn(mixed)
        assert len(copy.history(mixed.episode("a").memory_ids[0])) == 1


def test_two_banks_that_learned_the_same_document_merge_its_steps(open_bank, tmp_path):
    one, other = open_bank(tmp_path / "one"), open_bank(tmp_path / "two")
    id = learn(one, "a")[0]
    assert learn(other, "b")[0] == id
    other.export_jsonl(tmp_path / "other.jsonl")
    one.close()
    merged = EpisodicMemory.import_jsonl(tmp_path / "other.jsonl", tmp_path / "one")
    with merged:
        assert [step.episode_id for step in merged.history(id)] == ["a", "b"]
        assert merged.get(id).q_value == pytest.approx(0.51)
        assert merged.verify().problems == ()


def test_a_bank_of_documents_alone_is_exported_without_a_model(bare, tmp_path):
    learn(bare)
    bare.export_jsonl(tmp_path / "bank.jsonl")
    with EpisodicMemory.import_jsonl(tmp_path / "bank.jsonl", ":memory:") as copy:
        assert copy.stats() == bare.stats()


def test_a_forgotten_document_starts_anew_and_its_episodes_keep_their_texts(bare):
    id = learn(bare)[0]
    bare.forget(ids=[id])
    with pytest.raises(MemoryNotFoundError):
        bare.get(id)
    assert bare.episode("a").intents == (TASK,)
    again = bare.recall_documents(TASK, pages(), k=2, episode_id="b")
    assert id in {one.id for one in again.candidates}
    assert (bare.get(id).q_value, bare.history(id)) == (0.0, [])
    assert bare.verify().problems == ()


def test_a_namespace_is_cleared_with_its_documents(bare):
    learn(bare)
    assert len(bare.forget(all=True)) == 6
    assert bare.list() == []
    assert bare.verify().problems == ()
    assert learn(bare)  # and may be learned again


def test_useless_documents_can_be_pruned(bare):
    for number in range(3):
        learn(bare, f"episode {number}", -1.0, documents=pages(2))
    assert len(bare.prune(max_q=-0.5, min_updates=3)) == 2


def test_an_episode_writes_its_documents_down_as_parents(open_bank):
    bank = open_bank()
    shown = learn(bank)
    assert bank.remember(TASK, "what was learned", episode_id="a").parents == shown
