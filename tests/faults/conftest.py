import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from disk_power import read_trace

HERE = Path(__file__).parent
MODES = ("nothing", "die", "die halfway", "fail once", "fail from", "fail halfway")


class DiskServer:
    """Runs workloads in processes whose disk goes wrong; see `disk_server.py`."""

    def __init__(self, shim):
        paths = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "disk_server.py")],
            env={**os.environ, "LD_PRELOAD": str(shim), "PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, place, *, what="work", mode="nothing", nth=0, errno=0, **more):
        """One run in `place`; its exit code and what it said."""
        place.mkdir()
        words = place.with_name(f"{place.name}.words")
        order = {"what": what, "mode": MODES.index(mode), "nth": nth, "errno": errno, **more}
        order |= {"place": str(place), "words": str(words)}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        said = [json.loads(line) for line in words.read_text("utf-8").splitlines()]
        return code, said

    def close(self):
        self._process.stdin.close()
        self._process.wait()


@pytest.fixture(scope="session")
def disk(tmp_path_factory):
    """A server whose runs work on a disk that dies or fails at the n-th operation."""
    shim = tmp_path_factory.mktemp("shim") / "shim.so"
    source = str(HERE / "shim.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(shim), source, "-ldl"], check=True)
    server = DiskServer(shim)
    yield server
    server.close()


@pytest.fixture(scope="session")
def traced(disk, tmp_path_factory):
    """The folder of an undisturbed run, and everything it did to its disk."""
    folder = tmp_path_factory.mktemp("traced")
    code, said = disk.run(folder / "work", trace=str(folder / "trace"))
    assert code == 0, said[-1]
    return folder / "work", list(read_trace(folder / "trace"))


@pytest.fixture
def boundaries(traced, much):
    """The numbers of the operations that are tried.

    Short: all that are not SQLite's own, all that change names, and every 17th of the rest.
    """
    made = [(kind, path) for kind, path, *_ in traced[1] if kind != "m"]
    assert len(made) > 400
    return [
        number
        for number, (kind, path) in enumerate(made, 1)
        if number % much(17, 1) == 0 or kind in "cdru" or "memrl.sqlite3" not in path
    ]
