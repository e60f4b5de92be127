"""`MemRLRetriever`: a recall as LangChain documents."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from langchain_core.runnables import RunnableConfig, ensure_config
from pydantic import ConfigDict, Field

from langchain_memrl.config import RecallConfig
from langchain_memrl.errors import InputError
from langchain_memrl.inputs import check_name
from langchain_memrl.memory import EpisodicMemory
from langchain_memrl.types import Normalization, Recall, ScoredMemory

EPISODE_KEY = "memrl_episode_id"
PER_CALL = ("filter", "exclude_intents", "episode_id")
TRACING = ("run_id", "verbose")


@dataclass(frozen=True)
class FromConfig:
    """Takes the namespace from each request's config, never from the model.

    Attributes:
        key: Looked up in `config["configurable"]`, then in `config["metadata"]`.
    """

    key: str

    def resolve(self, config: RunnableConfig) -> str:
        """The namespace of one request.

        Raises:
            InputError: The request names none.
        """
        for part in ("configurable", "metadata"):
            values: Mapping[str, Any] = config.get(part) or {}  # type: ignore[assignment]
            if values.get(self.key) is not None:
                return check_name(self.key, values[self.key])
        raise InputError(
            f"the request names no namespace; expected "
            f'config={{"configurable": {{{self.key!r}: ...}}}}'
        )


class MemRLRetriever(BaseRetriever):
    """Recalls memories that are similar and have proved useful, as documents.

    Setup:
        ```python
        from langchain_memrl import EpisodicMemory, MemRLRetriever

        retriever = MemRLRetriever(memory=EpisodicMemory.open("./memories", embeddings=...))
        ```

    Usage:
        ```python
        retriever.invoke("reset a router")
        retriever.invoke("reset a router", k=2, q_weight=0.0)
        chain.invoke(question, {"metadata": {"memrl_episode_id": "job-42"}})
        memory.reinforce("job-42", reward=1.0)
        ```

    A document's `id` is the memory's id, its `page_content` the lesson (the trajectory while there
    is none). Its metadata holds `intent`, `similarity`, `q_value`, `score`, `updates`,
    `selections`, `outcome`, `created_at`, `namespace`, `recall_id` and, under `user`, the memory's
    own metadata; all plain Python values.

    Every setting but the memory and the namespace may also be given per call.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    memory: EpisodicMemory
    """Where to recall from."""
    k: int = 5
    """How many memories to return."""
    fetch_k: int = 10
    """How many of the most similar intents form the pool."""
    score_threshold: float | Literal["auto"] | None = "auto"
    """Smallest cosine an intent needs; `"auto"` for the bank's calibration, None for no gate."""
    q_weight: float = 0.5
    """Weight of Q in the score, from 0 (similarity only) to 1 (Q only)."""
    normalization: Normalization = "zscore"
    """How similarity and Q are standardised before they are blended."""
    epsilon: float = 0.0
    """Chance that the whole choice is random."""
    holdout: float = 0.0
    """Share of the episodes, drawn at random, in which nothing is shown, for `memory.lift`."""
    stop_when_harmful: bool = False
    """Whether nothing is shown any more once memories have been found to harm."""
    filter: Mapping[str, Any] | None = None
    """Which memories may be chosen."""
    namespace: str | FromConfig | None = Field(default=None)
    """Where to look: a fixed name, `FromConfig(key)`, or None for the memory's own."""

    def model_post_init(self, context: Any) -> None:
        """Check the settings when the retriever is made."""
        super().model_post_init(context)
        self.settings()
        if isinstance(self.namespace, str):
            check_name("namespace", self.namespace)

    def settings(self, **changes: Any) -> RecallConfig:
        """The recall settings, with those of one call.

        Raises:
            TypeError: A name that is not a setting.
            ConfigError: A setting is out of range.
        """
        names = RecallConfig.__slots__
        unknown = changes.keys() - set(names)
        if unknown:
            raise TypeError(
                f"unknown argument {sorted(unknown)}; expected some of {(*names, *PER_CALL)}"
            )
        return RecallConfig(**{name: getattr(self, name) for name in names} | changes)

    def resolve_namespace(self, config: RunnableConfig) -> str:
        """The namespace that a request with this config may see."""
        if isinstance(self.namespace, FromConfig):
            return self.namespace.resolve(config)
        return self.memory.namespace if self.namespace is None else self.namespace

    def recall_arguments(self, config: RunnableConfig | None = None, **call: Any) -> dict[str, Any]:
        """The keyword arguments of `EpisodicMemory.recall` for one request.

        Args:
            config: The request's config: namespace and episode id come from it.
            **call: Settings of this call, `filter`, `exclude_intents`, `episode_id`.
        """
        if "namespace" in call:
            raise TypeError(
                "namespace cannot be given per call; give it to the constructor, "
                "or use FromConfig there"
            )
        full = ensure_config(config)
        own = {name: call.pop(name) for name in PER_CALL if name in call}
        settings = self.settings(**call)
        return {
            **{name: getattr(settings, name) for name in settings.__slots__},
            "namespace": self.resolve_namespace(full),
            "filter": self.filter,
            "episode_id": full["metadata"].get(EPISODE_KEY),
            **own,
        }

    # --- LangChain's side -----------------------------------------------------------------------

    def invoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Documents for a task, best first; see the class for the settings per call."""
        return super().invoke(input, config, **self._hook_arguments(config, kwargs))

    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """The same, awaited; neither the embedder nor the disk blocks the event loop."""
        return await super().ainvoke(input, config, **self._hook_arguments(config, kwargs))

    def _hook_arguments(
        self, config: RunnableConfig | None, kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        """Read the request's config here: the hooks below do not see it."""
        tracing = {name: kwargs[name] for name in TRACING if name in kwargs}
        call = {name: value for name, value in kwargs.items() if name not in TRACING}
        return {**tracing, "arguments": self.recall_arguments(config, **call)}

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        arguments: Mapping[str, Any] | None = None,
        verbose: bool = False,
    ) -> list[Document]:
        call = self.recall_arguments() if arguments is None else arguments
        return to_documents(self.memory.recall(query, **call))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        arguments: Mapping[str, Any] | None = None,
        verbose: bool = False,
    ) -> list[Document]:
        call = self.recall_arguments() if arguments is None else arguments
        return to_documents(await self.memory.arecall(query, **call))

    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        """What LangSmith shows: the kind of store and the embedding model; no text."""
        params = super()._get_ls_params(**kwargs)
        params["ls_vector_store_provider"] = "faiss"
        embedder = self.memory.embedder
        if embedder.provider is not None:
            params["ls_embedding_provider"] = embedder.provider
        if embedder.model is not None:
            params["ls_embedding_model"] = embedder.model
        return params


def to_documents(recall: Recall) -> list[Document]:
    """The chosen memories as documents, best first."""
    return [_to_document(scored, recall) for scored in recall.memories]


def _to_document(scored: ScoredMemory, recall: Recall) -> Document:
    memory = scored.memory
    return Document(
        id=memory.id,
        page_content=memory.lesson or memory.trajectory,
        metadata={
            "intent": memory.intent,
            "similarity": scored.similarity,
            "q_value": memory.q_value,
            "score": scored.score,
            "updates": memory.updates,
            "selections": memory.selections,
            "outcome": memory.outcome,
            "created_at": memory.created_at.isoformat(),
            "namespace": memory.namespace,
            "recall_id": recall.recall_id,
            "user": dict(memory.metadata),
        },
    )
