"""Around the three verbs: what reached a prompt, what waits for its reward, what is known."""

from collections.abc import Sequence
from datetime import timedelta

from langchain_memrl.errors import InputError
from langchain_memrl.inputs import check_count, check_name, check_text, told
from langchain_memrl.pools import Pools
from langchain_memrl.ranking import as_record
from langchain_memrl.requests import check_reward, check_writer, new_id
from langchain_memrl.steps import Steps, awaitable, blocking
from langchain_memrl.store.base import HeldAnswer
from langchain_memrl.types import Episode, Recall

LONGEST_WAIT = timedelta(days=365_000)


class Episodes(Pools):
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
        self,
        episode_id: str,
        *,
        intent: str,
        trajectory: str,
        writer: str = "",
        namespace: str | None = None,
    ) -> Steps[None]:
        """Keep what an episode did until its reward comes; `reinforce` then writes it, raw.

        Args:
            episode_id: The episode.
            intent: Its task text.
            trajectory: What was done, verbatim.
            writer: On whose behalf; see `remember`.
            namespace: This memory's own by default.

        Raises:
            WriteConflictError: The episode already holds another answer.
        """
        space = self._space(namespace)
        texts = self.redactor.draft({"intent": intent, "trajectory": trajectory})
        answer = HeldAnswer(
            namespace=space,
            episode_id=check_name("episode_id", episode_id),
            intent=check_text("intent", texts["intent"]),
            trajectory=check_text("trajectory", texts["trajectory"]),
            raw_id=new_id(),
            writer=check_writer(writer),
        )
        vectors, model = yield from self._vectors(space, [answer.intent])
        self._store.hold(answer, vectors[0], model)

    def _episode(self, episode_id: str, *, namespace: str | None = None) -> Steps[Episode]:
        """One episode: what it showed, its reward, what it wrote.

        Raises:
            EpisodeError: It is unknown in this namespace.
        """
        yield from ()
        return self._known_episode(self._space(namespace), episode_id)

    def _open_episodes(
        self,
        *,
        older_than: timedelta | None = None,
        limit: int | None = 100,
        namespace: str | None = None,
    ) -> Steps[list[Episode]]:
        """Episodes that recalled something or hold an answer, and have no reward yet.

        Args:
            older_than: Only those first seen longer ago than this.
            limit: How many at most, oldest first; None for all.
            namespace: This memory's own by default.
        """
        yield from ()
        seconds = None if older_than is None else _seconds(older_than)
        count = None if limit is None else check_count("limit", limit)
        return self._store.open_episodes(self._space(namespace), seconds, count)

    def _expire_episodes(
        self,
        *,
        older_than: timedelta,
        reward: float | None = None,
        namespace: str | None = None,
    ) -> Steps[list[Episode]]:
        """Close episodes that waited too long for a reward.

        Without a reward nothing is learned from them and the answers they hold are dropped; a
        reward that still comes later moves Q all the same.

        Args:
            older_than: How long ago they were first seen, at least.
            reward: What no signal means, for example -1.0; None: nothing.
            namespace: This memory's own by default.

        Returns:
            The episodes that were closed, as they were before.
        """
        yield from ()
        space, learning = self._space(namespace), self._store.learning()
        check = None if reward is None else learning.reward(reward)
        return self._store.expire(
            space,
            _seconds(older_than),
            lambda id: check_reward(space, learning, id, reward=check),
        )

    record = blocking(_record)
    record_many = blocking(_record_many)
    hold = blocking(_hold)
    episode = blocking(_episode)
    open_episodes = blocking(_open_episodes)
    expire_episodes = blocking(_expire_episodes)

    arecord = awaitable(_record)
    arecord_many = awaitable(_record_many)
    ahold = awaitable(_hold)
    aepisode = awaitable(_episode)
    aopen_episodes = awaitable(_open_episodes)
    aexpire_episodes = awaitable(_expire_episodes)


def _seconds(time: timedelta) -> float:
    if not isinstance(time, timedelta) or not timedelta(0) <= time <= LONGEST_WAIT:
        raise InputError(
            f"older_than is {told(time)}; expected a timedelta of at least 0, at most "
            f"{LONGEST_WAIT.days} days"
        )
    return time.total_seconds()
