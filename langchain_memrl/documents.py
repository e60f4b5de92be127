"""Documents of any other retriever: a Q for each, although the bank holds none of them.

A document is known by its key: its own id, else the SHA-256 of its content. Its text stays where
it is; the bank keeps key, Q and history, and needs no embeddings for that.
"""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from numbers import Real

import numpy as np
from langchain_core.documents import Document

from langchain_memrl.choosing import Choosing
from langchain_memrl.errors import InputError
from langchain_memrl.inputs import check_text, told
from langchain_memrl.ranking import choose_memories, document_settings, present
from langchain_memrl.shortlist import Shortlist
from langchain_memrl.steps import Steps, awaitable, blocking
from langchain_memrl.store.base import Pool, RewardEntry
from langchain_memrl.store.documents import document_memory_id, key_of_id
from langchain_memrl.store.rows import DOCUMENT
from langchain_memrl.types import Memory, Normalization, Recall

IdKey = str | Callable[[Document], str]
"""What tells documents apart: a key of their metadata, or a function of the document."""
ScoreKey = str | Callable[[Document], float]
"""How well a document fits, larger is better: a key of its metadata, or a function."""


DOCUMENT_Q_WEIGHT = 0.6
"""More than for memories: places tell less than cosines, and with a weight of one half the last of
two or three documents could never come first, however useful it proves."""


class Documents(Choosing):
    """Recall among documents that another retriever found."""

    def _recall_documents(
        self,
        intent: str,
        documents: Sequence[Document],
        *,
        k: int = 5,
        q_weight: float = DOCUMENT_Q_WEIGHT,
        normalization: Normalization = "pool",
        epsilon: float = 0.0,
        holdout: float = 0.0,
        stop_when_harmful: bool = False,
        id_key: IdKey | None = None,
        score_key: ScoreKey | None = None,
        namespace: str | None = None,
        episode_id: str | None = None,
        record: bool = True,
    ) -> Steps[Recall]:
        """Choose the documents that should help with a task, of those that were found for it.

        All of them are the pool, and the `k` best by the blend of `recall` are returned. Find more
        than `k`: where there is nothing to choose from, Q changes the order only. Disabled ones
        (see `disable`) are left out. A document is new, with `q_init`, until an episode records
        it: with an episode id the answer and, as rows of numbers, the best 50 of the pool are. The
        same task over the same documents, again in that episode, returns what was recorded.

        Args:
            intent: The task text.
            documents: What was found, best first; of two with the same key the first counts.
            k: How many to return.
            q_weight: Weight of Q, in [0, 1]; 0 keeps the order by similarity.
            normalization: `"none"`, or `"pool"`, for which `"zscore"` stands too: a bank knows no
                similarities of documents that it does not hold.
            epsilon: Chance that the whole choice is random, in [0, 1].
            holdout: Share of the episodes, drawn at random, in which the first `k` are returned as
                they came, without Q and without credit, so that `lift` can tell what Q adds.
            stop_when_harmful: Return them as they came once Q was found to harm: once the interval
                of `lift` lies below zero.
            id_key: What tells documents apart, where neither `Document.id` nor content does: a key
                of their metadata, or a function of the document.
            score_key: What their similarity is: a number in their metadata, or a function, larger
                for a better fit (for a distance: `lambda d: -d.metadata["distance"]`). None takes
                the place r of n: `1 - (r - 1) / n`, equal steps as in a Borda count, which do not
                tell a narrow lead from a wide one.
            namespace: Whose Q counts; this memory's own by default.
            episode_id: The episode this recall belongs to.
            record: False leaves recording to a later call of `record`.

        Returns:
            The documents, best first, each as `document` beside its memory, whose id, Q and
            history are the document's, and whose lesson is, here only, its text. `withheld` says
            why they are in the order in which they came instead; then nothing of them is recorded
            as shown, and a reward moves none.

        Raises:
            ConfigError: A setting is out of range.
            InputError: An unusable text or namespace, or a document without key or score.
            EpisodeError: The episode was already rewarded and this is another task.
        """
        yield from ()
        settings = document_settings(
            k, q_weight, normalization, epsilon, holdout, stop_when_harmful
        )
        space, (task,) = self._space(namespace), self._tasks([intent], [episode_id])
        self._notices.recalled([episode_id])
        self._notices.offered(len(documents), k)
        keys, found = _identify(space, documents, id_key)
        answer = None
        if task.episode_id is not None:
            answer = self._store.recorded(space, task.episode_id, task.intent, keys)
        if answer is None:
            pool = _pool(self._known(space, keys, found), found, score_key)
            shortlist = Shortlist(pool, settings)
            why = self._withheld(space, task, settings)
            answer = choose_memories(space, task, shortlist, settings, self._rng, why, instead=k)
            answer = replace(answer, document_keys=keys)
        if record:
            (answer,) = self._store.record([answer])
        return present(answer, self._known(space, keys, found), found)

    def _known(
        self, space: str, keys: Mapping[str, str], documents: Mapping[str, Document]
    ) -> dict[str, Memory]:
        """What the bank knows of each document, in their order; new ones are as they will be."""
        stored, now = self._store.memories(space, [*keys]), datetime.now(UTC)
        q_init = self._store.learning().q_init
        new = Memory(
            id="",
            namespace=space,
            intent=DOCUMENT,
            lesson="",
            trajectory="",
            outcome="unknown",
            q_value=q_init,
            updates=0,
            selections=0,
            parents=(),
            derived_from=(),
            episode_id="",
            source=DOCUMENT,
            trust="trusted",
            created_at=now,
            updated_at=now,
        )
        return {
            id: replace(
                stored.get(id) or replace(new, id=id, episode_id=id),
                lesson=document.page_content,
            )
            for id, document in documents.items()
        }

    def _citable(self, entry: RewardEntry) -> RewardEntry:
        """A reward that cites nothing where its episode recorded nothing as shown.

        Documents come back from an episode that is held out too, and an answer may cite them.
        """
        if entry.ids is not None or not entry.cited:
            return entry
        known = self._store.episode(entry.namespace, entry.episode_id)
        return entry if known is None or known.memory_ids else replace(entry, cited=())

    recall_documents = blocking(_recall_documents)
    arecall_documents = awaitable(_recall_documents)


def _identify(
    space: str, documents: Sequence[Document], key: IdKey | None
) -> tuple[dict[str, str], dict[str, Document]]:
    """Keys and documents by memory id, each document once."""
    keys: dict[str, str] = {}
    found: dict[str, Document] = {}
    for document in documents:
        text = _key_of(document, key)
        id = document_memory_id(space, text)
        if id not in keys:
            keys[id], found[id] = text, document
    return keys, found


def _key_of(document: Document, key: IdKey | None) -> str:
    """What the bank knows a document by."""
    if key is None and not document.id:
        content = document.page_content.encode("utf-8", errors="surrogatepass")
        return f"sha256 {hashlib.sha256(content).hexdigest()}"
    name = document.id if key is None else _read(document, "id_key", key)
    whole = isinstance(name, int) and not isinstance(name, bool)
    return key_of_id(check_text("the id of a document", str(name) if whole else name))


def _pool(
    memories: Mapping[str, Memory], documents: Mapping[str, Document], key: ScoreKey | None
) -> Pool:
    """The documents that may be chosen, in their order."""
    ids = [id for id, memory in memories.items() if not memory.disabled]
    places = np.arange(len(ids))
    similarity = 1 - places / max(len(ids), 1)
    if key is not None:
        similarity = np.array([_score_of(documents[id], key) for id in ids], dtype=np.float64)
    known = [memories[id] for id in ids]
    return Pool(
        ids=tuple(ids),
        age=-places,  # of two that are equal otherwise, the first wins
        similarity=similarity,
        q_values=np.array([memory.q_value for memory in known], dtype=np.float64),
        updates=np.array([memory.updates for memory in known], dtype=np.int64),
        selections=np.array([memory.selections for memory in known], dtype=np.int64),
        similarity_max=float(similarity.max()) if ids else None,
        threshold=None,
        calibration=None,
    )


def _score_of(document: Document, key: ScoreKey) -> float:
    score = _read(document, "score_key", key)
    if isinstance(score, bool) or not isinstance(score, Real) or not math.isfinite(score):
        raise InputError(f"score_key gave {told(score)} for a document; expected a finite number")
    return float(score)


def _read(document: Document, name: str, key: str | Callable[[Document], object]) -> object:
    """What a key of the metadata, or a function, says of a document.

    Raises:
        InputError: The metadata lacks the key.
    """
    if not isinstance(key, str):
        return key(document)
    if document.metadata.get(key) is None:
        raise InputError(
            f"{name} is {key!r}, but a document has only {sorted(document.metadata)}; choose one "
            "of them that every document has, or give a function of the document"
        )
    return document.metadata[key]
