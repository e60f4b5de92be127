"""Invented operating-system tasks in the shape of LifelongAgentBench's, and a small system.

The system is made of programs of this machine, so that nothing has to be downloaded.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from langchain_memrl.errors import ConfigError
from langchain_memrl.evals.benchmarks.shells.machine import Machines
from langchain_memrl.evals.benchmarks.shells.roots import PROGRAMS

COPIED = (
    *("bash", "cat", "chmod", "chown", "cp", "dd", "env", "find", "grep", "head", "id", "kill"),
    *("ln", "ls", "mkdir", "mknod", "mount", "mv", "nohup", "readlink", "rm", "sed", "setsid"),
    *("sleep", "sort", "stat", "tail", "touch", "true", "umount", "unshare", "wc", "yes"),
)
SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/bash\nbin:x:2:2:bin:/bin:/bin/bash\n",
    "etc/group": "root:x:0:\nbin:x:2:\n",
    "etc/os-release": 'NAME="Debian GNU/Linux"\nID=debian\nVERSION_ID="12"\n',
    "etc/debian_version": "12.34\n",
    "var/lib/dpkg/status": "Package: bash\nVersion: 5\n",
}


def make_root(folder):
    """A folder with a system that is just enough for the tasks below."""
    for name in ("bin", "dev", "proc", "root", "tmp", "srv", "usr"):
        (folder / name).mkdir(parents=True)
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for name in COPIED:
        program = shutil.which(name, path=SYSTEM_PATH)
        shutil.copy(os.path.realpath(program), folder / "bin" / name)
        linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
        for library in re.findall(r"(/\S+)", linked.stdout):
            place = folder / library.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                shutil.copy(os.path.realpath(library), place)
    for name in set(PROGRAMS) - set(COPIED):
        (folder / "bin" / name).write_text("#!/bin/bash\n")
        (folder / "bin" / name).chmod(0o755)
    return folder


def why_not(folder=Path("/nowhere")):
    """Why no try can be isolated on this machine; empty: it can."""
    if any(shutil.which(name, path=SYSTEM_PATH) is None for name in (*COPIED, "ldd")):
        return "needs the usual programs of a Linux system"
    try:
        with Machines(folder):
            return ""
    except ConfigError as error:
        return "" if "No such file" in str(error) else str(error)


needs_isolation = pytest.mark.skipif(bool(why_not()), reason=why_not() or "isolates")


def task(instruction, truth, check, preparation=""):
    def item(script):
        return {"command_name": "bash", "script": script}

    return {
        "instruction": instruction,
        "initialization_command_item": item(preparation),
        "evaluation_info": {
            "evaluation_command_item": item(check),
            "ground_truth_command_item": item(truth),
        },
        "skill_list": [],
    }


TASKS = {
    "0": task(
        "Make a folder '/srv/oak' that everybody may read and only its owner may change.",
        "mkdir -p /srv/oak && chmod 755 /srv/oak",
        "[ $(stat -c %a /srv/oak) = 755 ]",
    ),
    "1": task(
        "Make a folder '/srv/elm' that nobody but its owner may enter.",
        "mkdir -p /srv/elm && chmod 700 /srv/elm",
        "[ $(stat -c %a /srv/elm) = 700 ]",
    ),
    "2": task(
        "Count the planks listed in '/srv/planks' and write the number to '/srv/count'.",
        "wc -l < /srv/planks > /srv/count",
        "[ $(cat /srv/count) -eq 3 ]",
        "printf 'a\\nb\\nc\\n' > /srv/planks",
    ),
    "3": task(
        "Point a link '/srv/saw' to '/srv/tools/saw'.",
        "cd /srv && ln -s /srv/tools/saw saw",
        '[ "$(readlink /srv/saw)" = /srv/tools/saw ]',
        "mkdir /srv/tools; touch /srv/tools/saw",
    ),
    "4": task(
        "Give '/srv/glue' to the user 'bin'.",
        "chown bin /srv/glue",
        "[ $(stat -c %U /srv/glue) = bin ]",
        "touch /srv/glue",
    ),
    "5": task(
        "Keep a process 'clock' running that writes to '/srv/ticks'.",
        "(while true; do echo tick; sleep 0.05; done) > /srv/ticks & sleep 0.2",
        "[ -s /srv/ticks ] && a=$(wc -l < /srv/ticks) && sleep 0.2 && "
        "[ $(wc -l < /srv/ticks) -gt $a ]",
    ),
}


def write_tasks(path, tasks=None):
    path.write_text(json.dumps(TASKS if tasks is None else tasks))
    return path
