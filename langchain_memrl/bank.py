"""What every call of `EpisodicMemory` stands on: an open store, an embedder, a namespace."""

import copy
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import numpy as np
from langchain_core.embeddings import Embeddings

from langchain_memrl.config import LearningConfig, RecallConfig
from langchain_memrl.core.probes import PROBES
from langchain_memrl.embedding import Embedder, ModelCheck
from langchain_memrl.errors import (
    ConfigError,
    EpisodeError,
    InputError,
    MemoryNotFoundError,
    MemRLError,
    StoreError,
)
from langchain_memrl.inputs import check_name, is_blank
from langchain_memrl.notices import Brake, Notices
from langchain_memrl.requests import Task, check_texts
from langchain_memrl.steps import Steps
from langchain_memrl.store.base import (
    Fingerprint,
    Pool,
    PoolQuery,
    RecallRecord,
    Vector,
)
from langchain_memrl.store.contract import MemoryStore
from langchain_memrl.store.filters import compile_filter
from langchain_memrl.store.local import LocalStore
from langchain_memrl.types import Episode, Memory

DEFAULT_NAMESPACE = "default"
THREADS = 8


class Bank:
    """An open memory bank. Use `EpisodicMemory.open`."""

    def __init__(
        self,
        store: MemoryStore,
        embeddings: Embeddings | None,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        seed: int | None = None,
    ) -> None:
        self.namespace = check_name("namespace", namespace)
        """Where calls look that name no namespace."""
        self.embedder = Embedder(embeddings)
        self._closing = threading.Event()
        self._threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="memrl")
        self.fence_key = store.secret()
        """The bank's own random key; prompt fences are made from it."""
        self._store = store
        self._model = ModelCheck(store)
        self._notices = Notices()
        self._brake = Brake()
        self._rng = np.random.default_rng(seed)
        self._is_view = False

    @classmethod
    def open(
        cls,
        location: str | Path,
        *,
        embeddings: Embeddings | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        learning: LearningConfig | None = None,
        create: bool = True,
        read_only: bool = False,
        seed: int | None = None,
        exact: bool = False,
    ) -> Self:
        """Open a memory bank, or make one.

        Args:
            location: A folder, or `":memory:"` for a bank that ends with the object.
            embeddings: Any LangChain embeddings. Without them everything works that needs no
                vector. They are not called here.
            namespace: Where calls look that name no namespace.
            learning: How Q moves, saved with a new bank; None takes the saved settings.
            create: Whether a missing bank is made.
            read_only: Open without writing: recall works, learning raises.
            seed: Makes exploration repeatable, and the prompt fences of an in-memory bank.
            exact: Search large namespaces exactly too. By default a recall without a filter, from
                38 million numbers on (100,000 intents of 384, 25,000 of 1536), compares short
                codes first, which are made in the background. Similarities stay exact; of the ten
                nearest intents up to 2 in 100 were missed, measured up to a million intents.

        Raises:
            StoreNotFoundError: There is no bank and `create` is False.
            StoreVersionError: The bank was written by a newer version, or by an older one and
                `read_only` is given.
            StoreCorruptError: The database is damaged, or gone although a bank was made here. One
                that was changed since it was closed opens, but only `verify` works.
            ConfigError: `learning` differs from the saved settings.
        """
        if isinstance(location, str) and is_blank(location):
            raise ConfigError('location is blank; expected a folder or ":memory:"')
        if "://" in str(location):
            kind = str(location).split("://", 1)[0]
            raise ConfigError(f'location starts with {kind}://; expected a folder or ":memory:"')
        name = check_name("namespace", namespace)
        store = LocalStore(
            location,
            learning=learning,
            create=create,
            read_only=read_only,
            seed=seed,
            exact=exact,
        )
        try:
            saved = store.learning()
            if learning is not None and saved != learning:
                raise ConfigError(
                    f"the bank was made with {saved}, now came {learning}; "
                    "leave learning out, or change the saved settings with configure()"
                )
            return cls(store, embeddings, namespace=name, seed=seed)
        except MemRLError:
            store.close()
            raise

    @property
    def threads(self) -> Executor:
        """The bank's own threads; awaitable calls run in them, so that they too share commits.

        Raises:
            StoreError: The bank is closed, or was opened before a fork.
        """
        self._store.check_open()
        if self._closing.is_set():
            raise StoreError("the memory bank is being closed; open it again")
        return self._threads

    def in_namespace(self, namespace: str) -> Self:
        """The same bank, bound to one namespace: another one is an error on every call."""
        view = copy.copy(self)
        view.namespace = check_name("namespace", namespace)
        view._is_view = True
        return view

    def close(self) -> None:
        """Finish what was handed over and close the bank. Idempotent; a view closes nothing."""
        if not self._is_view:
            self._closing.set()
            self._threads.shutdown(wait=True)
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # an open bank is shared, never copied

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}(namespace={self.namespace!r}, embeddings={self.embedder.name!r})"

    # --- what the verbs share -------------------------------------------------------------------

    def _space(self, namespace: str | None) -> str:
        """The namespace a call means."""
        if namespace is None or namespace == self.namespace:
            return self.namespace
        if self._is_view:
            raise InputError(
                f"this memory is bound to namespace {self.namespace!r}, got {namespace!r}; "
                "use the memory it was made from"
            )
        return check_name("namespace", namespace)

    def _whole(self) -> MemoryStore:
        """The store, for what concerns the whole bank.

        Raises:
            InputError: This is a view of one namespace.
        """
        if self._is_view:
            raise InputError(
                f"this memory is bound to namespace {self.namespace!r} and this call concerns the "
                "whole bank; use the memory it was made from"
            )
        return self._store

    def _recorded(self, space: str, task: Task) -> RecallRecord | None:
        """What an episode already recorded for its task."""
        if task.episode_id is None:
            return None
        return self._store.recorded(space, task.episode_id, task.intent)

    def _pools(
        self,
        space: str,
        tasks: Sequence[Task],
        settings: RecallConfig,
        filter: Mapping[str, Any] | None,
        exclude_intents: Sequence[str],
    ) -> Steps[list[Pool | None]]:
        """Phase A for each task; None for a blank task and in an empty namespace."""
        compile_filter(filter)  # a bad filter is an error even where nothing is searched
        excluded = check_texts("exclude_intents", exclude_intents)
        searched = [task for task in tasks if not is_blank(task.intent)]
        texts = [task.intent for task in searched]
        known = self._store.intent_vectors(space, texts)
        if not searched or (not known and self._store.is_empty(space)):
            return [None] * len(tasks)
        model = yield from self._check_model()
        vectors = yield from self._complete(known, texts)
        pools = self._store.pools(
            [
                PoolQuery(
                    namespace=space,
                    vector=vector,
                    fetch_k=settings.fetch_k,
                    score_threshold=settings.score_threshold,
                    filter=filter,
                    exclude_intents=excluded,
                )
                for vector in vectors
            ],
            model,
        )
        found = iter(pools)
        return [None if is_blank(task.intent) else next(found) for task in tasks]

    def _vectors(self, space: str, texts: Sequence[str]) -> Steps[tuple[list[Vector], Fingerprint]]:
        """Unit vectors and the model that made them; texts that are intents cost nothing."""
        model = yield from self._check_model()
        known = self._store.intent_vectors(space, texts)
        return (yield from self._complete(known, texts)), model

    def _check_model(self) -> Steps[Fingerprint]:
        """Compare the embedding model with the bank's, once; the model that vectors are of now.

        The store is told which one it was, because `reembed` may exchange it meanwhile.
        """
        if self._model.model is None:
            probes = yield list(PROBES)
            with self.embedder.checked(PROBES):
                self._model.compare(self.embedder.name, probes)
        return self._model.confirm()

    def _complete(self, known: dict[str, Vector], texts: Sequence[str]) -> Steps[list[Vector]]:
        """The vectors of all texts; those not known are embedded."""
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            vectors = yield new
            with self.embedder.checked(new):
                self._model.check_dimension(self.embedder.name, vectors)
            known |= zip(new, vectors, strict=True)
        return [known[text] for text in texts]

    def _known_episode(self, space: str, episode_id: str) -> Episode:
        """One episode.

        Raises:
            EpisodeError: It is unknown in this namespace.
        """
        found = self._store.episode(space, check_name("episode_id", episode_id))
        if found is None:
            raise EpisodeError(f"episode {episode_id!r} is unknown in namespace {space!r}")
        return found

    def _existing(self, space: str, ids: Sequence[str]) -> list[Memory]:
        """The memories of these ids, in order.

        Raises:
            MemoryNotFoundError: One of them does not exist in this namespace.
        """
        found = self._store.memories(space, ids)
        missing = [id for id in ids if id not in found]
        if missing:
            names = ", ".join(map(repr, missing))
            raise MemoryNotFoundError(f"there is no memory {names} in namespace {space!r}")
        return [found[id] for id in ids]
