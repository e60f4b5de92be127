"""Every error this package raises on purpose.

```
MemRLError
├─ ConfigError(ValueError)           a setting is out of range, or differs from the saved one
├─ InputError(ValueError)            blank or oversized text, a bad namespace, a bad filter
├─ RewardError(ValueError)           not a usable reward: out of range, NaN, infinite
│  └─ RewardTypeError(TypeError)     a bool or a str where a number is needed
├─ EmbeddingError                    the embedder is missing or returned unusable vectors
├─ StoreError
│  ├─ StoreNotFoundError             there is no bank at this place
│  ├─ StoreVersionError              the bank's format cannot be read, or not without writing
│  ├─ StoreCorruptError              the database is damaged or another one; it is kept
│  ├─ StoreBusyError                 another process holds the lock; try again
│  ├─ EmbeddingMismatchError         another embedding model than the one the bank was built with
│  └─ MemoryNotFoundError(KeyError)  no memory of this id in this namespace
├─ EpisodeError                      unknown episode, or it recorded other memories
│  ├─ RewardConflictError            the episode was already rewarded differently
│  └─ WriteConflictError             the episode already wrote another memory
├─ PartialLoadError                  a bulk load stopped; it tells what is stored
├─ SummaryError                      a summariser's reply is no lesson; the episode is stored raw
└─ VerdictError                      the judge's reply could not be read
```
"""


class MemRLError(Exception):
    """Base of every error raised by this package."""


class ConfigError(MemRLError, ValueError):
    """A setting is out of range, or differs from the one saved in the bank."""


class InputError(MemRLError, ValueError):
    """A text, namespace, filter or metadata value cannot be accepted."""


class RewardError(MemRLError, ValueError):
    """A reward is not a finite number inside the bank's reward range."""


class RewardTypeError(RewardError, TypeError):
    """A reward has a type that is easily misread, such as `bool` or `str`."""


class EmbeddingError(MemRLError):
    """The embedder is missing, or returned vectors that cannot be used."""


class StoreError(MemRLError):
    """The bank could not be read or written."""


class StoreNotFoundError(StoreError):
    """There is no bank at the given place."""


class StoreVersionError(StoreError):
    """The bank was written by a newer version, or by an older one and is opened read-only."""


class StoreCorruptError(StoreError):
    """The bank's database is damaged. It is never overwritten."""


class StoreBusyError(StoreError):
    """Another connection holds the write lock. The call may be repeated."""


class EmbeddingMismatchError(StoreError):
    """The embedding model differs from the one the bank was built with."""


class MemoryNotFoundError(StoreError, KeyError):
    """No memory of the given id exists in the given namespace."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class EpisodeError(MemRLError):
    """The episode is unknown in this namespace, or does not fit the call."""


class RewardConflictError(EpisodeError):
    """The episode was already rewarded with another reward."""


class WriteConflictError(EpisodeError):
    """The episode already wrote, or holds, something else."""


class PartialLoadError(MemRLError):
    """A bulk load stopped in the middle.

    Attributes:
        stored: Ids of the memories that are stored, in the order of the list.
        missing: Places in the list, counted from 0, of the memories that are not.
    """

    def __init__(self, message: str, *, stored: tuple[str, ...], missing: tuple[int, ...]) -> None:
        super().__init__(message)
        self.stored = stored
        self.missing = missing


class SummaryError(MemRLError):
    """A summariser's reply is no lesson. The episode is then stored raw."""


class VerdictError(MemRLError):
    """The judge's reply could not be turned into a verdict."""
