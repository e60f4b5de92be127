"""What a bank knows of itself: settings, secret, embedding model, and the count of its changes."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

import numpy as np

from langchain_memrl.config import LearningConfig, TrustConfig
from langchain_memrl.errors import ConfigError, EmbeddingMismatchError, StoreCorruptError
from langchain_memrl.store.base import SAME_MODEL_COSINE, Fingerprint
from langchain_memrl.store.database import Database
from langchain_memrl.store.encoding import RESTORE, digest, load, to_blob, to_vector


def get_meta(db: Database, key: str, default: Any = None) -> Any:
    """One of the bank's own values."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return default if row is None else db.dialect.kept(row[0])


def set_meta(db: Database, key: str, value: Any) -> None:
    """Set one of the bank's own values."""
    db.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?) "
        "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, db.dialect.keep(value)),
    )


def count(db: Database, key: str) -> int:
    """One of the bank's own numbers, 0 where there is none yet.

    Raises:
        StoreCorruptError: It is no number.
    """
    value = get_meta(db, key, 0)
    if not isinstance(value, int):
        raise StoreCorruptError(f"the bank's {key} is {value!r}, not a number; {RESTORE}")
    return value


def next_change(db: Database) -> int:
    """Count a change of the intents; other processes re-read what is newer than they saw."""
    if not db.dialect.counts_changes:
        return 0
    change = count(db, "change") + 1
    set_meta(db, "change", change)
    return change


# --- secret and learning settings ---------------------------------------------------------------


def is_initialized(db: Database) -> bool:
    """Whether the bank has its settings."""
    return get_meta(db, "learning") is not None


def initialize(
    db: Database, settings: LearningConfig, rules: TrustConfig, seed: int | None
) -> None:
    """Give a new bank its settings and its secret; `seed` makes the secret repeatable."""
    if not is_initialized(db):
        secret = secrets.token_bytes(16) if seed is None else digest("secret", seed)
        set_meta(db, "secret", secret)
        save_learning(db, settings)
        save_trust(db, rules)


def secret(db: Database) -> bytes:
    """The bank's own random key.

    Raises:
        StoreCorruptError: It is lost.
    """
    value = get_meta(db, "secret")
    if not isinstance(value, bytes):
        raise StoreCorruptError(f"the bank has lost its secret; {RESTORE}")
    return value


def learning(db: Database) -> LearningConfig:
    """The saved learning settings.

    Raises:
        StoreCorruptError: They cannot be read.
    """
    return _parse_learning(get_meta(db, "learning"))


@lru_cache(maxsize=16)
def _parse_learning(text: Any) -> LearningConfig:
    try:
        return LearningConfig(**load("the bank's learning settings", text))
    except (TypeError, ConfigError) as error:
        raise StoreCorruptError(
            f"the bank's learning settings cannot be used ({error}); {RESTORE}"
        ) from error


def save_learning(db: Database, settings: LearningConfig) -> None:
    """Save the learning settings."""
    set_meta(db, "learning", json.dumps(asdict(settings)))


def configure(db: Database, changes: Mapping[str, Any]) -> LearningConfig:
    """Change settings of learning or trust; every Q has to lie inside the reward range.

    Raises:
        ConfigError: An unknown setting, a value out of range, or a range that leaves a Q outside.
    """
    rules = {name: changes[name] for name in TrustConfig.__slots__ if name in changes}
    if rules:
        save_trust(db, replace(trust_rules(db), **rules))
        changes = {name: value for name, value in changes.items() if name not in rules}
    settings = learning(db).changed(**changes)
    low, high = settings.reward_range
    least, most = db.execute("SELECT min(q), max(q) FROM memories").fetchone()
    if least is not None and not (low <= least and most <= high):
        raise ConfigError(
            f"reward_range is ({low:g}, {high:g}), but memories have Q from {least:g} to {most:g}; "
            "choose a range around them, or forget the memories outside it first"
        )
    save_learning(db, settings)
    return settings


# --- trust --------------------------------------------------------------------------------------


def trust_rules(db: Database) -> TrustConfig:
    """Whose memories start in quarantine, and when they leave it.

    Raises:
        StoreCorruptError: It cannot be read.
    """
    return _parse_trust(get_meta(db, "trust", "{}"))


@lru_cache(maxsize=16)
def _parse_trust(text: Any) -> TrustConfig:
    try:
        return TrustConfig(**load("the bank's rules of trust", text))
    except (TypeError, ConfigError) as error:
        raise StoreCorruptError(
            f"the bank's rules of trust cannot be used ({error}); {RESTORE}"
        ) from error


def save_trust(db: Database, rules: TrustConfig) -> None:
    """Save the rules of trust. What is in the bank stays as trusted as it is."""
    set_meta(db, "trust", json.dumps(asdict(rules)))


# --- embedding model ----------------------------------------------------------------------------


def fingerprint(db: Database, prefix: str = "") -> Fingerprint | None:
    """The saved embedding model; with a prefix, the one that `reembed` is going over to.

    Raises:
        StoreCorruptError: It cannot be read.
    """
    blob = get_meta(db, f"{prefix}probes")
    if blob is None:
        return None
    dimension = count(db, f"{prefix}dimension")
    probes = to_vector(blob)
    if dimension < 1 or probes.size % dimension:
        raise StoreCorruptError(f"the bank's embedding model cannot be read; {RESTORE}")
    name = str(get_meta(db, f"{prefix}model"))
    return Fingerprint(name, probes.reshape(-1, dimension), count(db, "generation"))


def save_fingerprint(db: Database, model: Fingerprint, prefix: str = "") -> None:
    """Save an embedding model."""
    set_meta(db, f"{prefix}model", model.model)
    set_meta(db, f"{prefix}dimension", model.probes.shape[1])
    set_meta(db, f"{prefix}probes", to_blob(model.probes))


def same_model(one: Fingerprint, other: Fingerprint) -> bool:
    """Whether two fingerprints are of the same embedding model."""
    if one.probes.shape != other.probes.shape:
        return False
    cosines = np.sum(one.probes.astype(np.float64) * other.probes, axis=1)
    return bool((cosines >= SAME_MODEL_COSINE).all())


def check_model(db: Database, model: Fingerprint | None) -> Fingerprint | None:
    """Refuse vectors of another model than the bank's; the bank's is returned.

    Comparing a number is enough while the bank still has the model that was compared before.

    Raises:
        EmbeddingMismatchError: It is another model, or the bank was re-embedded since.
    """
    if model is None or 0 < count(db, "generation") == model.generation:
        return model
    standing = fingerprint(db)
    if standing is not None and not same_model(standing, model):
        raise EmbeddingMismatchError(
            f"the bank's vectors are now of {standing.model}, these are of {model.model}; "
            f"open it with {standing.model}"
        )
    return standing


def claim_model(db: Database, model: Fingerprint | None) -> None:
    """Refuse vectors of another model; a bank without a model takes this one over."""
    if model is not None and check_model(db, model) is None:
        save_fingerprint(db, model)
        set_meta(db, "generation", 1)
