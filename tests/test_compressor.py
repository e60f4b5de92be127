"""MemRLCompressor, and both forms inside LangChain's own retrievers."""

import pytest
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_memrl import EpisodicMemory, FromConfig, MemRLCompressor, MemRLRetriever
from langchain_memrl.errors import EpisodeError, InputError
from langchain_memrl.offline import HashingEmbeddings, ScriptedChatModel

TASK = "reset the router"
CONFIG = {"metadata": {"memrl_episode_id": "a"}}
TEXTS = ("reset the router", "reset the modem", "polish the rack", "bury the cable", "router off")


@pytest.fixture
def memory():
    with EpisodicMemory.open(":memory:", seed=0) as opened:  # no embeddings
        yield opened


def pages():
    return [Document(id=f"p{n}", page_content=text) for n, text in enumerate(TEXTS)]


def searching(documents=None, k=5):
    store = InMemoryVectorStore(HashingEmbeddings(dimensions=64))
    store.add_documents(pages() if documents is None else documents)
    return store.as_retriever(search_kwargs={"k": k})


def names(documents):
    return [document.id for document in documents]


def classic():
    return pytest.importorskip("langchain_classic.retrievers", reason="it is in the dev extra")


class Backwards(BaseDocumentCompressor):
    """A reranker that prefers what the one before it put last, and keeps two."""

    def compress_documents(self, documents, query, callbacks=None):
        return list(documents)[::-1][:2]


# --- by itself ----------------------------------------------------------------------------------


async def test_it_is_a_compressor_and_keeps_the_best(memory):
    compressor = MemRLCompressor(memory=memory, k=2)
    assert isinstance(compressor, BaseDocumentCompressor)
    assert names(compressor.compress_documents(pages(), TASK)) == ["p0", "p1"]
    assert names(await compressor.acompress_documents(pages(), TASK)) == ["p0", "p1"]
    assert memory.list() == []  # no episode, nothing written


def test_inside_a_chain_the_episode_comes_from_its_config(memory):
    compressor = MemRLCompressor(memory=memory, k=2, q_weight=0.5)
    chain = RunnablePassthrough() | (lambda task: compressor.compress_documents(pages(), task))
    chain.invoke(TASK, CONFIG)
    memory.reinforce("a", reward=-1.0)
    assert names(compressor.compress_documents(pages(), TASK)) == ["p2", "p0"]


@pytest.mark.parametrize("setting", [{"k": 0}, {"q_weight": 2}, {"namespace": ""}, {"fetch_k": 3}])
def test_an_unusable_setting_is_refused_at_once(memory, setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        MemRLCompressor(memory=memory, **setting)


# --- inside LangChain's retrievers --------------------------------------------------------------


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("in_chain", [False, True])
async def test_contextual_compression_brings_the_episode_along(memory, awaited, in_chain):
    retriever = classic().ContextualCompressionRetriever(
        base_compressor=MemRLCompressor(memory=memory, k=2), base_retriever=searching()
    )
    asked = RunnablePassthrough() | retriever if in_chain else retriever
    found = await asked.ainvoke(TASK, CONFIG) if awaited else asked.invoke(TASK, CONFIG)
    moved = memory.reinforce("a", reward=1.0).credits
    assert [credit.id for credit in moved] == [one.metadata["memrl_id"] for one in found]
    assert len(moved) == 2


def test_contextual_compression_brings_the_namespace_along(memory):
    retriever = classic().ContextualCompressionRetriever(
        base_compressor=MemRLCompressor(memory=memory, k=2, namespace=FromConfig("tenant")),
        base_retriever=searching(),
    )
    retriever.invoke(TASK, {"metadata": {**CONFIG["metadata"], "tenant": "acme"}})
    chain = RunnablePassthrough() | retriever
    chain.invoke("another task", {**CONFIG, "configurable": {"tenant": "acme"}})
    assert len(memory.episode("a", namespace="acme").intents) == 2
    with pytest.raises(InputError, match="names no namespace"):
        retriever.invoke(TASK, CONFIG)


@pytest.mark.parametrize("awaited", [False, True])
async def test_what_a_later_reranker_dropped_is_not_rewarded(memory, awaited):
    """record=False where it ranks, and a compressor that changes nothing where all is chosen."""
    pipeline = pytest.importorskip(
        "langchain_classic.retrievers.document_compressors", reason="it is in the dev extra"
    ).DocumentCompressorPipeline
    last = MemRLCompressor(memory=memory, k=100, q_weight=0.0)
    retriever = classic().ContextualCompressionRetriever(
        base_compressor=pipeline(transformers=[Backwards(), last]),
        base_retriever=MemRLRetriever(memory=memory, base=searching(), k=4, record=False),
    )
    found = await retriever.ainvoke(TASK, CONFIG) if awaited else retriever.invoke(TASK, CONFIG)
    assert len(found) == 2
    moved = memory.reinforce("a", reward=-1.0).credits
    assert [credit.id for credit in moved] == [one.metadata["memrl_id"] for one in found]
    ranked = MemRLRetriever(memory=memory, base=searching(), k=5).invoke(TASK)
    values = {one.id: one.metadata["memrl_q_value"] for one in ranked}
    assert {id for id, value in values.items() if value < 0} == set(names(found))


def test_a_document_of_several_retrievers_is_one(memory):
    twins = [Document(id="left", page_content="same"), Document(id="right", page_content="same")]
    ensemble = classic().EnsembleRetriever
    merged = ensemble(retrievers=[searching(), RunnableLambda(lambda _: pages()[::-1])])
    found = MemRLRetriever(memory=memory, base=merged, k=3).invoke(TASK, CONFIG)
    assert len(memory.episode("a").memory_ids) == len(found) == 3
    assert memory.stats().memories == len(TEXTS)

    apart = [twin.model_copy(update={"metadata": {"key": twin.id}}) for twin in twins]
    by_key = ensemble(retrievers=[RunnableLambda(lambda _: apart)], id_key="key")
    both = MemRLRetriever(memory=memory, base=by_key, k=3).invoke(TASK)
    assert names(both) == ["left", "right"]


@pytest.mark.parametrize("awaited", [False, True])
async def test_wrapped_retrievers_inside_an_ensemble_record_each_what_they_gave(memory, awaited):
    wrapped = [
        MemRLRetriever(memory=memory, base=searching(), k=2),
        MemRLRetriever(memory=memory, base=RunnableLambda(lambda _: pages()[::-1][:4]), k=2),
    ]
    ensemble = classic().EnsembleRetriever(retrievers=wrapped)
    found = await ensemble.ainvoke(TASK, CONFIG) if awaited else ensemble.invoke(TASK, CONFIG)
    shown = {one.metadata["memrl_id"] for one in found}
    assert set(memory.episode("a").memory_ids) == shown
    assert len({*names(found)}) == len(shown)


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("outside", [False, True])
async def test_several_questions_for_one_task(memory, awaited, outside):
    def asking(base):
        model = ScriptedChatModel(responses=["router\nrack\ncable"], cycle=True)
        return classic().MultiQueryRetriever.from_llm(retriever=base, llm=model)

    def wrap(base):
        return MemRLRetriever(memory=memory, base=base, k=2)

    retriever = wrap(asking(searching(k=3))) if outside else asking(wrap(searching(k=3)))
    found = await retriever.ainvoke(TASK, CONFIG) if awaited else retriever.invoke(TASK, CONFIG)
    episode = memory.episode("a")
    assert {one.metadata["memrl_id"] for one in found} == set(episode.memory_ids)
    assert len(episode.intents) == (1 if outside else 3)
    assert len(memory.reinforce("a", reward=1.0).credits) == len(episode.memory_ids)


@pytest.mark.parametrize("awaited", [False, True])
async def test_parent_documents_learn_by_their_content(memory, awaited):
    splitters = pytest.importorskip("langchain_text_splitters", reason="it is in the dev extra")
    parents = classic().ParentDocumentRetriever(
        vectorstore=InMemoryVectorStore(HashingEmbeddings(dimensions=64)),
        docstore=InMemoryStore(),
        child_splitter=splitters.CharacterTextSplitter(
            separator=" ", chunk_size=8, chunk_overlap=0
        ),
        search_kwargs={"k": 8},
    )
    parents.add_documents([Document(page_content=text) for text in TEXTS])
    retriever = MemRLRetriever(memory=memory, base=parents, k=2)
    found = await retriever.ainvoke(TASK, CONFIG) if awaited else retriever.invoke(TASK, CONFIG)
    memory.reinforce("a", reward=1.0, cited=[found[0].metadata["memrl_id"]])
    again = retriever.invoke(TASK)
    assert [one.metadata["memrl_q_value"] for one in again[:1]] == pytest.approx([0.3])
    assert again[0].page_content == found[0].page_content


def test_a_wrapped_retriever_may_be_compressed_by_others(memory):
    retriever = classic().ContextualCompressionRetriever(
        base_compressor=Backwards(),
        base_retriever=MemRLRetriever(memory=memory, base=searching(), k=3),
    )
    found = retriever.invoke(TASK, CONFIG)
    assert len(memory.episode("a").memory_ids) == 3  # recorded before the other one chose
    moved = memory.reinforce("a", reward=1.0, cited=names(found)).credits
    assert {credit.id for credit in moved} == {one.metadata["memrl_id"] for one in found}
    with pytest.raises(EpisodeError, match="did not show"):
        memory.reinforce("b", reward=1.0, ids=[moved[0].id], cited=["never shown"])
