"""Other memories and vector stores on the same vectors, as far as they are installed."""

import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from langchain_memrl.bench.data import BATCH, Tasks

K = 5


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


def _batches(tasks: Tasks) -> Iterator[range]:
    size = len(tasks.texts)
    return (range(start, min(start + BATCH, size)) for start in range(0, size, BATCH))


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
    module: Any = importlib.import_module("langgraph.store.sqlite")
    index = {"dims": tasks.vectors.shape[1], "embed": tasks, "fields": ["text"]}
    place = str(folder / "store.sqlite")
    store = stack.enter_context(module.SqliteStore.from_conn_string(place, index=index))
    store.setup()
    return _langgraph(store, tasks, durable=True)


def _langgraph(store: Any, tasks: Tasks, *, durable: bool) -> Rival:
    put = importlib.import_module("langgraph.store.base").PutOp
    for places in _batches(tasks):
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
    for places in _batches(tasks):
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
    for places in _batches(tasks):
        client.insert("bank", [{"id": n, "vector": tasks.vectors[n], "q": 0.0} for n in places])

    def search(number: int) -> object:
        question = tasks.embed_query(tasks.texts[number])
        return client.search("bank", data=[question], limit=K, output_fields=["q"])

    def update(number: int) -> None:
        client.upsert("bank", [{"id": number, "vector": tasks.vectors[number], "q": 0.3}])

    return Rival(search, update, durable=True)


RIVALS: dict[str, Open] = {
    "langchain-core InMemoryVectorStore": _vector_store,
    "LangGraph InMemoryStore": _langgraph_memory,
    "LangGraph SqliteStore": _langgraph_sqlite,
    "Chroma": _chroma,
    "LanceDB": _lancedb,
    "Milvus Lite": _milvus,
}


@contextmanager
def open_rivals(tasks: Tasks, folder: Path) -> Iterator[tuple[dict[str, Rival], dict[str, str]]]:
    """Every installed rival, filled with the tasks, and why the others are missing."""
    found: dict[str, Rival] = {}
    missing: dict[str, str] = {}
    with ExitStack() as stack:
        for name, open_ in RIVALS.items():
            place = folder / name.replace(" ", "-")
            place.mkdir()
            try:
                found[name] = open_(tasks, place, stack)
            except ImportError as error:
                missing[name] = f"not installed ({error.name})"
            except Exception as error:  # whatever a stranger raises is told, not hidden
                missing[name] = f"cannot be used here ({type(error).__name__}: {error})"
        yield found, missing
