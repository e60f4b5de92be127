"""Other memories and vector stores on the same vectors, as far as they are installed."""

import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from langchain_memrl.bench.data import Tasks, batches
from langchain_memrl.store.embedded.bare import BareVec, loads_extensions

K = 5


class UnusableError(Exception):
    """A store is installed and cannot be used on this machine, for the reason given."""


class Rival(NamedTuple):
    """One open store, filled with the tasks.

    Attributes:
        search: Finds the nearest of the task with this number.
        update: Changes a number kept with that task; durable where the store is.
        durable: Whether a returned update survives a crash of the process.
    """

    search: Callable[[int], object]
    update: Callable[[int], object]
    durable: bool


Open = Callable[[Tasks, Path, ExitStack], Rival]


class Known(NamedTuple):
    """How a rival is opened, and up to how many memories it is worth waiting for."""

    open: Open
    limit: int = 100_000
    reason: str = "filling it takes too long"


def _vector_store(tasks: Tasks, folder: Path, stack: ExitStack) -> Rival:
    module: Any = importlib.import_module("langchain_core.vectorstores")
    store = module.InMemoryVectorStore(tasks)
    store.add_texts(tasks.texts, metadatas=[{"q": 0.0}] * len(tasks.texts), ids=tasks.texts)

    def update(number: int) -> None:
        store.store[tasks.texts[number]]["metadata"] = {"q": 0.3}

    return Rival(lambda n: store.similarity_search(tasks.texts[n], k=K), update, durable=False)


def _langgraph_memory(tasks: Tasks, folder: Path, stack: ExitStack) -> Rival:
    module: Any = importlib.import_module("langgraph.store.memory")
    index = {"dims": tasks.vectors.shape[1], "embed": tasks, "fields": ["text"]}
    return _langgraph(module.InMemoryStore(index=index), tasks, durable=False)


def _langgraph_sqlite(tasks: Tasks, folder: Path, stack: ExitStack) -> Rival:
    if not loads_extensions():
        raise UnusableError("this Python's sqlite3 cannot load the extension sqlite-vec")
    module: Any = importlib.import_module("langgraph.store.sqlite")
    index = {"dims": tasks.vectors.shape[1], "embed": tasks, "fields": ["text"]}
    place = str(folder / "store.sqlite")
    store = stack.enter_context(module.SqliteStore.from_conn_string(place, index=index))
    store.setup()
    return _langgraph(store, tasks, durable=True)


def _langgraph(store: Any, tasks: Tasks, *, durable: bool) -> Rival:
    put = importlib.import_module("langgraph.store.base").PutOp
    for places in batches(len(tasks.texts)):
        store.batch(
            [put(("bank",), tasks.texts[n], {"text": tasks.texts[n], "q": 0.0}) for n in places]
        )

    def update(number: int) -> None:
        text = tasks.texts[number]
        store.put(("bank",), text, {"text": text, "q": 0.3}, index=False)

    return Rival(
        lambda n: store.search(("bank",), query=tasks.texts[n], limit=K), update, durable=durable
    )


def _chroma(tasks: Tasks, folder: Path, stack: ExitStack) -> Rival:
    chromadb: Any = importlib.import_module("chromadb")
    settings = chromadb.Settings(anonymized_telemetry=False)
    client = chromadb.PersistentClient(str(folder / "chroma"), settings=settings)
    table = client.create_collection("bank", metadata={"hnsw:space": "cosine"})
    for places in batches(len(tasks.texts)):
        table.add(
            ids=[tasks.texts[n] for n in places],
            embeddings=tasks.vectors[places.start : places.stop],
            documents=[tasks.texts[n] for n in places],
            metadatas=[{"q": 0.0}] * len(places),
        )

    def search(number: int) -> object:
        return table.query(query_embeddings=[tasks.embed_query(tasks.texts[number])], n_results=K)

    def update(number: int) -> None:
        table.update(ids=[tasks.texts[number]], metadatas=[{"q": 0.3}])

    return Rival(search, update, durable=True)


def _lancedb(tasks: Tasks, folder: Path, stack: ExitStack) -> Rival:
    lancedb: Any = importlib.import_module("lancedb")
    rows = [
        {"id": text, "vector": tasks.vectors[place], "q": 0.0}
        for place, text in enumerate(tasks.texts)
    ]
    table = lancedb.connect(str(folder / "lance")).create_table("bank", rows)

    def search(number: int) -> object:
        return table.search(tasks.embed_query(tasks.texts[number])).limit(K).to_list()

    def update(number: int) -> None:
        table.update(where=f"id = '{tasks.texts[number]}'", values={"q": 0.3})

    return Rival(search, update, durable=True)


def _milvus(tasks: Tasks, folder: Path, stack: ExitStack) -> Rival:
    pymilvus: Any = importlib.import_module("pymilvus")
    importlib.import_module("milvus_lite")
    client = pymilvus.MilvusClient(str(folder / "milvus.db"))
    stack.callback(client.close)
    client.create_collection("bank", dimension=tasks.vectors.shape[1], metric_type="COSINE")
    for places in batches(len(tasks.texts)):
        client.insert("bank", [{"id": n, "vector": tasks.vectors[n], "q": 0.0} for n in places])

    def search(number: int) -> object:
        question = tasks.embed_query(tasks.texts[number])
        return client.search("bank", data=[question], limit=K, output_fields=["q"])

    def update(number: int) -> None:
        client.upsert("bank", [{"id": number, "vector": tasks.vectors[number], "q": 0.3}])

    return Rival(search, update, durable=True)


def _qdrant(tasks: Tasks, folder: Path, stack: ExitStack) -> Rival:
    qdrant: Any = importlib.import_module("qdrant_client")
    models = qdrant.models
    client = qdrant.QdrantClient(path=str(folder / "qdrant"))
    stack.callback(client.close)
    space = models.VectorParams(size=tasks.vectors.shape[1], distance=models.Distance.COSINE)
    client.create_collection("bank", vectors_config=space)
    for places in batches(len(tasks.texts)):
        rows = tasks.vectors[places.start : places.stop].tolist()
        payloads = [{"q": 0.0}] * len(places)
        points = models.Batch(ids=list(places), vectors=rows, payloads=payloads)
        client.upsert("bank", points=points)

    def search(number: int) -> object:
        question = tasks.embed_query(tasks.texts[number])
        return client.query_points("bank", query=question, limit=K)

    def update(number: int) -> None:
        client.set_payload("bank", payload={"q": 0.3}, points=[number])

    return Rival(search, update, durable=True)


def _community_faiss(tasks: Tasks, folder: Path, stack: ExitStack) -> Rival:
    module: Any = importlib.import_module("langchain_community.vectorstores")
    pairs = zip(tasks.texts, tasks.vectors, strict=True)
    store = module.FAISS.from_embeddings(
        pairs, tasks, metadatas=[{"q": 0.0} for _ in tasks.texts], ids=tasks.texts
    )

    def update(number: int) -> None:
        store.docstore.search(tasks.texts[number]).metadata["q"] = 0.3

    return Rival(lambda n: store.similarity_search(tasks.texts[n], k=K), update, durable=False)


def _sqlite_vec(tasks: Tasks, folder: Path, stack: ExitStack) -> Rival:
    bare = stack.enter_context(BareVec.open(folder / "vec.sqlite3", tasks.vectors))
    return Rival(lambda n: bare.search(tasks.vectors[n], K), bare.update, durable=True)


SLOW = "a search there takes seconds"
RIVALS: dict[str, Known] = {
    "InMemoryVectorStore": Known(_vector_store, 10_000, SLOW),
    "LangGraph InMemoryStore": Known(_langgraph_memory, 10_000, SLOW),
    "LangGraph SqliteStore": Known(_langgraph_sqlite, 10_000),
    "Chroma": Known(_chroma, 10_000),
    "LanceDB": Known(_lancedb),
    "Milvus Lite": Known(_milvus, 10_000, SLOW),
    "Qdrant, local": Known(_qdrant, 1_000, "it writes each point alone, which takes minutes"),
    "LangChain FAISS": Known(_community_faiss),
    "sqlite-vec": Known(_sqlite_vec),
}


@contextmanager
def open_rivals(tasks: Tasks, folder: Path) -> Iterator[tuple[dict[str, Rival], dict[str, str]]]:
    """Every installed rival, filled with the tasks, and why the others are missing."""
    found: dict[str, Rival] = {}
    missing: dict[str, str] = {}
    size = len(tasks.texts)
    with ExitStack() as stack:
        for name, known in RIVALS.items():
            if size > known.limit:
                missing[f"{name}, {size:,} memories"] = known.reason
                continue
            place = folder / name.replace(" ", "-")
            place.mkdir()
            try:
                rival = known.open(tasks, place, stack)
                rival.search(0)
                rival.update(0)
                found[name] = rival
            except ImportError as error:
                missing[name] = f"not installed ({error.name})"
            except UnusableError as error:
                missing[name] = str(error)
            except Exception as error:  # whatever a stranger raises is told, not hidden
                missing[name] = f"cannot be used here ({type(error).__name__}: {error})"
        yield found, missing
