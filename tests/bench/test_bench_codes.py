from langchain_memrl.bench import recalls
from langchain_memrl.bench.data import Filled, Tasks, fill
from langchain_memrl.memory import EpisodicMemory
from langchain_memrl.store.embedded import coarse, index


def test_a_large_bank_is_measured_by_its_codes_once_they_are_made(tmp_path, monkeypatch):
    monkeypatch.setattr(coarse, "LARGE", 4000 * 16)
    monkeypatch.setattr(index, "PIECE_BYTES", 1000 * 16 * 4)  # codes are made of full pieces
    tasks = Tasks(4000, 16)
    with EpisodicMemory.open(tmp_path / "bank", embeddings=tasks) as memory:
        fill(memory, tasks)
        timed, found = recalls.by_codes(Filled(memory, tasks, tmp_path, rounds=5))
        (own,) = memory._store._vectors._indexes.values()
        assert own.codes() is not None
    assert timed.ratio is not None
    assert (found.unit, found.times.calls) == ("%", 1)
    assert 90 <= found.value <= 100
