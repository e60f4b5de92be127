"""A reward for what an answer used: the cited ones of the memories that an episode showed."""

from collections.abc import Sequence

from langchain_memrl.errors import EpisodeError, RewardConflictError
from langchain_memrl.store.base import RewardEntry
from langchain_memrl.store.database import Database
from langchain_memrl.store.documents import document_memory_id, key_of_id
from langchain_memrl.store.encoding import digest


def cited(entry: RewardEntry, shown: Sequence[str]) -> tuple[str, ...]:
    """Those of the shown memories that are cited, by their own ids or those of their documents.

    Raises:
        EpisodeError: One that is cited was not shown.
    """
    if entry.cited is None:
        return tuple(shown)
    wanted = {
        id if id in shown else document_memory_id(entry.namespace, key_of_id(id)): id
        for id in entry.cited
    }
    strange = [id for memory_id, id in wanted.items() if memory_id not in shown]
    if strange:
        raise EpisodeError(
            f"episode {entry.episode_id!r} did not show {strange}; expected ids of some of the "
            f"{len(shown)} it recorded (an id, or metadata['memrl_id']): nothing was changed"
        )
    return tuple(id for id in shown if id in wanted)


def cited_digest(entry: RewardEntry, cited: Sequence[str]) -> bytes | None:
    """What a repeat has to cite again; None where nothing was left out."""
    return None if entry.cited is None else digest(sorted(cited))


def citations(db: Database, entry: RewardEntry) -> bytes | None:
    """What the reward of an episode was narrowed to, as `cited_digest` has it; None: to nothing."""
    found: tuple[bytes | None] = db.execute(
        "SELECT digest FROM ledger "
        "WHERE namespace = ? AND episode_id = ? AND operation = 'reinforce'",
        (entry.namespace, entry.episode_id),
    ).fetchone()
    return found[0]


def check_same_citations(db: Database, entry: RewardEntry, recorded: Sequence[str]) -> None:
    """A repeat has to cite what the first call did; a revision may leave it to that.

    Raises:
        RewardConflictError: It cites something else.
    """
    first = citations(db, entry)
    left_to_first = entry.revise and entry.cited is None
    if not left_to_first and first != cited_digest(entry, cited(entry, recorded)):
        raise RewardConflictError(
            f"episode {entry.episode_id!r} was already rewarded for other citations; the first "
            "ones stand"
        )
