"""Two embedding models that run in this process: one made of hashes, one with real weights."""

import hashlib
import logging
import unicodedata
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from langchain_memrl.errors import ConfigError

_GRAM_SIZES = (3, 4)


class HashingEmbeddings(Embeddings):
    """Hashed words and character 3- and 4-grams: no weights, the same numbers on every machine.

    Each feature of a text is hashed to one coordinate and one sign (the hashing trick, Weinberger
    et al., arXiv 0902.2206), weighted `1 + ln(count)`, and the sum is scaled to length 1. Texts
    that share words or parts of words come out similar; paraphrases without common letters do not.
    Case, the amount of white space and the Unicode form do not matter. Blank texts all get one and
    the same unit vector, so a vector is never zero.

    Args:
        dimensions: length of the vectors. Fewer coordinates mean more collisions.

    Raises:
        ConfigError: `dimensions` is not at least 1.

    Example:
        >>> vectors = HashingEmbeddings().embed_documents(["reset the router", "the router resets"])
        >>> round(sum(a * b for a, b in zip(*vectors)), 2)
        0.8
    """

    def __init__(self, dimensions: int = 1024) -> None:
        """Set the length of the vectors; see the class."""
        if dimensions < 1:
            raise ConfigError(f"dimensions is {dimensions}; expected at least 1")
        self.dimensions = dimensions

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector of length 1 per text."""
        return [self._embed(text).tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of one text; the same as `embed_documents` gives."""
        vector: list[float] = self._embed(text).tolist()
        return vector

    def _embed(self, text: str) -> NDArray[np.float64]:
        vector = np.zeros(self.dimensions)
        counts = Counter(_features(text)) or Counter([""])
        for feature, count in counts.items():
            number = _stable_hash(feature)
            sign = 1.0 if number & 1 else -1.0
            vector[(number >> 1) % self.dimensions] += sign * (1.0 + np.log(count))
        return _unit(vector, fallback=_stable_hash(text) % self.dimensions)


def _features(text: str) -> Iterator[str]:
    words = unicodedata.normalize("NFKC", text).casefold().split()
    for word in words:
        yield f"word {word}"
    padded = f" {' '.join(words)} "
    for size in _GRAM_SIZES if words else ():
        for start in range(len(padded) - size + 1):
            yield padded[start : start + size]


def _stable_hash(feature: str) -> int:
    digest = hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def _unit(vector: NDArray[np.float64], fallback: int) -> NDArray[np.float64]:
    norm = float(np.linalg.norm(vector))
    if norm == 0.0:  # every coordinate cancelled out, which takes very few dimensions
        vector[fallback] = norm = 1.0
    return vector / norm


class WordLlamaEmbeddings(Embeddings):
    """The static 256-dimensional embedding model that the package `wordllama` carries.

    A text's vector is the mean of its tokens' vectors, scaled to length 1. It sees paraphrases that
    `HashingEmbeddings` cannot, embeds thousands of texts per second, and never opens a connection.
    A text without any token (the empty one) gets the zero vector.

    Raises:
        ImportError: the package `wordllama` is missing; the text names the extra to install.
    """

    def __init__(self) -> None:
        """Load the weights from the installed package."""
        try:
            with _root_logger_kept():
                import wordllama
        except ImportError as error:
            raise ImportError(
                "WordLlamaEmbeddings needs the package wordllama: "
                'pip install "langchain-memrl[demo]".'
            ) from error
        folder = Path(wordllama.__file__).parent
        self._model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector of length 1 per text."""
        if not texts:
            return []
        vectors = np.asarray(self._model.embed(list(texts), norm=False), dtype=np.float64)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        scaled: list[list[float]] = (vectors / np.where(lengths > 0, lengths, 1.0)).tolist()
        return scaled

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of one text; the same as `embed_documents` gives."""
        return self.embed_documents([text])[0]


@contextmanager
def _root_logger_kept() -> Iterator[None]:
    """Undo what an import does to the root logger: wordllama sets it to INFO for everybody."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers
