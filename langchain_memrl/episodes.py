"""Around the three verbs: what reached a prompt, what waits for its reward, what is known."""

from collections.abc import Sequence

from langchain_memrl.copies import Copies
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
        yield from ()
        self._space(recall.namespace)
        return self._store.record([as_record(recall, ids)])[0].memory_ids

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
    hold = blocking(_hold)
    episode = blocking(_episode)

    arecord = awaitable(_record)
    ahold = awaitable(_hold)
    aepisode = awaitable(_episode)
