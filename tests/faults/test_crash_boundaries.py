"""A process that dies at any write, sync, cut, rename or removal leaves a whole bank behind."""

import shutil
import signal

import disk_work
import pytest
from disk_claims import check_survived


def count_operations(disk, place, steps):
    code, said = disk.run(place, steps)
    assert code == 0, said[-1]
    return said[-1]["count"]


@pytest.mark.parametrize("mode", ["die", "die halfway"])
def test_a_crash_at_any_operation_loses_nothing_acknowledged(disk, tmp_path, much, mode):
    steps = "WHOLE"
    total = count_operations(disk, tmp_path / "uncut", steps)
    stride = much(total // 150, 1)
    for nth in range(much(3, 1), total + 1, stride):
        place = tmp_path / f"run {nth}"
        code, said = disk.run(place, steps, mode=mode, nth=nth)
        assert code == -signal.SIGKILL
        check_survived(place, getattr(disk_work, steps), len(said))
        shutil.rmtree(place)
