"""A full, broken or read-only disk fails the call, with our error, and nothing else."""

import errno
import shutil

import pytest
from disk_claims import check_survived
from disk_work import WHOLE, WRITING

ERRORS = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS)


@pytest.fixture(scope="module")
def total(disk, tmp_path_factory):
    """How many operations the workload has."""
    code, said = disk.run(tmp_path_factory.mktemp("counted") / "run", what="endure")
    assert code == 0, said[-1]
    return said[-1]["count"]


@pytest.mark.parametrize("mode", ["fail once", "fail halfway", "fail from"])
def test_a_disk_error_at_any_operation_fails_the_call_and_nothing_else(
    disk, total, tmp_path, much, mode
):
    failed = 0
    for nth in range(much(5, 1), total + 1, much(total // 50, 1)):
        other = ERRORS[nth % 3 + 1]
        for error in much([(errno.ENOSPC, other)[nth % 2]], [errno.ENOSPC, other]):
            place = tmp_path / f"run {nth} {error}"
            code, said = disk.run(place, what="endure", mode=mode, nth=nth, errno=error)
            assert code == 0, (nth, errno.errorcode[error], said[-1]["broken"])
            for word in said[:-1]:
                failed += 1
                names = (str(place / "bank"), str(place / "backup"))
                assert any(name in word["text"] for name in names), word
            check_survived(place, len(WHOLE))
            assert not list(place.glob(".*")) or mode == "fail from"
            shutil.rmtree(place)
    assert failed > 10


def test_on_a_disk_that_became_read_only_everything_can_be_read(disk, tmp_path):
    code, said = disk.run(
        tmp_path / "run", what="only_read", mode="fail from", nth=1, errno=errno.EROFS
    )
    assert code == 0, said[-1]["broken"]
    refusals = [word for word in said if "failed" in word]
    assert len(refusals) == 3 * len(WRITING)
    for word in refusals:
        assert str(tmp_path / "run") in word["text"], word
    check_survived(tmp_path / "run", len(WHOLE))
