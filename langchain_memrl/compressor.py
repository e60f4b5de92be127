"""`MemRLCompressor`: a last step for the retrievers of others, which learns what to keep."""

from collections.abc import Sequence
from typing import Any, cast

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import RunnableConfig
from pydantic import ConfigDict

from langchain_memrl.as_documents import to_documents
from langchain_memrl.documents import DOCUMENT_Q_WEIGHT, IdKey, ScoreKey
from langchain_memrl.from_config import EPISODE_KEY, FromConfig, find_namespace, request_config
from langchain_memrl.inputs import check_name
from langchain_memrl.memory import EpisodicMemory
from langchain_memrl.ranking import document_settings
from langchain_memrl.types import Normalization


class MemRLCompressor(BaseDocumentCompressor):
    """Keeps the documents that fit and have proved useful; a Q for each is learned.

    Usage:
        ```python
        from langchain_classic.retrievers import ContextualCompressionRetriever
        from langchain_memrl import EpisodicMemory, MemRLCompressor

        memory = EpisodicMemory.open("./memories")
        retriever = ContextualCompressionRetriever(
            base_compressor=MemRLCompressor(memory=memory, k=4), base_retriever=mine
        )
        retriever.invoke(question, {"metadata": {"memrl_episode_id": "job-42"}})
        memory.reinforce("job-42", reward=1.0)
        ```

    It does for documents that were found already what `MemRLRetriever(base=...)` does for those
    that it asks for; see there. The episode comes from the request's metadata, which the retriever
    around it hands over with the callbacks.

    After a reranker, `q_weight=0` and a large `k` change nothing and record what is really shown.
    Where a step before it holds out, give this one the same `holdout`: an episode draws the same
    side in both.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    memory: EpisodicMemory
    """Where Q is."""
    k: int = 5
    """How many documents to keep."""
    q_weight: float = DOCUMENT_Q_WEIGHT
    """Weight of Q in the score, from 0 (similarity only) to 1 (Q only)."""
    normalization: Normalization = "pool"
    """How similarity and Q are standardised before they are blended."""
    epsilon: float = 0.0
    """Chance that the whole choice is random."""
    holdout: float = 0.0
    """Share of the episodes, drawn at random, in which the first `k` are kept in the order in which
    they came, for `memory.lift`."""
    stop_when_harmful: bool = False
    """Whether their own order stands once Q has been found to harm."""
    namespace: str | FromConfig | None = None
    """Whose Q counts: a fixed name, `FromConfig(key)`, or None for the memory's own."""
    id_key: IdKey | None = None
    """What tells documents apart, where neither their id nor their content does."""
    score_key: ScoreKey | None = None
    """What their similarity is, larger for a better fit; None for their places."""
    record: bool = True
    """Whether an episode records what is kept; False where something else chooses after."""

    def model_post_init(self, context: Any) -> None:
        """Check the settings when the compressor is made."""
        super().model_post_init(context)
        document_settings(
            self.k,
            self.q_weight,
            self.normalization,
            self.epsilon,
            self.holdout,
            self.stop_when_harmful,
        )
        if isinstance(self.namespace, str):
            check_name("namespace", self.namespace)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """The documents to keep, best first, with what is known of them in their metadata.

        Args:
            documents: What was found, best first.
            query: The task.
            callbacks: Of the run around it: its metadata names the episode and the namespace.
        """
        arguments = self._arguments(callbacks)
        return to_documents(self.memory.recall_documents(query, documents, **arguments))

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """The same, awaited; the disk does not block the event loop."""
        arguments = self._arguments(callbacks)
        return to_documents(await self.memory.arecall_documents(query, documents, **arguments))

    def _arguments(self, callbacks: Callbacks | None) -> dict[str, Any]:
        given = {} if callbacks is None else {"callbacks": callbacks}
        config = request_config(cast("RunnableConfig", given))
        return {
            "k": self.k,
            "q_weight": self.q_weight,
            "normalization": self.normalization,
            "epsilon": self.epsilon,
            "holdout": self.holdout,
            "stop_when_harmful": self.stop_when_harmful,
            "id_key": self.id_key,
            "score_key": self.score_key,
            "namespace": find_namespace(self.namespace, self.memory.namespace, config),
            "episode_id": config["metadata"].get(EPISODE_KEY),
            "record": self.record,
        }
