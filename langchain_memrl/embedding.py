"""The seam between texts and vectors: any LangChain `Embeddings`, checked and kept honest."""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from langchain_core.embeddings import Embeddings

from langchain_memrl.errors import EmbeddingError, EmbeddingMismatchError, MemRLError
from langchain_memrl.store.base import SAME_MODEL_COSINE, Fingerprint, Vector
from langchain_memrl.store.contract import MemoryStore

RECENT_TEXTS = 512
GUARD = "vectors in the order of their texts"
"""A text sent before and twice after every batch: its vectors show whether the order was kept."""
GUARDS = 3


Recent = OrderedDict[str, Vector]


class Embedder:
    """Embeds texts, always with `embed_documents`: intents and tasks are the same kind of text.

    The vectors of the last 512 texts are kept, so that a task that was recalled is not embedded
    again when it is remembered.
    """

    def __init__(self, embeddings: Embeddings | None) -> None:
        self._embeddings = embeddings
        self._recent: Recent = OrderedDict()
        self._lock = threading.Lock()

    def replace(self, embeddings: Embeddings) -> None:
        """Use another model from now on."""
        with self._lock:
            self._embeddings = embeddings
            self._recent = OrderedDict()  # a call under way keeps its vectors in the old one

    @property
    def is_given(self) -> bool:
        """Whether there is a model at all."""
        return self._embeddings is not None

    @property
    def provider(self) -> str | None:
        """The class of the embeddings, for tracing."""
        return None if self._embeddings is None else type(self._embeddings).__name__

    @property
    def model(self) -> str | None:
        """The model's name where the embeddings tell it, for tracing."""
        for name in ("model", "model_name", "model_id"):
            value = getattr(self._embeddings, name, None)
            if isinstance(value, str):
                return value
        return None

    @property
    def name(self) -> str:
        """Class and model, for messages."""
        return " ".join(filter(None, (self.provider, self.model))) or "no embeddings"

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Unit vectors of the texts; only texts not seen lately reach the model.

        Raises:
            EmbeddingError: No embeddings, or a wrong count, order, dimension or number came back.
        """
        known, missing, recent = self._look_up(texts)
        rows = self._model().embed_documents(_guarded(missing)) if missing else []
        known |= self._keep(missing, rows, recent)
        return [known[text] for text in texts]

    async def aembed(self, texts: Sequence[str]) -> list[Vector]:
        """The same, awaited."""
        known, missing, recent = self._look_up(texts)
        rows = await self._model().aembed_documents(_guarded(missing)) if missing else []
        known |= self._keep(missing, rows, recent)
        return [known[text] for text in texts]

    @contextmanager
    def checked(self, texts: Sequence[str]) -> Iterator[None]:
        """Do not keep the vectors of these texts where the block refuses them."""
        try:
            yield
        except MemRLError:
            with self._lock:
                for text in texts:
                    self._recent.pop(text, None)
            raise

    def _model(self) -> Embeddings:
        if self._embeddings is None:
            raise EmbeddingError(
                "this bank was opened without embeddings, so it can neither recall nor remember; "
                "open it with embeddings=..."
            )
        return self._embeddings

    def _look_up(self, texts: Sequence[str]) -> tuple[dict[str, Vector], list[str], Recent]:
        """Vectors still kept, the texts that have none, and where to keep theirs."""
        with self._lock:
            recent = self._recent
            known = {text: recent[text] for text in texts if text in recent}
        return known, [text for text in dict.fromkeys(texts) if text not in known], recent

    def _keep(
        self, texts: Sequence[str], rows: Sequence[Sequence[float]], recent: Recent
    ) -> dict[str, Vector]:
        """Check fresh vectors and keep the latest 512."""
        fresh = dict(zip(texts, self._in_order(rows, len(texts)), strict=True))
        with self._lock:
            recent |= fresh
            while len(recent) > RECENT_TEXTS:
                recent.popitem(last=False)
        return fresh

    def _in_order(self, rows: Sequence[Sequence[float]], expected: int) -> list[Vector]:
        """Unit vectors without those of the guards, which have to stand where they were sent."""
        if expected < 2:
            return self._unit_vectors(rows, expected, 0)
        first, *units, last, end = self._unit_vectors(rows, expected, GUARDS)
        if min(float(first @ last), float(first @ end)) < SAME_MODEL_COSINE:
            raise EmbeddingError(
                f"{self.name} returned the vectors of {expected} texts in another order, or gives "
                "the same text different vectors; nothing was stored"
            )
        return units

    def _unit_vectors(
        self, rows: Sequence[Sequence[float]], expected: int, guards: int
    ) -> list[Vector]:
        """Those of the texts and their guards, checked and normalised, shape (d,) each."""
        count = max(len(rows) - guards, 0)
        if len(rows) != expected + guards:
            raise EmbeddingError(
                f"{self.name} returned {count} vectors for {expected} texts; nothing was stored"
            )
        if expected == 0:
            return []
        try:
            table = np.array(rows, dtype=np.float64)
        except (TypeError, ValueError):
            table = np.empty(0)
        if table.ndim != 2 or table.shape[1] == 0:
            sizes = sorted({np.size(row) for row in rows})
            raise EmbeddingError(
                f"{self.name} returned vectors of sizes {sizes}; expected one size for all, "
                "numbers only; nothing was stored"
            )
        # Scaled first, so that no square overflows or vanishes.
        peaks = np.abs(table).max(axis=1, keepdims=True)
        bad = np.flatnonzero(~(np.isfinite(peaks) & (peaks > 0)))
        if bad.size:
            raise EmbeddingError(
                f"{self.name} returned a vector that is all zero or not finite for text "
                f"{min(max(int(bad[0]) - guards // 2, 0), count - 1)} of {count}; "
                "nothing was stored"
            )
        scaled = table / peaks
        units = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
        return list(units.astype(np.float32))


def _guarded(texts: list[str]) -> list[str]:
    """The texts between guards; one text alone cannot change places."""
    return texts if len(texts) < 2 else [GUARD, *texts, GUARD, GUARD]


class ModelCheck:
    """Refuses another embedding model than the one a bank was built with.

    The bank keeps the vectors of fixed probe texts. The same model means the same dimension and,
    for every probe, a cosine of at least 0.999; a hash of the numbers would refuse the same model
    on another processor.
    """

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.model: Fingerprint | None = None
        """The embedder's model; None while it still has to be compared."""

    def check_dimension(self, name: str, vectors: Sequence[Vector]) -> None:
        """Refuse vectors of another dimension than the checked model's.

        Raises:
            EmbeddingError: The embedder changed the size of its vectors.
        """
        if self.model is None:
            return
        dimension = self.model.probes.shape[1]
        sizes = {vector.size for vector in vectors} - {dimension}
        if sizes:
            raise EmbeddingError(
                f"{name} returned vectors of sizes {sorted(sizes)}, expected {dimension}; "
                "nothing was stored"
            )

    def compare(self, name: str, vectors: Sequence[Vector]) -> Fingerprint:
        """Compare the probes' vectors with the saved ones; a bank without any takes all.

        Raises:
            EmbeddingMismatchError: Another dimension, or another model of the same dimension.
        """
        probes = np.stack(vectors)
        saved = self._store.fingerprint()
        if saved is not None:
            check_same_model(saved, name, probes)
        self.model = model = Fingerprint(name, probes, 0 if saved is None else saved.generation)
        return model

    def confirm(self) -> Fingerprint:
        """The compared model; where the bank had none then, see whether it has this one by now.

        Raises:
            EmbeddingMismatchError: It has another one, or `reembed` is exchanging it.
        """
        model = self.model
        if model is None:
            raise EmbeddingMismatchError("the embedding model is being exchanged; call again")
        return model if model.generation else self.compare(model.model, list(model.probes))

    def forget(self) -> None:
        """Compare anew at the next call."""
        self.model = None


def check_same_model(saved: Fingerprint, name: str, probes: Vector) -> None:
    """Refuse probe vectors, shape (p, d), of another model than the saved one.

    Raises:
        EmbeddingMismatchError: Another dimension, or another model of the same dimension.
    """
    advice = "open it with the same model, or go over to these with reembed()"
    if saved.probes.shape != probes.shape:
        raise EmbeddingMismatchError(
            f"the bank was built with {saved.model} ({saved.probes.shape[1]} dimensions), "
            f"these embeddings are {name} ({probes.shape[1]} dimensions); {advice}"
        )
    cosine = float((saved.probes.astype(np.float64) * probes).sum(axis=1).min())
    if cosine < SAME_MODEL_COSINE:
        raise EmbeddingMismatchError(
            f"the bank was built with {saved.model}, these embeddings are {name}: for the same "
            f"text they give cosine {cosine:.3f}, expected at least {SAME_MODEL_COSINE}; {advice}"
        )
