"""A damaged, lost or exchanged file: the right answer or a clear error, and the file is kept."""

import random
import shutil

import pytest
from fakes import FakeEmbeddings

from langchain_memrl import EpisodicMemory
from langchain_memrl.errors import MemRLError, StoreCorruptError, StoreError, StoreNotFoundError
from langchain_memrl.store.embedded.marker import FILE_NAME as MARKER
from langchain_memrl.store.embedded.sidecar import FILE_NAME as DATABASE

INDEX = "intents.faiss"
PAGE = 4096
COUNT = 60
EMBEDDINGS = FakeEmbeddings()


def open_bank(folder):
    return EpisodicMemory.open(folder, embeddings=EMBEDDINGS)


def fill(folder):
    with open_bank(folder) as memory:
        memory.remember_many(
            [
                {
                    "intent": f"task {n}",
                    "lesson": f"lesson {n} " + "word " * n,
                    "metadata": {"n": n},
                }
                for n in range(COUNT)
            ]
        )
        for n in range(8):
            memory.recall(f"task {n}", episode_id=f"e{n}", k=3)
            memory.reinforce(f"e{n}", reward=(-1) ** n)
        memory.recall("task 9", episode_id="open")
        memory.hold("held", intent="a held task", trajectory="done")


def questions(memory):
    """Every kind of look at a bank, one call each."""
    yield lambda: memory.list(limit=None)
    yield lambda: [memory.recall(f"task {n}", score_threshold=None) for n in range(0, COUNT, 7)]
    yield lambda: memory.recall("something else", score_threshold=None, filter={"n": {"$gt": 30}})
    yield memory.stats
    yield lambda: [memory.history(one.id) for one in memory.list(limit=None)]
    yield lambda: [memory.episode(id) for id in ("e3", "open", "held")]
    yield lambda: memory.recall("task 9", episode_id="open")
    yield lambda: memory.search_text("word word")
    yield lambda: memory.learning


def answers(folder):
    """What a bank answers, and the errors it raises, call by call."""
    told = []
    try:
        memory = open_bank(folder)
    except (StoreError, MemRLError) as error:
        return [error]
    with memory:
        for ask in questions(memory):
            try:
                told.append(plain(ask()))
            except MemRLError as error:
                told.append(error)
    return told


def plain(answer):
    """A recall has an id of its own, which differs each time."""
    if isinstance(answer, list):
        return [plain(one) for one in answer]
    if hasattr(answer, "recall_id"):
        return [(one.memory, one.similarity, one.score) for one in answer.memories]
    return answer


def is_right_or_refused(told, expected):
    """Whether every call gave the undamaged bank's answer or said that something is damaged."""
    if len(told) == 1 and isinstance(told[0], Exception):
        return isinstance(told[0], StoreError)
    return all(
        isinstance(one, StoreError) or one == right
        for one, right in zip(told, expected, strict=True)
    )


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A closed bank, and what it answers."""
    folder = tmp_path_factory.mktemp("good") / "bank"
    fill(folder)
    copy = folder.parent / "copy"
    shutil.copytree(folder, copy)
    return folder, answers(copy)


@pytest.fixture
def damaged(good, tmp_path):
    """Makes a copy of the good bank and changes the bytes of one of its files."""

    def damage(name, change, *, crashed=False):
        folder = tmp_path / "damaged"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(good[0], folder)
        if crashed:
            (folder / MARKER).write_bytes(b"")
        path = folder / name
        data = change(path.read_bytes())
        path.write_bytes(data)
        return folder, data

    return damage


def flip(position, bit):
    def change(data):
        changed = bytearray(data)
        changed[position % len(data)] ^= 1 << bit
        return bytes(changed)

    return change


def flips(count, seed):
    rng = random.Random(seed)
    return [flip(rng.randrange(2**40), rng.randrange(8)) for _ in range(count)]


# --- one flipped bit ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [DATABASE, INDEX, MARKER])
def test_a_flipped_bit_never_gives_a_wrong_answer(good, damaged, much, name):
    for change in flips(much(100, 1000), 1):
        folder, data = damaged(name, change)
        assert is_right_or_refused(answers(folder), good[1])
        if name == DATABASE:
            assert (folder / name).read_bytes() == data


def test_a_flipped_bit_in_a_bank_that_crashed_never_shows_a_wrong_text_or_vector(
    good, damaged, much
):
    """Here only the rows' own checksums stand guard: numbers and indexes have none.

    A text or a vector is then right or refused; a number may be wrong until `verify`.
    """
    noticed = 0
    for change in flips(much(100, 1000), 2):
        folder, _ = damaged(DATABASE, change, crashed=True)
        (folder / INDEX).unlink()
        told = answers(folder)
        assert all(not isinstance(one, Exception) or isinstance(one, StoreError) for one in told)
        if len(told) > 1 and not isinstance(told[0], Exception):
            texts = {one.id: (one.intent, one.experience, one.metadata) for one in good[1][0]}
            for one in told[0]:
                assert (one.intent, one.experience, one.metadata) == texts[one.id]
        noticed += any(isinstance(one, StoreError) for one in told)
    assert noticed > 10


# --- cut off, zeroed, emptied -------------------------------------------------------------------


def cuts(path):
    """A file cut at every page, and with its tail zeroed from there on."""
    size = path.stat().st_size
    for end in range(0, size, PAGE):
        yield lambda data, end=end: data[:end]
        yield lambda data, end=end: data[:end] + bytes(len(data) - end)


@pytest.mark.parametrize("name", [DATABASE, INDEX, MARKER])
@pytest.mark.parametrize("crashed", [False, True])
def test_a_file_cut_off_or_zeroed_anywhere_never_gives_a_wrong_answer(good, damaged, name, crashed):
    for change in cuts(good[0] / name):
        folder, data = damaged(name, change, crashed=crashed and name != MARKER)
        told = answers(folder)
        assert is_right_or_refused(told, good[1])
        if name == DATABASE:
            assert any(isinstance(one, StoreCorruptError) for one in told)
            assert (folder / name).read_bytes() == data
        else:
            assert told == good[1]


def test_an_empty_database_beside_its_marker_is_no_new_bank(damaged):
    for crashed in (False, True):
        folder, _ = damaged(DATABASE, lambda data: b"", crashed=crashed)
        with pytest.raises(StoreCorruptError, match=f"{DATABASE} is empty or missing"):
            open_bank(folder)
        assert (folder / DATABASE).read_bytes() == b""


@pytest.mark.parametrize("read_only", [False, True])
def test_a_lost_database_beside_its_marker_is_no_new_bank(damaged, read_only):
    folder, _ = damaged(DATABASE, lambda data: data)
    (folder / DATABASE).unlink()
    with pytest.raises(StoreCorruptError, match="restore a backup"):
        EpisodicMemory.open(folder, read_only=read_only)
    assert not (folder / DATABASE).exists()


def test_a_folder_without_a_marker_and_a_database_is_a_new_bank(damaged):
    folder, _ = damaged(DATABASE, lambda data: data)
    (folder / DATABASE).unlink()
    (folder / MARKER).unlink()
    with pytest.raises(StoreNotFoundError):
        EpisodicMemory.open(folder, create=False)
    with open_bank(folder) as memory:
        assert memory.list() == []


# --- exchanged for an older one -----------------------------------------------------------------


@pytest.fixture
def two_days(tmp_path):
    """A bank as it was on one day, and the folder on the next."""
    folder, monday = tmp_path / "bank", tmp_path / "monday"
    fill(folder)
    shutil.copytree(folder, monday)
    with open_bank(folder) as memory:
        memory.remember("written on tuesday", "lesson")
        memory.recall("written on tuesday")
    return folder, monday


@pytest.mark.parametrize("crashed", [False, True])
def test_an_older_database_is_noticed_and_may_be_accepted(two_days, crashed):
    folder, monday = two_days
    if crashed:  # opened again, and killed before anything was written
        said = (folder / MARKER).read_text().replace('"closed": true', '"closed": false')
        (folder / MARKER).write_text(said)
    shutil.copy(monday / DATABASE, folder / DATABASE)
    before = (folder / DATABASE).read_bytes()
    with open_bank(folder) as memory:
        with pytest.raises(StoreCorruptError, match="not the database that was closed last"):
            memory.recall("task 1")
        with pytest.raises(StoreCorruptError, match=MARKER):
            memory.remember("task", "lesson")
        (problem,) = memory.verify().problems
        assert "restore a backup" in problem
    assert (folder / DATABASE).read_bytes() == before
    (folder / MARKER).unlink()
    with open_bank(folder) as memory:
        assert memory.recall("task 1", k=1, q_weight=0).memories[0].memory.intent == "task 1"
        memory.remember("task", "lesson")
        assert memory.verify().problems == ()
    with open_bank(folder) as memory:
        assert memory.stats().memories == COUNT + 1


def test_an_older_index_is_replaced_with_one_warning(two_days, caplog):
    folder, monday = two_days
    shutil.copy(monday / INDEX, folder / INDEX)
    with open_bank(folder) as memory:
        assert len(memory.recall("written on tuesday", k=1, q_weight=0).ids) == 1
        assert memory.verify().problems == ()
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_an_older_marker_is_noticed(two_days):
    folder, monday = two_days
    shutil.copy(monday / MARKER, folder / MARKER)
    with open_bank(folder) as memory, pytest.raises(StoreCorruptError, match=MARKER):
        memory.list()


# --- no false alarm -----------------------------------------------------------------------------


def test_a_copied_or_touched_bank_is_the_same_bank(good, tmp_path):
    shutil.copytree(good[0], tmp_path / "copy", copy_function=shutil.copyfile)
    (tmp_path / "copy" / DATABASE).touch()
    assert answers(tmp_path / "copy") == good[1]


def test_a_bank_that_is_only_read_is_not_written(good, tmp_path):
    shutil.copytree(good[0], tmp_path / "copy")
    before = {path.name: path.read_bytes() for path in (tmp_path / "copy").iterdir()}
    with EpisodicMemory.open(tmp_path / "copy", embeddings=EMBEDDINGS) as memory:
        memory.recall("task 1")
        memory.list()
    assert {path.name: path.read_bytes() for path in (tmp_path / "copy").iterdir()} == before


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("writer", [0, 1])
def test_of_two_that_have_it_open_the_last_one_closes_it(tmp_path, order, writer):
    pair = [open_bank(tmp_path / "bank") for _ in range(2)]
    pair[writer].remember("task", "lesson")
    for place in order:
        pair[place].close()
    assert '"closed": true' in (tmp_path / "bank" / MARKER).read_text()
    with open_bank(tmp_path / "bank") as memory:
        assert memory.stats().memories == 1


def test_a_bank_in_use_is_open_to_others(tmp_path):
    with open_bank(tmp_path / "bank") as first:
        for number in range(3):
            first.remember(f"task {number}", "lesson")
            with open_bank(tmp_path / "bank") as second:
                second.remember(f"another task {number}", "lesson")
            assert '"closed": false' in (tmp_path / "bank" / MARKER).read_text()
    with open_bank(tmp_path / "bank") as memory:
        assert memory.stats().memories == 6
