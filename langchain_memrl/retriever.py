"""`MemRLRetriever`: a recall as LangChain documents."""

from collections.abc import Mapping
from typing import Any, Literal

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams, RetrieverLike
from langchain_core.runnables import RunnableConfig, ensure_config, patch_config
from pydantic import ConfigDict, Field

from langchain_memrl.as_documents import to_documents
from langchain_memrl.config import RecallConfig
from langchain_memrl.documents import DOCUMENT_Q_WEIGHT, IdKey, ScoreKey
from langchain_memrl.errors import ConfigError
from langchain_memrl.from_config import EPISODE_KEY, FromConfig, find_namespace, request_config
from langchain_memrl.inputs import check_name
from langchain_memrl.memory import EpisodicMemory
from langchain_memrl.types import Normalization, Recall

PER_CALL = ("filter", "exclude_intents", "episode_id")
SEARCH = (
    *("fetch_k", "score_threshold", "distinct", "max_per_source", "untrusted", "filter"),
    "exclude_intents",  # per call only
)
RANKING = ("id_key", "score_key")
TRACING = ("run_id", "verbose")


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

    With `base`, any retriever of yours, it learns a Q for each of that one's documents instead;
    see `EpisodicMemory.recall_documents`. They come back as they are, with `memrl_id`,
    `memrl_similarity`, `memrl_q_value`, `memrl_score`, `memrl_withheld` (why they are in the base's
    own order) and the like in their metadata, and are not copied into the bank, which needs no
    embeddings for it. `base` finds, so it decides how many there are to choose from: let it find
    more than `k`.

        ```python
        retriever = MemRLRetriever(memory=memory, base=vectorstore.as_retriever(...), k=4)
        chain.invoke(question, {"metadata": {"memrl_episode_id": "job-43"}})
        memory.reinforce("job-43", reward=1.0, cited=["faq-17"])  # what the answer used, or all
        ```

    What a later reranker or a budget drops was not shown. So put this retriever last; or switch
    `record` off and put a `MemRLCompressor` last; or name what was used as `cited`.
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
    """Weight of Q in the score, from 0 (similarity only) to 1 (Q only); with `base` 0.6, because
    places tell less than cosines."""
    normalization: Normalization = "zscore"
    """How similarity and Q are standardised before they are blended."""
    epsilon: float = 0.0
    """Chance that the whole choice is random."""
    holdout: float = 0.0
    """Share of the episodes, drawn at random, in which nothing is shown, for `memory.lift`; with
    `base`, in which its first `k` are returned in its own order."""
    stop_when_harmful: bool = False
    """Whether nothing is shown any more (with `base`: its own order stands) once memories (Q) have
    been found to harm."""
    distinct: bool = True
    """Whether lessons that differ are preferred to near-identical ones."""
    max_per_source: int | None = None
    """How many of the k may have the same source, at most; None for any number."""
    untrusted: bool = False
    """Whether memories in quarantine may be chosen too; see `TrustConfig`."""
    filter: Mapping[str, Any] | None = None
    """Which memories may be chosen."""
    namespace: str | FromConfig | None = Field(default=None)
    """Where to look: a fixed name, `FromConfig(key)`, or None for the memory's own."""
    base: RetrieverLike | None = None
    """A retriever whose documents are recalled in the place of memories."""
    id_key: IdKey | None = None
    """With `base`: what tells documents apart, where neither their id nor their content does."""
    score_key: ScoreKey | None = None
    """With `base`: what their similarity is, larger for a better fit; None for their places."""
    record: bool = True
    """Whether an episode records what is returned; False where something else chooses after."""

    def model_post_init(self, context: Any) -> None:
        """Check the settings when the retriever is made."""
        super().model_post_init(context)
        if self.base is not None and "q_weight" not in self.model_fields_set:
            self.q_weight = DOCUMENT_Q_WEIGHT
        self.settings()
        wrong = RANKING if self.base is None else SEARCH[:-1]
        fields = type(self).model_fields
        self._refuse([name for name in wrong if getattr(self, name) != fields[name].default])
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

    def _refuse(self, names: list[str]) -> None:
        """Refuse settings that would do nothing.

        Raises:
            ConfigError: There are some.
        """
        if names and self.base is None:
            raise ConfigError(f"{names} tell documents of a base retriever apart; give base=...")
        if names:
            raise ConfigError(
                f"{names} apply to memories, not to the documents of base=...; what that "
                "retriever finds is limited or filtered there"
            )

    def resolve_namespace(self, config: RunnableConfig) -> str:
        """The namespace that a request with this config may see."""
        return find_namespace(self.namespace, self.memory.namespace, config)

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
        full = request_config(config)
        ranking = {name: call.pop(name, getattr(self, name)) for name in RANKING}
        if self.base is not None:
            self._refuse([name for name in SEARCH if name in call])
        own = {name: call.pop(name) for name in PER_CALL if name in call}
        settings = self.settings(**call)
        arguments = {
            **{name: getattr(settings, name) for name in settings.__slots__},
            "namespace": self.resolve_namespace(full),
            "filter": self.filter,
            "episode_id": full["metadata"].get(EPISODE_KEY),
            **own,
        }
        if self.base is None:
            return arguments
        return {name: value for name, value in arguments.items() if name not in SEARCH} | ranking

    def recall(
        self,
        task: str,
        config: RunnableConfig | None = None,
        *,
        record: bool | None = None,
        **call: Any,
    ) -> Recall:
        """What `invoke` chooses, as a `Recall`, for example for `memory.explain`.

        Args:
            task: What to recall for.
            config: The request's config: namespace and episode id come from it.
            record: As in `EpisodicMemory.recall`; None takes the retriever's own setting.
            **call: Settings of this call, as for `invoke`.
        """
        how = self.recall_arguments(config, **call)
        return self._choose(task, config, record=self.record if record is None else record, **how)

    async def arecall(
        self,
        task: str,
        config: RunnableConfig | None = None,
        *,
        record: bool | None = None,
        **call: Any,
    ) -> Recall:
        """The same, awaited."""
        how = self.recall_arguments(config, **call)
        record = self.record if record is None else record
        return await self._achoose(task, config, record=record, **how)

    def _choose(self, task: str, config: RunnableConfig | None, **arguments: Any) -> Recall:
        """Recall with all arguments of a request, among memories or the documents of `base`."""
        if self.base is None:
            return self.memory.recall(task, **arguments)
        return self.memory.recall_documents(task, self.base.invoke(task, config), **arguments)

    async def _achoose(self, task: str, config: RunnableConfig | None, **arguments: Any) -> Recall:
        """The same, awaited."""
        if self.base is None:
            return await self.memory.arecall(task, **arguments)
        documents = await self.base.ainvoke(task, config)
        return await self.memory.arecall_documents(task, documents, **arguments)

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
        arguments = self.recall_arguments(config, **call)
        return {**tracing, "arguments": arguments, "request": ensure_config(config)}

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        arguments: Mapping[str, Any] | None = None,
        request: RunnableConfig | None = None,
        verbose: bool = False,
    ) -> list[Document]:
        call = self.recall_arguments() if arguments is None else arguments
        child = patch_config(request, callbacks=run_manager.get_child())
        return to_documents(self._choose(query, child, record=self.record, **call))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        arguments: Mapping[str, Any] | None = None,
        request: RunnableConfig | None = None,
        verbose: bool = False,
    ) -> list[Document]:
        call = self.recall_arguments() if arguments is None else arguments
        child = patch_config(request, callbacks=run_manager.get_child())
        return to_documents(await self._achoose(query, child, record=self.record, **call))

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
