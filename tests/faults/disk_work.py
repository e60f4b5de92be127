"""The workload of the disk faults: steps, what each must leave behind, and what can be seen."""

import copy
import functools
from dataclasses import astuple, dataclass, field

from langchain_memrl import EpisodicMemory
from langchain_memrl.core.probes import PROBES
from langchain_memrl.errors import EpisodeError, StoreNotFoundError
from langchain_memrl.offline import HashingEmbeddings

SHARED = "the task that every recall asks for"
FORGOTTEN = "reset a router"
STEP_SIZE = 0.3
CHECKPOINT_PAGES = 30


@dataclass
class Known:
    """What one memory must look like; Q has the closed form of rewards that are all 1."""

    lesson: str
    trajectory: str = ""
    outcome: str = "unknown"
    rewards: int = 0
    selections: int = 0
    disabled: bool = False
    pinned: bool = False

    def seen(self):
        return (*astuple(self), round(1 - (1 - STEP_SIZE) ** self.rewards, 9))


@dataclass
class Model:
    """What a bank must hold: memories by intent, episodes by id, and finished copies."""

    memories: dict = field(default_factory=dict)
    episodes: dict = field(default_factory=dict)  # id: [reward, intent it wrote, intents it showed]
    copies: dict = field(default_factory=dict)

    def seen(self):
        return {intent: known.seen() for intent, known in self.memories.items()}

    def episode(self, id):
        return self.episodes.setdefault(id, [None, None, ()])


class Worker:
    """A process at work on the bank in `place / "bank"`."""

    def __init__(self, place, memory=None):
        self.place = place
        self.memory = memory

    def open(self):
        if self.memory is None:
            self.memory = open_bank(self.place / "bank")
            db = self.memory._store._sidecar._connection
            db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")

    def close(self):
        self.memory.close()
        self.memory = None

    def id(self, intent):
        return next(found.id for found in self.memory.list(limit=None) if found.intent == intent)


class Embeddings(HashingEmbeddings):
    """Computes each text once per process, and the probes before it forks."""

    def embed_documents(self, texts):
        return [list(numbers_of(text)) for text in texts]


@functools.cache
def numbers_of(text):
    return HashingEmbeddings(32).embed_documents([text])[0]


for probe in PROBES:
    numbers_of(probe)


def open_bank(folder, **options):
    return EpisodicMemory.open(folder, embeddings=Embeddings(32), **options)


# --- steps: what a worker does, and what that does to the model ---------------------------------


def opening():
    return "open", Worker.open, lambda model: None


def closing():
    return "close", Worker.close, lambda model: None


def remembering(intent, episode, size=0):
    lesson, trajectory = f"lesson of {intent}", "x" * size

    def do(worker):
        worker.memory.remember(intent, lesson, trajectory=trajectory, episode_id=episode)

    def effect(model):
        model.memories[intent] = Known(lesson, trajectory)
        model.episode(episode)[1] = intent

    return f"remember {intent}", do, effect


def recalling(episode):
    def do(worker):
        worker.memory.recall(SHARED, k=1, q_weight=0, episode_id=episode)

    def effect(model):
        model.memories[SHARED].selections += 1
        model.episode(episode)[2] = (SHARED,)

    return f"recall {episode}", do, effect


def holding(episode, intent):
    def do(worker):
        worker.memory.hold(episode, intent=intent, trajectory=f"done for {intent}")

    return f"hold {intent}", do, lambda model: model.episode(episode)


def rewarding(episode, held=None):
    def do(worker):
        worker.memory.reinforce(episode, reward=1)

    def effect(model):
        model.episode(episode)[0] = 1.0
        for intent in model.episode(episode)[2]:
            model.memories[intent].rewards += 1
        if held:
            model.memories[held] = Known("", f"done for {held}", "success")
            model.episode(episode)[1] = held

    return f"reinforce {episode}", do, effect


def changing(intent, verb, **arguments):
    def do(worker):
        getattr(worker.memory, verb)(worker.id(intent), **arguments)

    def effect(model):
        known = model.memories[intent]
        known.lesson = arguments.get("lesson", known.lesson)
        known.disabled |= verb == "disable"
        known.pinned |= verb == "pin"

    return f"{verb} {intent}", do, effect


def forgetting(intent, episode):
    def do(worker):
        worker.memory.forget(ids=[worker.id(intent)])

    def effect(model):
        del model.memories[intent]
        model.episode(episode)[1] = None  # the episode stays, the memory it wrote is gone

    return f"forget {intent}", do, effect


def compacting():
    return "compact", lambda worker: worker.memory.compact(), lambda model: None


def copying(verb, name):
    def do(worker):
        getattr(worker.memory, verb)(worker.place / name)

    def effect(model):
        model.copies[name] = copy.deepcopy(model.seen())

    return verb, do, effect


WHOLE = (
    opening(),
    remembering(SHARED, "first"),
    remembering(FORGOTTEN, "second", size=9000),
    remembering("bake a cake", "third"),
    recalling("job 1"),
    rewarding("job 1"),
    recalling("job 2"),
    holding("job 2", "paint a wall"),
    rewarding("job 2", held="paint a wall"),
    changing("bake a cake", "update", lesson="another lesson"),
    changing("bake a cake", "disable"),
    changing(SHARED, "pin"),
    forgetting(FORGOTTEN, "second"),
    compacting(),
    copying("backup", "backup"),
    copying("export_jsonl", "bank.jsonl"),
    closing(),
    opening(),
    recalling("job 3"),
    remembering("mow the lawn", "fourth"),
    rewarding("job 3"),
    closing(),
)

WRITING = (
    remembering("mow the lawn", "fourth"),
    recalling("job 3"),
    (
        "reinforce",
        lambda worker: worker.memory.reinforce("new", reward=1, ids=[worker.id(SHARED)]),
        None,
    ),
    holding("job 4", "paint a wall"),
    changing(SHARED, "disable"),
    forgetting(SHARED, "first"),
    compacting(),
    copying("backup", "another"),
    copying("export_jsonl", "another.jsonl"),
)


@functools.cache
def models_of(steps):
    """What must be there after no step, after one, ..., after all."""
    models = [Model()]
    for _, _, effect in steps:
        models.append(copy.deepcopy(models[-1]))
        effect(models[-1])
    return models


# --- what can be seen ---------------------------------------------------------------------------


def seen(memory):
    """All of a bank that a model speaks of."""
    return {
        found.intent: (
            found.lesson,
            found.trajectory,
            found.outcome,
            found.updates,
            found.selections,
            found.disabled,
            found.pinned,
            round(found.q_value, 9),
        )
        for found in memory.list(limit=None)
    }


def seen_episodes(memory, ids):
    """Reward, what it wrote and what it showed, of every episode that exists."""
    names = {found.id: found.intent for found in memory.list(limit=None)}
    found = {}
    for id in ids:
        try:
            episode = memory.episode(id)
        except EpisodeError:
            continue
        shown = tuple(names[shown] for shown in episode.memory_ids)
        found[id] = [episode.reward, names.get(episode.memory_id), shown]
    return found


def fits(place, memory, model, ids):
    """Whether bank and finished copies are exactly what the model says."""
    same = seen(memory) == model.seen() and seen_episodes(memory, ids) == model.episodes
    return same and seen_copies(place) == model.copies


def seen_copies(place):
    """What the copies hold; a copy that is there must be whole."""
    found = {}
    if (place / "backup").exists():
        with open_bank(place / "backup", create=False) as backup:
            assert backup.verify().problems == ()
            found["backup"] = seen(backup)
    if (place / "bank.jsonl").exists():
        with EpisodicMemory.import_jsonl(place / "bank.jsonl", ":memory:") as imported:
            assert imported.verify().problems == ()
            found["bank.jsonl"] = seen(imported)
    return found


def reopened(place):
    """The bank, or None where it was not made yet."""
    try:
        return open_bank(place / "bank", create=False)
    except StoreNotFoundError:
        return None
