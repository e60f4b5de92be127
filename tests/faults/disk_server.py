"""Runs workloads under the shim: this process imports everything once, each run is a fork of it.

Orders come in as JSON lines, one answer each: how the fork ended. What a fork has to say, it
writes line by line to a file of its own.
"""

import ctypes
import json
import os
import shutil
import sys
import traceback
from pathlib import Path

import disk_work
from disk_work import SHARED, WHOLE, WRITING, Worker, models_of

from langchain_memrl.errors import StoreError

FAIL_FROM = 4


class Run:
    """One fork: a workload, a fault, and the file of its words."""

    def __init__(self, shim, order):
        self.shim, self.order = shim, order
        self.place = Path(order["place"])
        self.words = open(order["words"], "w", buffering=1, encoding="utf-8")  # noqa: SIM115
        self.worker = Worker(self.place)

    def arm(self):
        fault = [self.order[name] for name in ("mode", "nth", "errno")]
        self.shim.shim_set(str(self.place).encode(), *fault)

    def say(self, **word):
        self.words.write(json.dumps(word) + "\n")

    def work(self):
        """Do every step; each is acknowledged once it has returned."""
        if self.order.get("trace"):
            self.shim.shim_trace(os.open(self.order["trace"], os.O_CREAT | os.O_WRONLY, 0o600))
        self.arm()
        for name, do, _ in WHOLE:
            do(self.worker)
            self.shim.shim_mark(name.encode())
            self.say(done=name)
        self.say(count=self.shim.shim_count())

    def endure(self):
        """Do every step; where one fails, look, lift the fault and do it again."""
        models = models_of(WHOLE)
        ids = list(models[-1].episodes)
        self.arm()
        for number, (name, do, _) in enumerate(WHOLE):
            try:
                do(self.worker)
            except StoreError as error:
                self.say(failed=name, error=type(error).__name__, text=str(error))
                self.look(models[number], ids)
                self.shim.shim_lift()
                self.clear_away(name)
                do(self.worker)
            self.look(models[number + 1], ids)
        self.say(count=self.shim.shim_count())

    def clear_away(self, name):
        """Where a disk died for good right after a backup, it may be left; one error undoes it."""
        left = self.place / "backup"
        if name == "backup" and left.exists():
            assert self.order["mode"] == FAIL_FROM
            with disk_work.open_bank(left, create=False) as backup:
                assert backup.verify().problems == ()
            shutil.rmtree(left)

    def only_read(self):
        """Do all but the last steps; then the disk is read-only, until it is lifted."""
        closing = next(n for n, step in enumerate(WHOLE) if step[0] == "close")
        for _, do, _ in WHOLE[:closing]:
            do(self.worker)
        models = models_of(WHOLE)
        self.arm()
        for options in ({"read_only": True}, {}):
            with disk_work.open_bank(self.place / "bank", **options) as memory:
                worker = Worker(self.place, memory)
                assert memory.recall(SHARED, k=1, q_weight=0).ids == (worker.id(SHARED),)
                assert memory.verify().problems == ()
                self.refuse(worker)
        self.refuse(self.worker)
        self.look(models[closing], list(models[-1].episodes))
        self.shim.shim_lift()
        for _, do, _ in WHOLE[closing:]:
            do(self.worker)

    def read_closed(self):
        """A closed bank on a disk that is read-only from the start."""
        for _, do, _ in WHOLE:
            do(self.worker)
        self.arm()
        with disk_work.open_bank(self.place / "bank", read_only=True) as memory:
            assert disk_work.seen(memory) == models_of(WHOLE)[-1].seen()
            assert memory.verify().problems == ()
            self.worker.memory = memory
            self.say(found=memory.recall(SHARED, k=1, q_weight=0).ids[0] == self.worker.id(SHARED))
            memory.export_jsonl(self.place.with_name("bank.jsonl"))
            self.refuse(self.worker)

    def refuse(self, worker):
        """Every kind of writing fails with our error."""
        for name, do, _ in WRITING:
            try:
                do(worker)
            except StoreError as error:
                self.say(failed=name, text=str(error))
            else:
                raise AssertionError(f"{name} did not fail")

    def look(self, model, ids):
        """Everything acknowledged can be read, and nothing else is there."""
        if self.worker.memory is not None:
            assert disk_work.seen(self.worker.memory) == model.seen()
            assert disk_work.seen_episodes(self.worker.memory, ids) == model.episodes


def serve(shim):
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            run = Run(shim, order)
            try:
                getattr(run, order["what"])()
            except BaseException:
                shim.shim_lift()
                run.say(broken=traceback.format_exc())
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve(ctypes.CDLL(os.environ["LD_PRELOAD"]))
