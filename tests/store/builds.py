"""Makes a few thousand rows large enough for codes, and watches the threads that make them."""

import threading

from langchain_memrl.store.embedded import coarse
from langchain_memrl.store.embedded import index as index_module

DIMENSION = 16
LARGE = 2000
SECONDS = 20


class Builds:
    """The codes that were begun, and whether their threads wait before they make them."""

    def __init__(self, patch):
        self.begun = 0
        self.go_on = threading.Event()
        self.go_on.set()
        begin, make = coarse.Codes.begin, coarse._make

        def counted(*arguments):
            self.begun += 1
            return begin(*arguments)

        def waiting(*arguments):
            assert self.go_on.wait(SECONDS)
            make(*arguments)

        patch.setattr(coarse.Codes, "begin", counted)
        patch.setattr(coarse, "_make", waiting)
        patch.setattr(coarse, "LARGE", LARGE * DIMENSION)
        patch.setattr(coarse, "CANDIDATES", 200)
        patch.setattr(index_module, "PIECE_BYTES", 64 * 4 * DIMENSION)

    def hold(self):
        """Let the next threads wait until `finish`."""
        self.go_on.clear()

    def finish(self):
        """Wait until all threads are done; how many codes were begun so far."""
        self.go_on.set()
        for thread in self.threads():
            thread.join(SECONDS)
            assert not thread.is_alive()
        return self.begun

    @staticmethod
    def threads():
        return [one for one in threading.enumerate() if one.name == coarse.THREAD_NAME]
