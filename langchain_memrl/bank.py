"""What every call of `EpisodicMemory` stands on: an open store, an embedder, a namespace."""

import copy
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import numpy as np
from langchain_core.embeddings import Embeddings

from langchain_memrl.config import LearningConfig, TrustConfig
from langchain_memrl.embedding import Embedder, ModelCheck
from langchain_memrl.errors import (
    ConfigError,
    EpisodeError,
    InputError,
    MemoryNotFoundError,
    MemRLError,
    StoreError,
)
from langchain_memrl.inputs import check_name
from langchain_memrl.notices import Brake, Notices
from langchain_memrl.redaction import Redact, Redactor
from langchain_memrl.requests import Task, check_memory, check_tasks
from langchain_memrl.store.base import NewMemory
from langchain_memrl.store.contract import MemoryStore
from langchain_memrl.store.places import open_store
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
        redact: Redact | None = None,
    ) -> None:
        self.namespace = check_name("namespace", namespace)
        """Where calls look that name no namespace."""
        self.embedder = Embedder(embeddings)
        self.redactor = Redactor(redact)
        """What every text goes through before it is embedded, summarised or stored."""
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
        self._closes = True

    @classmethod
    def open(
        cls,
        location: str | Path,
        *,
        embeddings: Embeddings | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        learning: LearningConfig | None = None,
        trust: TrustConfig | None = None,
        create: bool = True,
        read_only: bool = False,
        seed: int | None = None,
        exact: bool = False,
        redact: Redact | None = None,
    ) -> Self:
        """Open a memory bank, or make one.

        Args:
            location: A folder; `":memory:"` for a bank that ends with the object; or
                `postgresql://user:password@host/database` for one that many machines share (extra
                `postgres`; `?schema=` names the schema that holds it, `memrl` by default).
            embeddings: Any LangChain embeddings. Without them everything works that needs no
                vector. They are not called here.
            namespace: Where calls look that name no namespace.
            learning: How Q moves, saved with a new bank; None takes the saved settings.
            trust: Whose memories start in quarantine, saved in the same way.
            create: Whether a missing bank is made.
            read_only: Open without writing: recall works, learning raises.
            seed: Makes exploration repeatable, and the prompt fences of an in-memory bank.
            exact: Search large namespaces exactly too. By default a recall without a filter, from
                38 million numbers on (100,000 intents of 384, 25,000 of 1536), compares short
                codes first, which are made in the background. Similarities stay exact; of the ten
                nearest intents up to 2 in 100 were missed, measured up to a million intents. On
                PostgreSQL a namespace of 8 million numbers or more is searched along a graph, with
                a filter too; up to 100,000 intents at most 1 in 100 was missed.
            redact: Takes a text and returns it without secrets. Whatever is embedded, summarised or
                stored from now on went through it once: intents, lessons, trajectories, metadata
                (keys too), held answers. The same text has to give the same result. Its own errors
                surface and nothing is stored. Names and ids are not texts.

        Raises:
            StoreNotFoundError: There is no bank and `create` is False.
            StoreVersionError: The bank was written by a newer version, or by an older one and
                `read_only` is given.
            StoreCorruptError: The database is damaged, or gone although a bank was made here. One
                that was changed since it was closed opens, but only `verify` works.
            StoreBusyError: The server cannot be reached.
            ConfigError: `learning` or `trust` differs from the saved settings, `redact` cannot be
                called, or the location is unusable.
        """
        name = check_name("namespace", namespace)
        Redactor(redact)
        store = open_store(
            location,
            learning=learning,
            trust=trust,
            create=create,
            read_only=read_only,
            seed=seed,
            exact=exact,
        )
        try:
            _check_saved("learning", learning, store.learning)
            _check_saved("trust", trust, store.trust)
            return cls(store, embeddings, namespace=name, seed=seed, redact=redact)
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
        view._is_view, view._closes = True, False
        return view

    def already_redacted(self) -> Self:
        """The same bank for texts that went through its `redact` already: it is not applied again.

        For a loop of your own that redacts before it summarises. The intent of a `Recall` is
        redacted. Close the bank itself, not this view of it.
        """
        if not self.redactor.is_given:
            return self
        view = copy.copy(self)
        view.redactor = Redactor()
        view._closes = False
        return view

    def close(self) -> None:
        """Finish what was handed over and close the bank. Idempotent; a view closes nothing."""
        if self._closes:
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

    def _tasks(
        self, intents: Sequence[str], episode_ids: Sequence[str | None] | None
    ) -> list[Task]:
        """Checked and redacted tasks."""
        return check_tasks(self.redactor.texts("intent", intents), episode_ids)

    def _drafts(self, space: str, memories: Sequence[Mapping[str, Any]]) -> list[NewMemory]:
        """Checked and redacted memories to write."""
        return [check_memory(space, **self.redactor.draft(memory)) for memory in memories]

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


def _check_saved(name: str, given: object, saved: Callable[[], object]) -> None:
    """Refuse settings that are given but are not those of the bank.

    Raises:
        ConfigError: They differ.
    """
    stands = saved()
    if given is not None and stands != given:
        raise ConfigError(
            f"the bank was made with {stands}, now came {given}; leave {name} out, or change the "
            "saved settings with configure()"
        )
