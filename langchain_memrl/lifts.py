"""What memories are worth, measured on the user's own episodes; and why each one was chosen."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from langchain_memrl.core.lifting import Arm, lift_of
from langchain_memrl.episodes import Episodes
from langchain_memrl.explaining import Explanation, explain
from langchain_memrl.reports import Lift
from langchain_memrl.steps import Steps, awaitable, blocking
from langchain_memrl.store.base import Trial
from langchain_memrl.types import Recall

Outcomes = Callable[[float | None], str]
"""What a reward means."""


def lift_from(namespace: str, trials: Sequence[Trial], outcome: Outcomes) -> Lift:
    """The lift of a namespace, and of each memory that the trials name.

    Args:
        namespace: Where they come from.
        trials: The episodes.
        outcome: What a reward means.
    """
    named = sorted({id for trial in trials for id in trial.chosen})
    members: dict[str, list[Trial]] = {id: [] for id in named}
    for trial in trials:
        for id in trial.chosen:
            members[id].append(trial)
    parts = (_lift_of(namespace, id, own, outcome) for id, own in members.items())
    told = sorted(parts, key=lambda one: (-one.episodes, one.memory_id or ""))
    return replace(_lift_of(namespace, None, trials, outcome), memories=tuple(told))


def _lift_of(
    namespace: str,
    memory_id: str | None,
    trials: Sequence[Trial],
    outcome: Outcomes,
) -> Lift:
    known = [trial for trial in trials if trial.reward is not None]
    pairs = []
    for holdout in sorted({trial.holdout for trial in known}):
        same = [trial for trial in known if trial.holdout == holdout]
        pairs.append((_arm(same, False, outcome), _arm(same, True, outcome)))
    shown, held = _arm(known, False, outcome), _arm(known, True, outcome)
    waiting = [trial.held_out for trial in trials if trial.reward is None]
    found = lift_of(pairs)
    return Lift(
        namespace=namespace,
        memory_id=memory_id,
        episodes_with=shown.episodes,
        episodes_without=held.episodes,
        success_with=shown.share,
        success_without=held.share,
        difference=found.value,
        low=found.low,
        high=found.high,
        waiting_with=waiting.count(False),
        waiting_without=waiting.count(True),
    )


def _arm(trials: Iterable[Trial], held_out: bool, outcome: Outcomes) -> Arm:
    rewards = [trial.reward for trial in trials if trial.held_out is held_out]
    return Arm(len(rewards), sum(outcome(reward) == "success" for reward in rewards))


class Lifts(Episodes):
    """Proof of lift: episodes in which nothing was shown, against the others."""

    def _lift(self, *, memories: bool = False, namespace: str | None = None) -> Steps[Lift]:
        """How much success the memories add: share of successes with them minus that without.

        Only episodes with a reward count in which chance decided (`holdout=` of `recall`, of the
        retriever, the graph and the middleware) and in which there was something to show. So the
        two sides differ in nothing else. Of the documents of another retriever nothing is kept
        back: there it is what the order by Q adds to their own. A namespace is measured as one, so
        give a retriever that is to be measured by itself one of its own.

        Args:
            memories: Also for each memory: the episodes in which it was shown against those in
                which it would have been shown. What was shown beside it differs from episode to
                episode and counts too. With many memories some intervals miss by chance. Of a
                document: what the order by Q adds where it chooses this one.
            namespace: This memory's own by default.

        Returns:
            The difference with an interval that holds the truth with 95 % however often one looks.
        """
        yield from ()
        space = self._space(namespace)
        return lift_from(space, self._store.trials(space, chosen=memories), self.learning.outcome)

    def explain(self, recall: Recall) -> Sequence[Explanation]:
        """Why each candidate of a recall was chosen, or not; best first."""
        return explain(recall)

    def _is_harmful(self, space: str) -> bool:
        """Whether memories of a namespace were found to harm; looked up now and then."""
        if self._brake.is_due(space):
            trials = self._store.trials(space, chosen=False)
            self._brake.set(lift_from(space, trials, self.learning.outcome))
        return self._brake.is_on(space)

    lift = blocking(_lift)
    alift = awaitable(_lift)
