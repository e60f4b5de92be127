"""Around the three verbs: what reached a prompt, what waits for its reward, what is known."""

from collections.abc import Sequence

from langchain_memrl.copies import Copies
from langchain_memrl.errors import InputError
from langchain_memrl.inputs import check_name, check_text
from langchain_memrl.ranking import as_record
from langchain_memrl.requests import new_id
from langchain_memrl.steps import Steps, awaitable, blocking
from langchain_memrl.store.base import HeldAnswer
from langchain_memrl.types import Episode, Recall


class Episodes(Copies):
    """One task from recall to reward, step by step, for loops that render their own prompt."""

    def _record(self, recall: Recall, ids: Sequence[str] | None = None) -> Steps[tuple[str, ...]]:
        """Record what reached the prompt of a recall made with `record=False`.

        Args:
            recall: The recall; it belongs to an episode.
            ids: Those of its memories that reached the prompt; all by default.

        Returns:
            The ids that stand: what the episode recorded first for this intent wins.

        Raises:
            InputError: The recall has no episode id, did not choose one of the ids, or comes from
                another namespace than a view is bound to.
        """
        return (yield from self._record_many([recall], [ids]))[0]

    def _record_many(
        self, recalls: Sequence[Recall], ids: Sequence[Sequence[str] | None] | None = None
    ) -> Steps[list[tuple[str, ...]]]:
        """Record what reached the prompts of several recalls, in one transaction: all or none.

        Args:
            recalls: The recalls.
            ids: For each, those of its memories that reached the prompt; None for all.

        Returns:
            The ids that stand, per recall.

        Raises:
            InputError: As `record`, or another number of `ids` than of recalls.
        """
        yield from ()
        given = [None] * len(recalls) if ids is None else list(ids)
        if len(given) != len(recalls):
            raise InputError(f"got {len(given)} lists of ids for {len(recalls)} recalls")
        for recall in recalls:
            self._space(recall.namespace)
        entries = [as_record(*pair) for pair in zip(recalls, given, strict=True)]
        return [stands.memory_ids for stands in self._store.record(entries)]

    def _hold(
        self, episode_id: str, *, intent: str, trajectory: str, namespace: str | None = None
    ) -> Steps[None]:
        """Keep what an episode did until its reward comes; `reinforce` then writes it, raw.

        Args:
            episode_id: The episode.
            intent: Its task text.
            trajectory: What was done, verbatim.
            namespace: This memory's own by default.

        Raises:
            WriteConflictError: The episode already holds another answer.
        """
        space = self._space(namespace)
        answer = HeldAnswer(
            namespace=space,
            episode_id=check_name("episode_id", episode_id),
            intent=check_text("intent", intent),
            trajectory=check_text("trajectory", trajectory),
            raw_id=new_id(),
        )
        vectors, model = yield from self._vectors(space, [intent])
        self._store.hold(answer, vectors[0], model)

    def _episode(self, episode_id: str, *, namespace: str | None = None) -> Steps[Episode]:
        """One episode: what it showed, its reward, what it wrote.

        Raises:
            EpisodeError: It is unknown in this namespace.
        """
        yield from ()
        return self._known_episode(self._space(namespace), episode_id)

    record = blocking(_record)
    record_many = blocking(_record_many)
    hold = blocking(_hold)
    episode = blocking(_episode)

    arecord = awaitable(_record)
    arecord_many = awaitable(_record_many)
    ahold = awaitable(_hold)
    aepisode = awaitable(_episode)
