"""A recall as LangChain documents."""

from langchain_core.documents import Document

from langchain_memrl.types import Recall, ScoredMemory


def to_documents(recall: Recall) -> list[Document]:
    """The chosen memories, or the chosen documents, best first."""
    if recall.document_keys is not None:
        return [_marked(scored, recall) for scored in recall.memories]
    return [_to_document(scored, recall) for scored in recall.memories]


def _marked(scored: ScoredMemory, recall: Recall) -> Document:
    """A document as it came, with what is known of it in its metadata."""
    marks = {
        "memrl_id": scored.id,
        "memrl_similarity": scored.similarity,
        "memrl_q_value": scored.memory.q_value,
        "memrl_score": scored.score,
        "memrl_updates": scored.memory.updates,
        "memrl_selections": scored.memory.selections,
        "memrl_recall_id": recall.recall_id,
        "memrl_withheld": recall.withheld,
    }
    document: Document = scored.document
    return document.model_copy(update={"metadata": {**document.metadata, **marks}})


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
