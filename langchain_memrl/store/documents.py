"""Documents of other retrievers as memories: a key, a Q and a history, but no text and no vector.

The id of such a memory follows from its namespace and key, so that the same document is the same
memory before it was ever stored, after it was forgotten, and in two banks that are merged.
"""

import json
from collections.abc import Container
from uuid import UUID, uuid5

from langchain_memrl.store.base import NewMemory, RecallRecord
from langchain_memrl.store.database import Database
from langchain_memrl.store.meta import learning
from langchain_memrl.store.rows import DOCUMENT, insert_memory

DOCUMENT_IDS = UUID("7e2a2f5e-5c0b-4d43-9b5c-6f0b4c1f7d3a")


def key_of_id(name: str) -> str:
    """The key of a document that has an id of its own."""
    return f"id {name}"


def document_memory_id(namespace: str, key: str) -> str:
    """The memory of the document with this key: a UUID made from both names (RFC 9562, v5)."""
    return str(uuid5(DOCUMENT_IDS, json.dumps([namespace, key])))


def register(db: Database, record: RecallRecord, known: Container[str], now: str) -> None:
    """Write the candidates of a recall of documents that are not known yet, with Q = q_init."""
    keys, q_init = record.document_keys or {}, learning(db).q_init
    for id in (candidate.id for candidate in record.candidates):
        if id in keys and id not in known:
            new = NewMemory(
                id=id,
                namespace=record.namespace,
                intent=DOCUMENT,
                lesson=keys[id],
                trajectory="",
                outcome="unknown",
                episode_id=id,  # no episode wrote it, and none may go with it
                parents=(),
                source=DOCUMENT,
                metadata={},
            )
            insert_memory(db, new, None, q_init, "trusted", now)
