"""Export, import and backup: nothing is lost, nothing is doubled, nothing half done appears."""

import json
import os
import stat

import pytest
from fakes import FakeEmbeddings

from langchain_memrl import EpisodicMemory, LearningConfig
from langchain_memrl.errors import (
    ConfigError,
    EmbeddingMismatchError,
    InputError,
    MemRLError,
    StoreError,
)


@pytest.fixture
def lived_in(open_bank):
    """A bank with two namespaces, rewards, an open episode, a held answer and marks."""
    memory = open_bank(learning=LearningConfig(step_size=0.4))
    for number in range(9):
        memory.remember(f"task {number % 3}", f"lesson {number}", metadata={"n": number})
    memory.remember("task 1", "another tenant", namespace="acme", outcome="success")
    for number in range(6):
        memory.recall(f"task {number % 3}", episode_id=f"e{number}", score_threshold=None, k=2)
        memory.reinforce(f"e{number}", reward=(-1.0) ** number)
    memory.recall("task 0", episode_id="open", score_threshold=None)
    memory.hold("held", intent="task 7", trajectory="did this and that")
    newest, older = memory.list(limit=2)
    memory.pin(newest.id)
    memory.disable(older.id)
    return memory


def everything(memory):
    """All that can be seen of a bank, namespace by namespace."""
    seen = {}
    for name in memory.namespaces():
        view = memory.in_namespace(name)
        memories = view.list(limit=None)
        seen[name] = (
            memories,
            [view.history(item.id) for item in memories],
            view.stats(),
            [view.episode(item.episode_id) for item in memories],
        )
    return seen


def test_an_import_brings_everything_back(lived_in, tmp_path):
    lines = lived_in.export_jsonl(tmp_path / "dump.jsonl")
    with EpisodicMemory.import_jsonl(
        tmp_path / "dump.jsonl", tmp_path / "copy", embeddings=FakeEmbeddings()
    ) as copy:
        assert everything(copy) == everything(lived_in)
        assert copy.learning == lived_in.learning
        assert copy.verify().ok
        asked = copy.recall("task 1", score_threshold=None, k=9)
        assert asked.candidates == lived_in.recall("task 1", score_threshold=None, k=9).candidates
        assert copy.reinforce("e1", reward=-1.0).applied is False
        assert copy.reinforce("held", reward=1.0).memory_id is not None
    assert lines == len((tmp_path / "dump.jsonl").read_text().splitlines())


def test_what_was_recorded_for_an_open_episode_is_still_what_gets_rewarded(lived_in, tmp_path):
    lived_in.export_jsonl(tmp_path / "dump.jsonl")
    recorded = lived_in.recall("task 0", episode_id="open")
    with EpisodicMemory.import_jsonl(
        tmp_path / "dump.jsonl", ":memory:", embeddings=FakeEmbeddings()
    ) as copy:
        again = copy.recall("task 0", episode_id="open")
        assert (again.ids, again.candidates) == (recorded.ids, recorded.candidates)
        assert {credit.id for credit in copy.reinforce("open", reward=1.0).credits} == set(
            again.ids
        )


def test_importing_twice_changes_nothing(lived_in, tmp_path):
    lived_in.export_jsonl(tmp_path / "dump.jsonl")
    before = everything(lived_in)
    EpisodicMemory.import_jsonl(tmp_path / "dump.jsonl", tmp_path / "bank").close()
    assert everything(lived_in) == before
    assert lived_in.verify().ok


@pytest.mark.parametrize("batches", [0, 1, 2, 3])
def test_an_interrupted_import_is_completed_by_repeating_it(
    lived_in, tmp_path, monkeypatch, batches
):
    monkeypatch.setattr("langchain_memrl.store.transfer.BATCH", 20)
    lived_in.export_jsonl(tmp_path / "dump.jsonl")
    done = []

    def stop(lines, total):
        done.append(lines)
        if len(done) > batches:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        EpisodicMemory.import_jsonl(
            tmp_path / "dump.jsonl", tmp_path / "copy", embeddings=FakeEmbeddings(), progress=stop
        )
    with EpisodicMemory.open(tmp_path / "copy", create=False) as half:
        assert half.verify().ok
    with EpisodicMemory.import_jsonl(tmp_path / "dump.jsonl", tmp_path / "copy") as copy:
        assert everything(copy) == everything(lived_in)


def test_two_banks_merge_and_q_is_replayed_from_both_histories(open_bank, tmp_path):
    home = open_bank(tmp_path / "home")
    shared = home.remember("task", "lesson")
    home.export_jsonl(tmp_path / "start.jsonl")
    away = EpisodicMemory.import_jsonl(
        tmp_path / "start.jsonl", tmp_path / "away", embeddings=FakeEmbeddings()
    )
    home.reinforce("at-home", reward=1.0, ids=[shared.id])
    away.reinforce("away", reward=-1.0, ids=[shared.id])
    own = away.remember("task", "learned away")
    away.export_jsonl(tmp_path / "away.jsonl")
    away.close()

    EpisodicMemory.import_jsonl(tmp_path / "away.jsonl", tmp_path / "home").close()

    # 0 -> .3 at home, then .3 + .3 * (-1 - .3) = -.09.
    assert home.get(shared.id).q_value == pytest.approx(-0.09)
    assert home.get(shared.id).updates == 2
    assert home.get(own.id).lesson == "learned away"
    assert home.verify().ok


def test_a_bank_of_another_model_is_refused_untouched(lived_in, open_bank, tmp_path):
    lived_in.export_jsonl(tmp_path / "dump.jsonl")
    with open_bank(tmp_path / "other", embeddings=FakeEmbeddings(model="other")) as other:
        other.remember("task", "lesson")
        before = everything(other)
    with pytest.raises(EmbeddingMismatchError, match="import into a new bank"):
        EpisodicMemory.import_jsonl(tmp_path / "dump.jsonl", tmp_path / "other")
    with open_bank(tmp_path / "other") as other:
        assert everything(other) == before


def test_settings_given_with_an_import_have_to_be_those_of_the_bank(lived_in, folder, tmp_path):
    lived_in.export_jsonl(tmp_path / "dump.jsonl")
    with pytest.raises(ConfigError):
        EpisodicMemory.import_jsonl(
            tmp_path / "dump.jsonl", folder, learning=LearningConfig(step_size=0.1)
        )


def lines_of(path):
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda lines: lines[:-1], "no complete export"),
        (lambda lines: lines[1:], "no export of a memory bank"),
        (lambda lines: [], "no complete export"),
        (lambda lines: ["{}", *lines[1:]], "no export of a memory bank"),
        (
            lambda lines: [line.replace('"reward": 1.0', '"reward": NaN') for line in lines],
            "expected finite numbers",
        ),
        (
            lambda lines: [line.replace('"reward": 1.0', '"reward": 7.0') for line in lines],
            "its history leads to",
        ),
        (
            lambda lines: [
                line.replace('"disabled"', '"disabled) VALUES (1); --"') for line in lines
            ],
            "unknown fields",
        ),
    ],
)
def test_a_spoilt_export_is_refused(lived_in, tmp_path, spoil, said):
    path = tmp_path / "dump.jsonl"
    lived_in.export_jsonl(path)
    path.write_text("\n".join(spoil(lines_of(path))), encoding="utf-8")
    with pytest.raises((MemRLError, ValueError), match=said):
        EpisodicMemory.import_jsonl(path, tmp_path / "copy")


def test_a_missing_export_is_said(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        EpisodicMemory.import_jsonl(tmp_path / "none.jsonl", tmp_path / "copy")


def test_an_export_is_private_and_complete_or_not_there(lived_in, tmp_path):
    path = tmp_path / "dump.jsonl"

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lived_in.export_jsonl(path, progress=stop)
    assert not [name for name in os.listdir(tmp_path) if "dump" in name]
    lived_in.export_jsonl(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(lines_of(path)[-1])["kind"] == "end"


def test_an_export_shows_one_state_although_others_write_meanwhile(
    open_bank, tmp_path, monkeypatch
):
    memory = open_bank()
    memory.remember("task", "before")
    from langchain_memrl.store import upkeep

    real = upkeep.export_lines

    def slowly(*arguments):
        for number, line in enumerate(real(*arguments)):
            if number == 1:
                memory.remember("task", "meanwhile")
            yield line

    monkeypatch.setattr(upkeep, "export_lines", slowly)
    memory.export_jsonl(tmp_path / "dump.jsonl")
    text = (tmp_path / "dump.jsonl").read_text()
    assert "before" in text
    assert "meanwhile" not in text


def test_a_backup_is_the_bank_as_it_is(lived_in, open_bank, tmp_path):
    lived_in.backup(tmp_path / "copies" / "monday")
    copy = open_bank(tmp_path / "copies" / "monday")
    assert everything(copy) == everything(lived_in)
    assert copy.verify().ok
    mode = (tmp_path / "copies" / "monday" / "memrl.sqlite3").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600


def test_a_backup_never_overwrites(lived_in, tmp_path):
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").write_text("mine")
    with pytest.raises(InputError, match="not empty"):
        lived_in.backup(tmp_path / "used")
    (tmp_path / "file").write_text("mine")
    with pytest.raises((InputError, StoreError)):
        lived_in.backup(tmp_path / "file")
    assert (tmp_path / "used" / "file").read_text() == "mine"


def test_a_bank_in_memory_can_be_exported_and_backed_up(bank, open_bank, tmp_path):
    kept = bank.remember("task", "lesson")
    bank.export_jsonl(tmp_path / "dump.jsonl")
    bank.backup(tmp_path / "copy")
    assert open_bank(tmp_path / "copy").get(kept.id) == kept
