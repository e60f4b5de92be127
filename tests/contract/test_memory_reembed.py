"""Going over to another embedding model."""

import threading

import numpy as np
import pytest
from fakes import FakeEmbeddings, ProviderError

from langchain_memrl import EpisodicMemory
from langchain_memrl.errors import EmbeddingError, EmbeddingMismatchError, InputError

COUNT = 600
RECALL = {"score_threshold": None, "q_weight": 0, "k": 5}


@pytest.fixture
def filled(open_bank):
    memory = open_bank()
    memory.remember_many([{"intent": f"task {n}", "lesson": f"lesson {n}"} for n in range(COUNT)])
    memory.remember("task 3", "lesson of acme", namespace="acme")
    memory.reinforce("e", reward=1, ids=[memory.list(limit=1)[0].id])
    memory.hold("held", intent="a held task", trajectory="done")
    return memory


@pytest.fixture(params=[24, 16])
def new(request):
    """Another model: of another dimension, and of the same one."""
    return FakeEmbeddings(request.param, model="new")


def expected(model, task, space="default"):
    texts = [f"task {n}" for n in range(COUNT)] if space == "default" else ["task 3"]
    cosines = np.array([model.vector(text) for text in texts]) @ np.array(model.vector(task))
    return [texts[place] for place in np.argsort(-cosines)[:5]]


def found(memory, task, **options):
    return [one.memory.intent for one in memory.recall(task, **RECALL | options).memories]


def test_every_recall_is_then_the_new_models_answer(filled, new, open_bank):
    q_values = [one.q_value for one in filled.list(limit=None)]
    assert filled.reembed(new) == COUNT + 1
    for task in ("task 7", "something else"):
        assert found(filled, task) == expected(new, task)
        assert found(filled, task, namespace="acme") == ["task 3"]
    assert [one.q_value for one in filled.list(limit=None)] == q_values
    assert filled.verify().problems == ()
    filled.remember("one more", "lesson")
    again = open_bank(embeddings=new)
    assert found(again, "task 7") == expected(new, "task 7")
    with pytest.raises(EmbeddingMismatchError, match="these embeddings are FakeEmbeddings fake"):
        open_bank().recall("task 7")


def test_it_comes_to_an_end_although_others_never_stop_writing(filled, open_bank):
    """Every call of the new model meets a writer that adds one more text meanwhile."""
    other, writers, refused = open_bank(), [], []

    def write(number):
        try:
            other.remember(f"written meanwhile {number}", "lesson")
        except EmbeddingMismatchError as error:
            refused.append(error)

    class Beside(FakeEmbeddings):
        def embed_documents(self, texts):
            writers.append(threading.Thread(target=write, args=(len(writers),)))
            writers[-1].start()
            writers[-1].join(timeout=0.2)
            return super().embed_documents(texts)

    filled.reembed(Beside(16, model="new"))
    for writer in writers:
        writer.join()
    assert len(writers) < 20
    assert refused
    assert filled.verify().problems == ()
    assert filled.stats().memories == COUNT + len(writers) - len(refused)


def test_an_answer_held_before_is_written_with_a_vector_of_the_new_model(filled, new):
    filled.reembed(new)
    filled.reinforce("held", reward=1)
    assert found(filled, "a held task", k=1) == ["a held task"]
    assert filled.verify().problems == ()


@pytest.mark.parametrize("calls", [1, 2, 3])
def test_after_an_interruption_only_the_missing_texts_are_asked_for(filled, new, open_bank, calls):
    new.break_call(1 + calls, "raise")
    with pytest.raises(ProviderError):
        filled.reembed(new)
    assert found(filled, "task 7", k=1) == ["task 7"]  # by the old model
    filled.close()
    asked = len(new.texts)
    with open_bank(embeddings=None) as memory:
        memory.reembed(new)
        assert len(new.texts) - asked == COUNT + 1 - 256 * (calls - 1)
        assert found(memory, "task 7") == expected(new, "task 7")
        assert memory.verify().problems == ()


def test_what_is_written_meanwhile_is_taken_along(filled, new, open_bank):
    other = open_bank()
    told = []

    def progress(done, total):
        if not told:
            other.remember("written meanwhile", "lesson")
        told.append((done, total))

    filled.reembed(new, progress=progress)
    assert told[-1][0] == told[-1][1] == COUNT + 2
    assert found(filled, "written meanwhile", k=1) == ["written meanwhile"]
    assert filled.verify().problems == ()


def test_whoever_has_the_old_model_is_refused_afterwards(filled, new, open_bank):
    other = open_bank()
    assert found(other, "task 7", k=1) == ["task 7"]
    filled.reembed(new)
    for call in (
        lambda: other.recall("task 7"),
        lambda: other.remember("more", "lesson"),
        lambda: other.hold("h", intent="more", trajectory="done"),
    ):
        with pytest.raises(EmbeddingMismatchError, match="FakeEmbeddings new"):
            call()
    other.reinforce("r", reward=1, ids=[other.list(limit=1)[0].id])
    assert filled.verify().problems == ()


def test_another_model_in_the_middle_starts_from_the_beginning(filled, open_bank):
    first, second = FakeEmbeddings(8, model="first"), FakeEmbeddings(8, model="second")
    first.break_call(3, "raise")
    with pytest.raises(ProviderError):
        filled.reembed(first)
    assert filled.reembed(second) == COUNT + 1
    assert found(filled, "task 7") == expected(second, "task 7")


@pytest.mark.parametrize("fault", ["fewer", "nan", "zero", "ragged", "text"])
def test_unusable_vectors_leave_the_old_ones(filled, new, fault):
    new.break_call(2, fault)
    with pytest.raises(EmbeddingError):
        filled.reembed(new)
    assert found(filled, "task 7", k=1) == ["task 7"]
    assert filled.verify().problems == ()


def test_an_empty_bank_goes_over_too(bank, new):
    assert bank.reembed(new) == 0
    bank.remember("task", "lesson")
    assert found(bank, "task") == ["task"]


def test_a_view_of_one_namespace_cannot_change_the_whole_bank(bank, new, tmp_path):
    view = bank.in_namespace("acme")
    for call in (
        lambda: view.reembed(new),
        lambda: view.configure(step_size=0.1),
        lambda: view.verify(),
        lambda: view.rebuild_index(),
        lambda: view.compact(),
        lambda: view.backup(tmp_path / "copy"),
        lambda: view.export_jsonl(tmp_path / "dump.jsonl"),
    ):
        with pytest.raises(InputError, match="whole bank"):
            call()
    assert list(tmp_path.iterdir()) == []


def test_views_use_the_new_model_too(filled, new):
    view = filled.in_namespace("acme")
    assert isinstance(view, EpisodicMemory)
    filled.reembed(new)
    assert found(view, "anything") == ["task 3"]


# --- at the same time ---------------------------------------------------------------------------


class Meanwhile(FakeEmbeddings):
    """Does something else, once, while it is asked for a certain text."""

    def __init__(self, *arguments, text, then, **options):
        super().__init__(*arguments, **options)
        self.text, self.then = text, then

    def embed_documents(self, texts):
        rows = super().embed_documents(texts)
        if self.text in texts and self.then is not None:
            then, self.then = self.then, None
            thread = threading.Thread(target=then)
            thread.start()
            thread.join()
        return rows


@pytest.mark.parametrize("verb", ["remember", "hold", "recall"])
def test_a_verb_whose_vectors_are_of_the_old_model_is_refused(open_bank, new, verb):
    old = Meanwhile(text="slow", then=lambda: memory.reembed(new))
    memory = open_bank(embeddings=old)
    memory.remember("task 1", "lesson")
    calls = {
        "remember": lambda: memory.remember("slow", "lesson"),
        "hold": lambda: memory.hold("h", intent="slow", trajectory="done"),
        "recall": lambda: memory.recall("slow"),
    }
    with pytest.raises(EmbeddingMismatchError):
        calls[verb]()
    calls[verb]()  # repeated, with the new model
    assert found(memory, "task 1", k=1) == ["task 1"]
    assert memory.verify().problems == ()


def test_two_calls_at_once_to_one_model_both_end(open_bank, new):
    other = open_bank()
    model = Meanwhile(new.dimension, model="new", text="task 1", then=lambda: other.reembed(new))
    memory = open_bank()
    memory.remember_many([{"intent": f"task {n}", "lesson": "x"} for n in range(5)])
    memory.reembed(model)
    assert found(memory, "task 1", k=1) == found(other, "task 1", k=1) == ["task 1"]
    assert memory.verify().problems == ()


def test_of_two_calls_at_once_to_different_models_one_is_told(open_bank, new):
    other, later = open_bank(), FakeEmbeddings(new.dimension, model="later")
    model = Meanwhile(new.dimension, model="new", text="task 1", then=lambda: other.reembed(later))
    memory = open_bank()
    memory.remember_many([{"intent": f"task {n}", "lesson": "x"} for n in range(5)])
    with pytest.raises(EmbeddingMismatchError, match="another call of reembed"):
        memory.reembed(model)
    assert found(other, "task 1", k=1) == ["task 1"]
    assert other.verify().problems == ()


def test_compacting_drops_collected_vectors_of_forgotten_texts(filled, new, behind):
    new.break_call(4, "raise")
    with pytest.raises(ProviderError):
        filled.reembed(new)
    vector = np.array(new.vector("task 3"))
    trace = (vector / np.linalg.norm(vector)).astype("<f4").tobytes()
    doomed = [one.id for one in filled.list(limit=None) if one.intent == "task 3"]
    filled.forget(ids=doomed)
    filled.forget(all=True, namespace="acme")
    filled.compact()
    assert trace not in behind.raw()
