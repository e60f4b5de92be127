"""The rest of `EpisodicMemory`: looking, changing, deleting, checking."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_memrl.bank import Bank
from langchain_memrl.config import LearningConfig, TrustConfig
from langchain_memrl.errors import InputError
from langchain_memrl.inputs import (
    COUNT_LIMIT,
    check_count,
    check_metadata,
    check_name,
    check_text,
    told,
)
from langchain_memrl.reports import QChange, Stats, Verification
from langchain_memrl.types import Memory


class Operations(Bank):
    """Everything that needs no vector. It works without embeddings too."""

    # --- looking --------------------------------------------------------------------------------

    def get(self, id: str, *, namespace: str | None = None) -> Memory:
        """One memory.

        Raises:
            MemoryNotFoundError: It does not exist in this namespace.
        """
        return self._existing(self._space(namespace), [check_name("id", id)])[0]

    def list(
        self,
        *,
        limit: int | None = 100,
        filter: Mapping[str, Any] | None = None,
        raw: bool = False,
        namespace: str | None = None,
    ) -> list[Memory]:
        """Memories, newest first.

        Args:
            limit: How many at most; None for all.
            filter: As in `recall`.
            raw: Only those that wait for a lesson.
            namespace: This memory's own by default.
        """
        if limit is not None:
            check_count("limit", limit)
        return [*self._store.scan(self._space(namespace), filter, raw=raw, limit=limit)]

    def search_text(
        self, text: str, *, limit: int = 20, namespace: str | None = None
    ) -> Sequence[Memory]:
        """Memories whose intent, lesson or trajectory contains a text, newest first."""
        count = check_count("limit", limit)
        return self._store.search_text(self._space(namespace), check_text("text", text), count)

    def history(self, id: str, *, namespace: str | None = None) -> Sequence[QChange]:
        """Every step of a memory's Q, oldest first.

        Raises:
            MemoryNotFoundError: It does not exist in this namespace.
        """
        memory = self.get(id, namespace=namespace)
        return self._store.history(memory.namespace, memory.id)

    def stats(self, *, namespace: str | None = None) -> Stats:
        """Counts, Q distribution, and what was never shown or never rewarded."""
        return self._store.stats(self._space(namespace))

    def namespaces(self) -> tuple[str, ...]:
        """Every namespace that holds something, sorted; a view knows only its own."""
        return (self.namespace,) if self._is_view else self._store.namespaces()

    # --- changing -------------------------------------------------------------------------------

    def update(
        self,
        id: str,
        *,
        lesson: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        namespace: str | None = None,
    ) -> Memory:
        """Change a memory's lesson or metadata. Its Q and its history stay.

        Raises:
            InputError: Nothing to change, or an unusable text or metadata.
            MemoryNotFoundError: It does not exist in this namespace.
        """
        changes: dict[str, Any] = {}
        if lesson is not None:
            changes["lesson"] = check_text("lesson", self.redactor.text("lesson", lesson))
        if metadata is not None:
            changes["metadata"] = check_metadata(self.redactor.metadata(metadata))
        if not changes:
            raise InputError("update got nothing to change; expected lesson=... or metadata=...")
        space = self._space(namespace)
        self._store.update(space, check_name("id", id), changes)
        return self.get(id, namespace=namespace)

    def forget(
        self,
        *,
        ids: Sequence[str] | None = None,
        episode_id: str | None = None,
        all: bool = False,
        derived: bool = False,
        dry_run: bool = False,
        namespace: str | None = None,
    ) -> tuple[str, ...]:
        """Delete memories for good: by ids, by the episode that wrote them, or a whole namespace.

        Args:
            ids: Memories to delete.
            episode_id: Delete what this episode wrote.
            all: Delete everything of the namespace, its episodes and rewards too.
            derived: Also delete memories whose text was made from these.
            dry_run: Only tell what would be deleted.
            namespace: This memory's own by default.

        Returns:
            The ids deleted (or that would be).

        Raises:
            InputError: Not exactly one of `ids`, `episode_id` and `all` was given.
            MemoryNotFoundError: One of `ids` does not exist here; nothing was deleted.
            EpisodeError: The episode is unknown here.
        """
        chosen = [ids is not None, episode_id is not None, bool(all)]
        if sum(chosen) != 1:
            raise InputError("forget needs exactly one of ids=[...], episode_id=... and all=True")
        space = self._space(namespace)
        if all:
            found = tuple(memory.id for memory in self._store.scan(space, None, limit=None))
            if not dry_run:
                self._store.clear(space)
            return found
        if episode_id is not None:
            written = self._known_episode(space, episode_id).memory_id
            found = tuple(self._store.memories(space, [written] if written else []))
        else:
            wanted = self._unique_ids(ids or ())
            found = tuple(memory.id for memory in self._existing(space, wanted))
        if derived:
            found = self._store.family(space, found)
        if not dry_run:
            self._store.forget(space, found)
        return found

    def disable(self, id: str, *, namespace: str | None = None) -> None:
        """Keep a memory, with its Q and history, but recall it no more; `enable` undoes it.

        Raises:
            MemoryNotFoundError: It does not exist in this namespace.
        """
        self._mark(id, "disabled", True, namespace)

    def enable(self, id: str, *, namespace: str | None = None) -> None:
        """Let a disabled memory be recalled again."""
        self._mark(id, "disabled", False, namespace)

    def pin(self, id: str, *, namespace: str | None = None) -> None:
        """Protect a memory from `prune`; `unpin` undoes it.

        Raises:
            MemoryNotFoundError: It does not exist in this namespace.
        """
        self._mark(id, "pinned", True, namespace)

    def unpin(self, id: str, *, namespace: str | None = None) -> None:
        """Let a pinned memory be pruned again."""
        self._mark(id, "pinned", False, namespace)

    def release(self, id: str, *, namespace: str | None = None) -> None:
        """Take a memory out of quarantine because you have read it; it stays trusted.

        Raises:
            MemoryNotFoundError: It does not exist in this namespace.
        """
        self._store.release(self._space(namespace), check_name("id", id))

    def _mark(self, id: str, name: str, value: bool, namespace: str | None) -> None:
        self._store.mark(self._space(namespace), check_name("id", id), name, value)

    def prune(
        self,
        *,
        max_q: float,
        min_updates: int,
        dry_run: bool = False,
        namespace: str | None = None,
    ) -> tuple[str, ...]:
        """Forget memories that have proved useless: `Q <= max_q` after `min_updates` rewards.

        Args:
            max_q: Highest Q to forget.
            min_updates: Fewest rewards behind it; at least 1, so that nothing untried goes.
            dry_run: Only tell what would be forgotten.
            namespace: This memory's own by default.

        Returns:
            The ids forgotten (or that would be); pinned memories are never among them.
        """
        usable = isinstance(max_q, int | float) and not isinstance(max_q, bool)
        if not usable or not abs(max_q) < COUNT_LIMIT:
            raise InputError(f"max_q is {told(max_q)}; expected a finite number")
        if check_count("min_updates", min_updates) < 1:
            raise InputError("min_updates is 0; expected at least 1")
        space = self._space(namespace)
        found = self._store.useless(space, float(max_q), min_updates)
        if not dry_run:
            self._store.forget(space, found)
        return found

    @staticmethod
    def _unique_ids(ids: Sequence[str]) -> Sequence[str]:
        if isinstance(ids, str):
            raise InputError("ids is one str; expected a list of memory ids")
        return tuple(dict.fromkeys(check_name("id", id) for id in ids))

    def configure(self, **changes: Any) -> LearningConfig:
        """Change saved settings, for example `step_size=0.2`; later rewards use them.

        Those of `LearningConfig` and of `TrustConfig`; what is in the bank stays as trusted as it
        is.

        Raises:
            ConfigError: An unknown setting, a value out of range, or a reward range that leaves
                the Q of a memory outside.
        """
        return self._whole().configure(changes)

    @property
    def learning(self) -> LearningConfig:
        """The saved learning settings."""
        return self._store.learning()

    @property
    def trust(self) -> TrustConfig:
        """The saved rules of trust."""
        return self._store.trust()

    # --- checking -------------------------------------------------------------------------------

    def verify(self) -> Verification:
        """Check that files, index, counters and Q agree: Q is replayed from its history."""
        return self._whole().verify()

    def rebuild_index(self) -> None:
        """Make anew what follows from the rows: vector index and counters. Answers stay."""
        self._whole().rebuild_index()
