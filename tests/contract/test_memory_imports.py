"""An export that holds anything unusable is refused as a whole."""

import base64
import json

import numpy as np
import pytest

from langchain_memrl import EpisodicMemory, LearningConfig
from langchain_memrl.errors import InputError
from langchain_memrl.offline import HashingEmbeddings

DIMENSION = 16


def vector(value, size=DIMENSION):
    data = np.full(size, value, dtype="<f4").tobytes()
    return {"base64": base64.b64encode(data).decode()}


SPOILT = {
    "vector nan": ("intents", "vector", vector(np.nan)),
    "vector zero": ("intents", "vector", vector(0)),
    "vector long": ("intents", "vector", vector(9)),
    "vector of another size": ("intents", "vector", vector(8**-0.5, 8)),
    "vector cut off": ("intents", "vector", {"base64": "YWJj"}),
    "vector text": ("intents", "vector", "abc"),
    "q out of range": ("memories", "q", 7.0),
    "q infinite": ("memories", "q_init", float("inf")),
    "q text": ("memories", "q_init", "high"),
    "selections": ("memories", "selections", -4),
    "intent unknown": ("memories", "intent_id", 999),
    "time": ("memories", "created_at", "yesterday"),
    "lesson number": ("memories", "text", {"lesson": 5}),
    "lesson nul": ("memories", "text", {"lesson": "a\0b"}),
    "metadata": ("memories", "text", {"metadata": "{broken"}),
    "step infinite": ("q_history", "step_size", float("inf")),
    "step large": ("q_history", "step_size", 3.0),
    "calibration": ("calibrations", "std", float("inf")),
    "kind": ("ledger", "kind", "strange"),
    "lesson missing": ("memories", "text", "none"),
    "digest text": ("intents", "digest", "abc"),
    "base64": ("intents", "digest", {"base64": "%"}),
    "q of another history": ("memories", "q", 0.25),
    "episode unknown": ("recalls", "episode", 999),
    "memory unknown": ("q_history", "memory", 999),
    "outcome": ("memories", "outcome", "maybe"),
    "pinned": ("memories", "pinned", 2),
    "selections huge": ("memories", "selections", 2**70),
    "before huge": ("q_history", "before", 10**400),
    "std negative": ("calibrations", "std", -1.0),
    "threshold": ("calibrations", "threshold", 5.0),
    "digest of another text": ("intents", "digest", {"base64": "YWJj"}),
    "recall": ("recalls", "memory_ids", "5"),
    "candidates": ("recalls", "candidates", "[[1, 2]]"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_an_export_with_an_unusable_value_is_refused_and_nothing_is_taken(
    tmp_path, open_bank, name
):
    memory = open_bank()
    memory.remember("task", "lesson")
    memory.recall("task", episode_id="e")
    memory.reinforce("e", reward=1)
    memory.export_jsonl(tmp_path / "dump.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "dump.jsonl").read_text().splitlines()]
    kind, field, value = SPOILT[name]
    for line in lines:
        if line["kind"] == kind:
            assert field in line, line
            nested = field == "text" and isinstance(value, dict)
            line[field] = line[field] | value if nested else value
    text = "\n".join(json.dumps(line).replace("Infinity", "1e999") for line in lines)
    (tmp_path / "dump.jsonl").write_text(text)
    with pytest.raises(InputError, match=r"dump\.jsonl, line|nothing was taken over"):
        EpisodicMemory.import_jsonl(tmp_path / "dump.jsonl", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_line_that_is_no_object_is_refused_with_its_number(tmp_path, open_bank):
    memory = open_bank()
    memory.remember("task", "lesson")
    memory.export_jsonl(tmp_path / "dump.jsonl")
    for broken in ("5", "[]", "{", "null"):
        first, _, *rest = (tmp_path / "dump.jsonl").read_text().splitlines()
        (tmp_path / "dump.jsonl").write_text("\n".join([first, broken, *rest]))
        with pytest.raises(InputError, match=r"dump\.jsonl, line 2"):
            EpisodicMemory.import_jsonl(tmp_path / "dump.jsonl", tmp_path / "copy")


def exported(memory, path):
    memory.export_jsonl(path)
    return path.read_text().splitlines()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda lines: [one for one in lines if '"kind": "ledger"' not in one], "lines, here are"),
        (lambda lines: [*lines, *lines], "goes on after the end"),
        (lambda lines: [*lines[:-1], '{"kind": "end", "lines": 1e30}'], "lines, here are"),
        (lambda lines: [lines[0], "[" * 100_000, *lines[1:]], "line 2"),
        (lambda lines: ["[" * 100_000, *lines[1:]], "no export of a memory bank"),
    ],
)
def test_an_export_that_lost_or_gained_lines_is_refused(tmp_path, open_bank, spoil, said):
    memory = open_bank()
    memory.remember("task", "lesson")
    memory.reinforce("e", reward=1, ids=[memory.list()[0].id])
    path = tmp_path / "dump.jsonl"
    path.write_text("\n".join(spoil(exported(memory, path))))
    with pytest.raises(InputError, match=said):
        EpisodicMemory.import_jsonl(path, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_nothing_of_another_namespace_comes_with_a_memory(tmp_path, open_bank):
    memory = open_bank()
    memory.remember("task", "lesson")
    path = tmp_path / "dump.jsonl"
    lines = exported(memory, path)
    path.write_text(
        "\n".join(
            one.replace('"default"', '"acme"', 1) if '"intents"' in one else one for one in lines
        )
    )
    with pytest.raises(InputError, match="in another namespace"):
        EpisodicMemory.import_jsonl(path, tmp_path / "copy")


def test_a_bank_of_another_reward_range_is_refused_untouched(tmp_path, folder, open_bank):
    wide = open_bank(tmp_path / "wide", learning=LearningConfig(reward_range=(-10, 10)))
    made = wide.remember("task", "lesson")
    wide.reinforce("e", reward=10, ids=[made.id])
    wide.export_jsonl(tmp_path / "dump.jsonl")
    own = open_bank()
    own.remember("own", "lesson")
    own.close()
    with pytest.raises(InputError, match=r"reward_range is \(-1, 1\).*nothing was taken over"):
        EpisodicMemory.import_jsonl(tmp_path / "dump.jsonl", folder)
    assert [one.intent for one in open_bank().list()] == ["own"]


def test_what_was_exported_after_the_range_changed_can_be_imported(tmp_path, open_bank):
    memory = open_bank(learning=LearningConfig(step_size=1))
    memory.reinforce("e", reward=1, ids=[memory.remember("task", "lesson").id])
    memory.configure(reward_range=(0.5, 1), q_init=0.6)
    memory.export_jsonl(tmp_path / "dump.jsonl")
    with EpisodicMemory.import_jsonl(tmp_path / "dump.jsonl", tmp_path / "copy") as copy:
        assert [one.q_value for one in copy.list()] == [1.0]
        assert copy.verify().problems == ()


def test_a_recall_of_a_memory_that_was_forgotten_elsewhere_still_answers(tmp_path, open_bank):
    one = open_bank(tmp_path / "one")
    made = one.remember("task", "lesson")
    one.backup(tmp_path / "two")
    one.recall("task", episode_id="e1")
    one.forget(ids=[made.id])
    one.export_jsonl(tmp_path / "dump.jsonl")
    EpisodicMemory.import_jsonl(tmp_path / "dump.jsonl", tmp_path / "two").close()
    two = open_bank(tmp_path / "two")
    assert two.recall("task", episode_id="e1").ids == ()
    assert two.verify().problems == ()


def test_a_bank_whose_intents_have_one_vector_can_be_imported(open_bank, tmp_path, new_place):
    memory = open_bank(embeddings=HashingEmbeddings(384))
    for text in ("Reset router", "reset ROUTER", "RESET router"):
        memory.remember(text, "lesson")
    memory.export_jsonl(tmp_path / "dump.jsonl")
    with EpisodicMemory.import_jsonl(tmp_path / "dump.jsonl", new_place("copy")) as copy:
        assert copy.stats().memories == 3
    memory.backup(tmp_path / "backup")
    with EpisodicMemory.open(tmp_path / "backup") as backup:
        assert backup.stats().memories == 3


def test_answers_stay_when_a_bank_that_shrank_is_imported(open_bank, tmp_path, new_place):
    memory = open_bank(embeddings=HashingEmbeddings(64))
    made = [memory.remember(f"reset a router in room {n}", f"lesson {n}") for n in range(8)]
    memory.forget(ids=[one.id for one in made[:6]])
    memory.export_jsonl(tmp_path / "dump.jsonl")
    place = new_place("copy")
    with EpisodicMemory.import_jsonl(
        tmp_path / "dump.jsonl", place, embeddings=HashingEmbeddings(64)
    ) as copy:
        for task in ("my router is stuck", "reset a router in room 7"):
            one, other = memory.recall(task), copy.recall(task)
            assert [(hit.id, hit.score) for hit in one.memories] == [
                (hit.id, hit.score) for hit in other.memories
            ]
            assert one.settings["threshold"] == other.settings["threshold"]
