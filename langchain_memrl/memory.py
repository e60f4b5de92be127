"""MemRL on one page: recall, reinforce, remember (arXiv 2601.03192).

A memory is (intent, experience, Q). `recall` takes the memories whose intents are similar to the
task and prefers those with a high Q. `reinforce` moves the Q of every memory that was shown toward
the reward. `remember` adds what the episode taught. The language model never changes.

Each verb is written once, as steps (see `steps.py`), and offered blocking and awaitable.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_memrl.config import RecallConfig
from langchain_memrl.documents import Documents
from langchain_memrl.requests import check_reward
from langchain_memrl.steps import Steps, awaitable, blocking
from langchain_memrl.types import Memory, Normalization, Outcome, Recall, Reinforcement


class EpisodicMemory(Documents):
    """Episodic memory that learns which of its memories help.

    Setup:
        ```python
        from langchain_memrl import EpisodicMemory

        memory = EpisodicMemory.open("./memories", embeddings=my_embeddings)
        ```

    Usage:
        ```python
        memory.remember("reset a router", "Hold the button for 10 s", outcome="success")
        recall = memory.recall("router will not reset", episode_id="job-1")
        memory.reinforce("job-1", reward=1.0)
        ```

    Threads may share one object. Every verb has an async form: `arecall`, `areinforce`, ...
    """

    # --- recall: what is similar, then what has proved useful -----------------------------------

    def _recall(
        self,
        intent: str,
        *,
        k: int = 5,
        fetch_k: int = 10,
        score_threshold: float | Literal["auto"] | None = "auto",
        q_weight: float = 0.5,
        normalization: Normalization = "zscore",
        epsilon: float = 0.0,
        holdout: float = 0.0,
        stop_when_harmful: bool = False,
        distinct: bool = True,
        max_per_source: int | None = None,
        untrusted: bool = False,
        namespace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        exclude_intents: Sequence[str] = (),
        episode_id: str | None = None,
        record: bool = True,
    ) -> Steps[Recall]:
        """Choose the memories that should help with a task.

        The intents with `cosine >= score_threshold` pass, the `fetch_k` nearest of them open
        their memories as the pool, and the `k` best of the pool by
        `score = (1 - q_weight) * similarity_part + q_weight * q_part` are returned
        (arXiv 2601.03192, Phases A and B). `q_weight=0` is a plain similarity search. An empty
        answer means that nothing was similar enough.

        With an episode id the answer is recorded, so that `reinforce` knows what to reward: the
        same intent again in this episode returns it. Without one nothing is written.

        Args:
            intent: The task text. A blank one recalls nothing.
            k: How many memories to return.
            fetch_k: How many of the most similar intents form the pool.
            score_threshold: Smallest cosine, `"auto"` (the bank's own calibration), or None.
            q_weight: Weight of Q, in [0, 1].
            normalization: `"zscore"`, `"pool"` or `"none"`; see `core/scoring.py`.
            epsilon: Chance that the whole choice is random, in [0, 1].
            holdout: Share of the episodes, drawn at random, in which nothing is shown; see `lift`.
            stop_when_harmful: Show nothing any more once memories have been found to harm.
            distinct: Prefer lessons that differ; near-identical ones only fill up.
            max_per_source: How many of the k may have the same `source`, at most.
            untrusted: Whether memories in quarantine may be chosen too.
            namespace: Where to look; this memory's own by default.
            filter: Which memories may be chosen, for example `{"outcome": "success"}`.
            exclude_intents: Intent texts that may not be recalled.
            episode_id: The episode this recall belongs to.
            record: False leaves recording to a later call of `record`.

        Returns:
            The memories, best first, and how they were chosen.

        Raises:
            ConfigError: A setting is out of range.
            InputError: An unusable text, namespace or filter.
            EmbeddingError: The embedder is missing or returned unusable vectors.
            EmbeddingMismatchError: The bank was built with another embedding model.
            EpisodeError: The episode was already rewarded and this is another task.
        """
        settings = RecallConfig(
            *(k, fetch_k, score_threshold, q_weight, normalization, epsilon, holdout),
            *(stop_when_harmful, distinct, max_per_source, untrusted),
        )
        space, tasks = self._space(namespace), self._tasks([intent], [episode_id])
        recalls = yield from self._choose(
            space, tasks, settings, filter, exclude_intents, record=record
        )
        return recalls[0]

    def _recall_many(
        self,
        intents: Sequence[str],
        /,
        *,
        episode_ids: Sequence[str | None] | None = None,
        namespace: str | None = None,
        filter: Mapping[str, Any] | None = None,
        exclude_intents: Sequence[str] = (),
        record: bool = True,
        **settings: Any,
    ) -> Steps[list[Recall]]:
        """Recall for several tasks, all with the same Q.

        Args:
            intents: The task texts.
            episode_ids: One episode id or None per task.
            namespace: See `recall`, like the rest.
            filter: Which memories may be chosen.
            exclude_intents: Intent texts that no task may recall.
            record: False leaves recording to later calls of `record`.
            **settings: `k` to `untrusted`, as in `recall`.

        Returns:
            One recall per task, in order.
        """
        space, tasks = self._space(namespace), self._tasks(intents, episode_ids)
        return (
            yield from self._choose(
                space, tasks, RecallConfig(**settings), filter, exclude_intents, record=record
            )
        )

    # --- reinforce: move Q of what was shown toward the reward, once ----------------------------

    def _reinforce(
        self,
        episode_id: str | None = None,
        *,
        reward: float | None,
        ids: Sequence[str] | None = None,
        cited: Sequence[str] | None = None,
        revise: bool = False,
        early: bool = False,
        namespace: str | None = None,
    ) -> Steps[Reinforcement]:
        """Reward an episode: `Q <- Q + step_size * (reward - Q)` for every memory it showed.

        The first call counts. The same call again changes nothing and returns the first result
        with `applied=False`. If the episode holds an answer, it is written as a memory. It may
        come hours later and from another process.

        Args:
            episode_id: The episode.
            reward: A finite number in the bank's `reward_range`; None, no signal yet, does nothing.
            ids: The memories that were shown, where no recall recorded them.
            cited: Those of them that the answer used, by memory or document id; None for all. Where
                none was recorded, as in an episode that was held out, they count for nothing.
            revise: Put this reward in the place of the one that stands: Q moves as if it had been
                given then, and the outcome of the memory that the episode wrote follows.
            early: Let the reward wait where the episode is not known yet, instead of an error; with
                `cited` it cannot.
            namespace: This memory's own by default.

        Returns:
            What moved.

        Raises:
            RewardError, RewardTypeError: The reward is unusable; nothing changed.
            RewardConflictError: The episode already has another reward and this is no revision,
                it was for other `cited`, or Q was moved by another rule since.
            EpisodeError: It is unknown, recorded other memories than `ids`, did not show `cited`.
            MemoryNotFoundError: One of `ids` does not exist here; nothing changed.
        """
        entry = {"episode_id": episode_id, "reward": reward, "ids": ids, "cited": cited}
        entry |= {"revise": revise, "early": early}
        results = yield from self._reinforce_many([entry], namespace=namespace)
        return results[0]

    def _reinforce_many(
        self, rewards: Sequence[Mapping[str, Any]], *, namespace: str | None = None
    ) -> Steps[list[Reinforcement]]:
        """Reward several episodes in this order, in one transaction: all or none.

        Args:
            rewards: One mapping per episode with the arguments of `reinforce`.
            namespace: This memory's own by default.

        Returns:
            One result per episode, in order.
        """
        yield from ()
        space, learning = self._space(namespace), self._store.learning()
        entries = [self._citable(check_reward(space, learning, **reward)) for reward in rewards]
        results = self._store.reinforce(entries)
        self._notices.rewarded([result.reward for result in results if result.applied], learning)
        return results

    # --- remember: add what was learned, with its parents ---------------------------------------

    def _remember(
        self,
        intent: str,
        lesson: str | None,
        *,
        trajectory: str = "",
        outcome: Outcome = "unknown",
        episode_id: str | None = None,
        parents: Sequence[str] = (),
        derived_from: Sequence[str] = (),
        source: str = "agent",
        writer: str = "",
        trusted: bool | None = None,
        metadata: Mapping[str, Any] | None = None,
        namespace: str | None = None,
    ) -> Steps[Memory]:
        """Write one memory with `Q = q_init`; an episode writes at most one.

        The same call again for one episode returns the first memory. Without an episode id every
        call writes.

        Args:
            intent: The task text; the only text that is embedded.
            lesson: What was learned; None keeps the trajectory raw, to be summarised later.
            trajectory: What was done, verbatim.
            outcome: `"success"`, `"failure"` or `"unknown"`.
            episode_id: The episode that writes it.
            parents: Memories that were shown; by default what the episode recorded.
            derived_from: Memories whose text it was made from; `forget(derived=True)` follows them.
            source: What kind of writer writes it.
            writer: On whose behalf, for example a user's id.
            trusted: Whether it may be recalled at once; None leaves it to the bank (`TrustConfig`).
            metadata: The caller's own JSON values.
            namespace: This memory's own by default.

        Returns:
            The memory that stands.

        Raises:
            InputError: A blank or oversized text, an unusable outcome, name or metadata.
            EmbeddingError: The embedder is missing or returned unusable vectors.
            EmbeddingMismatchError: The bank was built with another embedding model.
            WriteConflictError: The episode already wrote another memory.
        """
        draft: dict[str, Any] = {"intent": intent, "lesson": lesson, "trajectory": trajectory}
        draft |= {"outcome": outcome}
        draft |= {"episode_id": episode_id, "parents": parents, "derived_from": derived_from}
        draft |= {"source": source, "writer": writer, "trusted": trusted, "metadata": metadata}
        memories = yield from self._remember_many([draft], namespace=namespace)
        return memories[0]

    def _remember_many(
        self, memories: Sequence[Mapping[str, Any]], *, namespace: str | None = None
    ) -> Steps[list[Memory]]:
        """Write several memories in one transaction: all or none.

        Args:
            memories: One mapping per memory with the arguments of `remember`.
            namespace: This memory's own by default.

        Returns:
            The memories that stand, in order.
        """
        space = self._space(namespace)
        drafts = self._drafts(space, memories)
        vectors, model = yield from self._vectors(space, [draft.intent for draft in drafts])
        ids = self._store.remember(drafts, vectors, model)
        return self._existing(space, ids)

    recall = blocking(_recall)
    recall_many = blocking(_recall_many)
    reinforce = blocking(_reinforce)
    reinforce_many = blocking(_reinforce_many)
    remember = blocking(_remember)
    remember_many = blocking(_remember_many)

    arecall = awaitable(_recall)
    arecall_many = awaitable(_recall_many)
    areinforce = awaitable(_reinforce)
    areinforce_many = awaitable(_reinforce_many)
    aremember = awaitable(_remember)
    aremember_many = awaitable(_remember_many)
