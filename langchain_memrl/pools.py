"""From tasks to candidates: their vectors, and the memories whose intents are near (Phase A)."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_memrl.config import RecallConfig
from langchain_memrl.copies import Copies
from langchain_memrl.core.probes import PROBES
from langchain_memrl.inputs import is_blank
from langchain_memrl.requests import Task, check_texts
from langchain_memrl.steps import Steps
from langchain_memrl.store.base import Fingerprint, Pool, PoolQuery, RecallRecord, Vector
from langchain_memrl.store.filters import compile_filter


class Pools(Copies):
    """What needs vectors below the verbs."""

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
        given = self.redactor.texts("exclude_intents", exclude_intents)
        excluded = check_texts("exclude_intents", given)
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
                    untrusted=settings.untrusted,
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
