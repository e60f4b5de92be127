"""A process that dies at any write, sync, cut, rename or removal leaves a whole bank behind."""

import shutil
import signal
import sqlite3
from contextlib import closing

import pytest
from disk_claims import check_compacts, check_readable, check_survived

from langchain_memrl.store.embedded.sidecar import FILE_NAME


@pytest.mark.parametrize("mode", ["die", "die halfway"])
def test_a_crash_at_any_operation_loses_nothing_acknowledged(disk, tmp_path, boundaries, mode):
    for nth in boundaries:
        place = tmp_path / f"run {nth}"
        code, said = disk.run(place, mode=mode, nth=nth)
        assert code == -signal.SIGKILL
        check_readable(place, len(said))
        check_survived(place, len(said))
        check_compacts(place)
        shutil.rmtree(place)


def test_compacting_leaves_no_vector_of_the_last_memory_behind(open_bank, folder):
    memory = open_bank()
    made = memory.remember("reset a router", "lesson")
    memory.recall("reset a router")
    memory.close()
    memory = open_bank()
    with closing(sqlite3.connect(folder / FILE_NAME)) as db:
        (vector,) = db.execute("SELECT vector FROM intents").fetchone()
    assert any(vector in path.read_bytes() for path in folder.iterdir())
    memory.forget(ids=[made.id])
    (folder / "intents.faiss.tmp").write_bytes(vector)
    memory.compact()
    assert not any(vector in path.read_bytes() for path in folder.iterdir())
    assert memory.recall("reset a router").ids == ()
    assert memory.verify().problems == ()
