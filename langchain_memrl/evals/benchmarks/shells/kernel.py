"""How the first process of a system changes its root, hides, and gives up what it may not do."""

import os
from pathlib import Path

from langchain_memrl.evals.benchmarks.kernel import SET_DUMPABLE, call, control, set_capabilities

DETACH = 2
SET_NAME, DROP_BOUND = 15, 24
CAPABILITIES = {
    "chown": 0,
    "dac_override": 1,
    "fowner": 3,
    "fsetid": 4,
    "kill": 5,
    "setgid": 6,
    "setuid": 7,
    "audit_write": 29,
}
"""What root may do in a try: change owners and modes, become somebody else, end processes.

`audit_write` is there because `su` and `passwd` give up without it. What reaches beyond a try is
not: mounting, devices, the network, the clock, modules, tracing, limits.
"""


def enter_root(folder: Path) -> None:
    """Make a mounted folder the root of this mount namespace, and let go of everything else."""
    os.chdir(folder)
    call("pivot_root", b".", b".")
    call("umount2", b".", DETACH)
    os.chdir("/")


def hide_process(name: str) -> None:
    """Rename this process, and let none without the right to trace look into it."""
    control(SET_NAME, name.encode())
    control(SET_DUMPABLE, 0)


def keep_capabilities() -> None:
    """Give up every capability but those in `CAPABILITIES`, for good."""
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    kept = set(CAPABILITIES.values())
    for capability in set(range(last + 1)) - kept:
        control(DROP_BOUND, capability)
    set_capabilities(sum(1 << capability for capability in kept))
