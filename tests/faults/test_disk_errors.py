"""A full, broken or read-only disk fails the call, with our error, and nothing else."""

import errno
import shutil

import pytest
from disk_claims import check_survived
from disk_work import WHOLE, WRITING

ERRORS = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS)


@pytest.mark.parametrize(
    ("mode", "first"), [("fail once", 0), ("fail halfway", 1), ("fail from", 2)]
)
def test_a_disk_error_at_any_operation_fails_the_call_and_nothing_else(
    disk, boundaries, tmp_path, mode, first
):
    """The error is another one from operation to operation."""
    failed = 0
    for nth in boundaries:
        error = ERRORS[(nth + first) % len(ERRORS)]
        place = tmp_path / f"run {nth}"
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


def test_a_closed_bank_on_a_read_only_disk_can_be_read_but_not_written(disk, tmp_path):
    code, said = disk.run(
        tmp_path / "run", what="read_closed", mode="fail from", nth=1, errno=errno.EROFS
    )
    assert code == 0, said[-1]["broken"]
    assert said[0] == {"found": True}
    assert len(said) == 1 + len(WRITING)
    check_survived(tmp_path / "run", len(WHOLE))
