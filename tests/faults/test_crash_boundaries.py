"""A process that dies at any write, sync, cut, rename or removal leaves a whole bank behind."""

import shutil
import signal

import pytest
from disk_claims import check_survived


def count_operations(disk, place):
    code, said = disk.run(place)
    assert code == 0, said[-1]
    return said[-1]["count"]


@pytest.mark.parametrize("mode", ["die", "die halfway"])
def test_a_crash_at_any_operation_loses_nothing_acknowledged(disk, tmp_path, much, mode):
    total = count_operations(disk, tmp_path / "uncut")
    assert total > 400
    for nth in range(much(3, 1), total + 1, much(total // 80, 1)):
        place = tmp_path / f"run {nth}"
        code, said = disk.run(place, mode=mode, nth=nth)
        assert code == -signal.SIGKILL
        check_survived(place, len(said))
        shutil.rmtree(place)
