"""A retriever that is there already improves when it is wrapped in one line."""

import random

import pytest
from handbook import BM25, believed, by_vectors, pages, questions, succeeds
from langchain_core.callbacks import CallbackManager

from langchain_memrl import EpisodicMemory, MemRLCompressor, MemRLRetriever

K, FOUND, TASKS, LAST = 3, 12, 160, 60
SEEDS = range(5)
WRONG_REWARDS = 0.1


def by_bm25(documents, k):
    pytest.importorskip("rank_bm25", reason="BM25 comes with the dev extra")
    return BM25.over(documents, k)


def community_bm25(documents, k):
    pytest.importorskip("langchain_community", reason="in the extra bench-langchain-faiss only")
    pytest.importorskip("rank_bm25", reason="BM25 comes with the dev extra")
    from langchain_community.retrievers import BM25Retriever

    return BM25Retriever.from_documents(documents, k=k)


def community_faiss(documents, k):
    pytest.importorskip("langchain_community", reason="in the extra bench-langchain-faiss only")
    from langchain_community.vectorstores import FAISS

    from langchain_memrl.offline import HashingEmbeddings

    store = FAISS.from_documents(documents, HashingEmbeddings(), ids=[one.id for one in documents])
    return store.as_retriever(search_kwargs={"k": k})


RETRIEVERS = [by_bm25, by_vectors, community_bm25, community_faiss]


def wrapped(memory, base):
    return MemRLRetriever(memory=memory, base=base, k=K).invoke


def compressed(memory, base):
    last = MemRLCompressor(memory=memory, k=K)

    def run(question, config):
        callbacks = CallbackManager.configure(inheritable_metadata=config["metadata"])
        return last.compress_documents(base.invoke(question), question, callbacks)

    return run


def share(seed, base, wrap=None, *, cite=True, tasks=TASKS):
    """The share of the last questions that a user was helped with, who is wrong now and then."""
    noise = random.Random(1000 + seed)
    with EpisodicMemory.open(":memory:", seed=seed) as memory:
        ask = (lambda question, _: base.invoke(question)[:K]) if not wrap else wrap(memory, base)
        helped = []
        asked = list(enumerate(questions(seed, tasks)))
        for number, (question, about) in asked if wrap else asked[-LAST:]:
            episode_id = f"task-{number}"
            documents = ask(question, {"metadata": {"memrl_episode_id": episode_id}})
            page = believed(documents, about)
            helped.append(succeeds(page))
            if wrap:
                said = helped[-1] != (noise.random() < WRONG_REWARDS)
                cited = None if not cite else [] if page is None else [page.id]
                memory.reinforce(episode_id, reward=1.0 if said else -1.0, cited=cited)
        return sum(helped[-LAST:]) / LAST


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_a_wrapped_retriever_helps_more_often(retriever):
    base = retriever(pages(), FOUND)
    before, after = ([share(seed, base, wrap) for seed in SEEDS] for wrap in (None, wrapped))
    print(retriever.__name__, before, after)
    assert min(a - b for b, a in zip(before, after, strict=True)) > 0.1
    assert sum(after) - sum(before) > 0.2 * len(SEEDS)


def test_without_citations_it_helps_more_often_too():
    base = by_bm25(pages(), FOUND)
    before = [share(seed, base) for seed in SEEDS]
    after = [share(seed, base, wrapped, cite=False) for seed in SEEDS]
    print(before, after)
    assert min(a - b for b, a in zip(before, after, strict=True)) > 0
    assert sum(after) - sum(before) > 0.1 * len(SEEDS)


def test_a_compressor_learns_the_same_as_the_retriever():
    base = by_bm25(pages(), FOUND)
    few = {"tasks": 60}
    assert share(0, base, compressed, **few) == share(0, base, wrapped, **few)
