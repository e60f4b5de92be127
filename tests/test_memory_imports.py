"""An export that holds anything unusable is refused as a whole."""

import base64
import json

import numpy as np
import pytest
from fakes import FakeEmbeddings

from langchain_memrl import EpisodicMemory
from langchain_memrl.errors import InputError

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
    "q out of range": ("memories", "q_init", 7.0),
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
    with EpisodicMemory.open(tmp_path / "copy", embeddings=FakeEmbeddings()) as copy:
        assert copy.list() == []


def test_a_line_that_is_no_object_is_refused_with_its_number(tmp_path, open_bank):
    memory = open_bank()
    memory.remember("task", "lesson")
    memory.export_jsonl(tmp_path / "dump.jsonl")
    for broken in ("5", "[]", "{", "null"):
        first, _, *rest = (tmp_path / "dump.jsonl").read_text().splitlines()
        (tmp_path / "dump.jsonl").write_text("\n".join([first, broken, *rest]))
        with pytest.raises(InputError, match=r"dump\.jsonl, line 2"):
            EpisodicMemory.import_jsonl(tmp_path / "dump.jsonl", tmp_path / "copy")
