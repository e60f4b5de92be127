"""A power cut at any moment loses no acknowledged write, whatever the disk did not sync."""

import hashlib
import random
import shutil
from itertools import count

import pytest
from disk_claims import check_survived
from disk_power import Disk, put_down


def moments(traced, stride, *, strict=False):
    """The disk after every `stride`-th operation and acknowledgement, with the steps done."""
    disk, done = Disk(strict=strict), 0
    for number, (kind, *what) in enumerate(traced[1]):
        if kind == "m":
            done += 1
        else:
            disk.apply(kind, *what)
        if number % stride == 0 or kind == "m":
            yield number, disk, done


@pytest.fixture
def check(traced, tmp_path):
    """Puts a state down and checks it; a state seen before is not checked again."""
    seen, numbers = set(), count()

    def check_once(files, done):
        key = hashlib.sha256(repr((done, sorted(files.items()))).encode()).digest()
        if key not in seen:
            seen.add(key)
            place = tmp_path / f"state {next(numbers)}"
            put_down(files, traced[0], place)
            check_survived(place, done)
            shutil.rmtree(place)

    return check_once


def test_the_rebuilt_disk_is_the_real_one(traced):
    *_, (_, disk, _) = moments(traced, 1)
    real = {str(path): path for path in traced[0].rglob("*")}
    rebuilt = disk.kept()
    assert rebuilt.keys() == real.keys()
    for path, content in rebuilt.items():
        assert content is None or content == real[path].read_bytes()


@pytest.mark.parametrize("strict", [False, True], ids=["names in order", "names by folder"])
def test_losing_all_that_was_not_synced_loses_nothing_acknowledged(traced, check, much, strict):
    for _, disk, done in moments(traced, much(5, 1), strict=strict):
        check(disk.lost(), done)


def test_a_disk_that_wrote_everything_holds_all_that_was_acknowledged(traced, check, much):
    for _, disk, done in moments(traced, much(9, 1)):
        check(disk.kept(), done)


@pytest.mark.parametrize("seed", range(3))
def test_losing_some_blocks_loses_nothing_acknowledged(traced, check, much, seed):
    for number, disk, done in moments(traced, much(17, 1)):
        check(disk.mixed(random.Random(1000 * number + seed)), done)
