"""What a try can do to its own system, and what it cannot do to this machine."""

import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from workshop import make_root, needs_isolation

from langchain_memrl.errors import ConfigError, MemRLError
from langchain_memrl.evals.benchmarks.shells import machine as machines_module
from langchain_memrl.evals.benchmarks.shells.isolation import Limits
from langchain_memrl.evals.benchmarks.shells.machine import MOST, Machines

pytestmark = needs_isolation

PROCESSES = "echo /proc/[0-9]*"
"""Lists the first process, the shell that lists, and whatever else there is."""
SMALL = Limits(processes=40, memory=96 * 2**20, disk=16 * 2**20)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return make_root(tmp_path_factory.mktemp("a, root: of its own") / "root")


@pytest.fixture(scope="module")
def machines(root):
    with Machines(root, SMALL) as found:
        yield found


@pytest.fixture
def machine(machines):
    with machines.open() as found:
        yield found


def running(words):
    """Ids of the processes of this machine whose command line holds these words."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if words in line:
            found.append(int(process.name))
    return found


def files_of(folder):
    return {path: (*path.lstat()[:7], path.lstat().st_mtime_ns) for path in folder.rglob("*")}


def fresh(machines):
    """Whether the next try finds everything in its place."""
    with machines.open() as one:
        return one.run("ls /bin /etc /srv /dev/null && cat /etc/group").code == 0


# --- what a command gives -------------------------------------------------------------------------


def test_a_command_gives_its_exit_code_and_both_outputs(machine):
    found = machine.run("echo one; echo two >&2; exit 3")
    assert (found.code, found.output, found.lost, found.going_on) == (3, "one\ntwo\n", 0, False)
    assert machine.run("kill -9 $$").code == -9
    assert machine.run("no-such-program").code == 127
    assert machine.run("printf 'caf\\351'").output == "caf\N{REPLACEMENT CHARACTER}"
    assert machine.run("echo gr\u00fcn \U0001f333").output == "gr\u00fcn \U0001f333\n"
    assert machine.run("echo a\0b").output == "ab\n"
    assert machine.run('read -r line; echo "[$line]"').output == "[]\n"


def test_a_script_that_is_too_long_is_the_scripts_fault(machine):
    found = machine.run("#" * 200_000)
    assert (found.code, "too long" in found.output) == (127, True)
    assert machine.run("true").code == 0


def test_files_and_processes_last_but_neither_folder_nor_variables(machine):
    machine.run("cd /srv; name=value; echo here > file; sleep 60 &")
    found = machine.run(f'pwd; echo "[$name]"; cat /srv/file; {PROCESSES}')
    assert found.output.split()[:3] == ["/", "[]", "here"]
    assert len(found.output.split()[3:]) == 3


def test_what_runs_on_may_write_and_does_not_hold_up_the_next(machine):
    start = time.monotonic()
    found = machine.run("(while true; do echo again; done) & echo begun")
    assert found.going_on
    assert machine.run("echo next").output == "next\n"
    assert time.monotonic() - start < 5
    assert not machine.run("(sleep 30) > /dev/null 2>&1 & sleep 0.3").going_on


def test_of_an_endless_output_the_beginning_is_kept(machine):
    found = machine.run("yes | head -c 3000000")
    assert found.output == "y\n" * (MOST // 2)
    assert found.lost == 3_000_000 - MOST


def test_an_endless_command_is_left_behind_and_ends_with_the_try(machines):
    with machines.open() as one:
        start = time.monotonic()
        found = one.run("sleep 4711.25; echo never", seconds=0.3)
        assert found.code is None
        assert time.monotonic() - start < 5
        assert len(running("sleep 4711.25")) == 2  # the shell, and what it waits for
        assert one.run("echo still here").output == "still here\n"
    assert not running("sleep 4711.25")


def test_orphans_are_buried(machine):
    """More than fit at once, one after the other."""
    for _ in range(4):
        machine.run("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do (true &) ; done")
    found = machine.run(
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do (true &) ; done; echo /proc/[0-9]*"
    )
    assert found.code == 0
    assert len(found.output.split()) < SMALL.processes


# --- each try is fresh ----------------------------------------------------------------------------


def test_two_tries_at_a_time_see_nothing_of_each_other(machines):
    with machines.open() as one, machines.open() as other:
        one.run("echo mine > /srv/file; rm /etc/group; sleep 60 &")
        assert other.run("cat /etc/group").output.startswith("root:x:0:")
        assert other.run("ls /srv").output == ""
        assert len(other.run(PROCESSES).output.split()) == 2


def test_the_root_folder_stays_as_it_is(machines, root):
    before = files_of(root)
    with machines.open() as one:
        one.run("chmod 700 /etc/group; echo x >> /etc/passwd; mv /bin/yes /bin/no; touch /new")
        one.run("rm -rf --no-preserve-root /")
        assert one.run("true").code == 127  # it has no shell any more
    assert files_of(root) == before
    assert fresh(machines)


def test_a_root_in_a_folder_with_a_strange_name_is_fine(root):
    assert "," in str(root)
    assert ":" in str(root)


# --- limits ---------------------------------------------------------------------------------------


def test_a_fork_bomb_stays_in_its_try(machines):
    with machines.open() as one:
        one.run("sleep 4712.5 & bomb() { bomb | bomb & }; bomb", seconds=1.0)
        one.run("sleep 0.2")
        group = Path(f"/proc/{running('sleep 4712.5')[0]}/cgroup").read_text()
        assert processes_in(group) <= SMALL.processes
    assert not running("sleep 4712.5")
    assert fresh(machines)


def processes_in(group):
    """How many processes are in the control group of a try."""
    name = re.search(r"memrl-\S+", group)[0]
    members = next(Path("/sys/fs/cgroup").rglob(f"{name}/cgroup.procs"))
    return len(members.read_text().split())


def test_a_memory_hog_is_ended_and_its_try_goes_on(machines):
    with machines.open() as one:
        found = one.run("tail /dev/zero")
        assert found.code != 0
        assert found.code is not None
        assert one.run("echo alive").output == "alive\n"
    assert fresh(machines)


def test_a_full_disk_is_full_for_its_try_only(machines):
    with machines.open() as one, machines.open() as other:
        found = one.run("dd if=/dev/zero of=/big bs=1M count=100")
        assert "No space left" in found.output
        assert one.run("stat -c %s /big").output.strip().isdecimal()
        assert "No space left" in one.run("dd if=/dev/zero of=/dev/shm/big bs=1M count=100").output
        assert "No space left" in one.run("dd if=/dev/zero of=/dev/big bs=1M count=100").output
        assert other.run("dd if=/dev/zero of=/some bs=1M count=4").code == 0


def test_files_may_not_be_opened_without_end(machine):
    assert machine.run("ulimit -Hn").output.strip() == str(SMALL.open_files)
    assert machine.run("ulimit -n 100000").code != 0


# --- what it cannot reach -------------------------------------------------------------------------


def test_killing_everything_kills_what_is_in_the_try(machines):
    with machines.open() as one, machines.open() as other:
        one.run("sleep 60 &")
        other.run("sleep 4713.5 &")
        one.run("kill -9 -1")
        one.run("kill -9 1; kill -TERM 1; kill -HUP 1")
        assert len(one.run(PROCESSES).output.split()) == 2
        assert len(running("sleep 4713.5")) == 1


@pytest.mark.parametrize(
    "command",
    [
        "mount -t tmpfs none /srv",
        "mount --bind /etc /srv",
        "mount -o remount,rw /proc/sys",
        "umount /proc/kcore || umount /proc/sys",
        "umount /dev",
        "mknod /srv/disk b 8 0",
        "mknod /srv/memory c 1 1",
        "echo x > /proc/sys/kernel/core_pattern",
        "echo 1 > /proc/sys/vm/drop_caches",
        "echo h > /proc/sysrq-trigger",
        "unshare --mount true",
        "ls /proc/1/root/ /proc/1/cwd/",
        "cat /proc/1/environ",
        "readlink /proc/1/fd/3",
        "echo x > /proc/1/fd/3",
        "unshare --map-root-user true",
        "unshare --user --map-root-user --mount mount -t tmpfs none /srv",
        "chmod 777 /proc/1/mem && echo x > /proc/1/mem",
        "readlink /proc/1/exe",
        "dd if=/dev/zero of=/proc/1/mem bs=1 count=1",
    ],
)
def test_what_would_reach_beyond_a_try_is_refused(machine, command):
    pattern = Path("/proc/sys/kernel/core_pattern").read_text()
    found = machine.run(command)
    assert found.code not in (0, None), found
    assert Path("/proc/sys/kernel/core_pattern").read_text() == pattern


def test_files_of_this_machine_are_out_of_reach(machine, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("a secret of this machine")
    found = machine.run(f"cat {secret}; find / -name secret -not -path '/proc/*'; ls /proc/*/cwd/")
    assert "of this machine" not in found.output
    assert "/secret" not in found.output.replace(str(secret), "")
    mounts = machine.run("cat /proc/mounts").output
    assert str(tmp_path.parent) not in mounts
    assert machine.run("env").output.count("=") <= 6
    assert machine.run("cat /proc/1/cmdline /proc/kmsg /proc/keys").output == ""
    assert machine.run("cat /proc/1/comm").output == "init\n"


def test_devices_of_this_machine_keep_their_modes(machine):
    before = os.stat("/dev/null")
    machine.run("chmod 600 /dev/null /proc/keys /proc/1/cmdline /proc/kcore; rm -rf /dev")
    assert os.stat("/dev/null") == before
    assert machine.run("echo goes on").output == "goes on\n"


def test_it_has_no_network_but_itself(machine):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert machine.run(f"echo x > /dev/tcp/127.0.0.1/{port}").code != 0
        server.settimeout(0.1)
        with pytest.raises(TimeoutError):
            server.accept()
    interfaces = machine.run("cat /proc/net/dev").output.splitlines()[2:]
    assert [line.split(":")[0].strip() for line in interfaces] == ["lo"]


def test_rights_that_reach_further_are_given_up_for_good(machine):
    status = machine.run("grep Cap /proc/self/status").output
    held = {line.split()[0]: int(line.split()[1], 16) for line in status.splitlines()}
    expected = sum(1 << number for number in (0, 1, 3, 4, 5, 6, 7, 29))
    assert held["CapPrm:"] == held["CapEff:"] == held["CapBnd:"] == expected
    assert held["CapInh:"] == held["CapAmb:"] == 0


def test_a_system_has_a_name_of_its_own(machine):
    assert machine.run("cat /proc/sys/kernel/hostname /etc/hostname").output.split() == [
        "machine",
        "machine",
    ]
    assert socket.gethostname() != "machine"


# --- its end --------------------------------------------------------------------------------------

OWNER = """
import sys
from pathlib import Path
from langchain_memrl.evals.benchmarks.shells.machine import Machines
with Machines(Path(sys.argv[1])) as machines, machines.open() as one:
    one.run(f"sleep {4714 + 0.5} &")
    print("ready", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, None])
def test_a_try_ends_with_its_owner_however_that_ends(root, how):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout.readline() == "ready\n"
    (sleeping,) = running("sleep 4714.5")
    group = re.search(r"memrl-\S+", Path(f"/proc/{sleeping}/cgroup").read_text())[0]
    assert list(Path("/sys/fs/cgroup").rglob(group))
    process = os.pidfd_open(sleeping)
    owner.stdin.close() if how is None else owner.send_signal(how)
    owner.wait()
    assert select.select([process], [], [], 10)[0]
    os.close(process)
    assert soon(lambda: not list(Path("/sys/fs/cgroup").rglob(group)))


BUSY = """
import sys
from pathlib import Path
from langchain_memrl.evals.benchmarks.shells.machine import Machines
with Machines(Path(sys.argv[1])) as machines, machines.open() as one:
    print("ready", flush=True)
    one.run(f"sleep {4717 + 0.5}", seconds=300)
"""


def test_a_try_that_is_busy_ends_with_its_owner_too(root):
    owner = subprocess.Popen(
        [sys.executable, "-c", BUSY, str(root)], stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout.readline() == "ready\n"
    assert soon(lambda: running("sleep 4717.5"))
    owner.kill()
    owner.wait()
    assert soon(lambda: not running("sleep 4717.5"))


def soon(happens):
    """Whether something happens within ten seconds."""
    end = time.monotonic() + 10
    while not happens() and time.monotonic() < end:
        time.sleep(0.05)
    return happens()


def test_a_closed_system_is_gone_when_the_call_returns(machines):
    one = machines.open()
    one.run("sleep 4715.5 & setsid sleep 4715.5 & nohup sleep 4715.5 &")
    assert len(running("sleep 4715.5")) == 3
    one.close()
    assert not running("sleep 4715.5")
    with pytest.raises(MemRLError, match="is gone"):
        one.run("true")


def test_a_system_that_died_is_no_failed_command(machines):
    one = machines.open()
    one.run("sleep 4716.5 &")
    (sleeping,) = running("sleep 4716.5")
    status = Path(f"/proc/{sleeping}/status").read_text()
    first = int(re.search(r"PPid:\s*(\d+)", status)[1])
    os.kill(first, signal.SIGKILL)
    with pytest.raises(MemRLError, match=r"is gone|ended by itself|does not answer"):
        one.run("true")
    one.close()
    assert fresh(machines)


def test_outside_its_block_nothing_is_made(root):
    made = Machines(root)
    with pytest.raises(MemRLError, match="inside the `with` block"):
        made.open()
    with made:
        pass
    with pytest.raises(MemRLError, match="inside the `with` block"):
        made.open()


# --- where it does not work -----------------------------------------------------------------------


def test_without_the_root_account_one_sentence_says_what_is_needed(root, monkeypatch):
    monkeypatch.setattr(machines_module.os, "geteuid", lambda: 1000)
    with pytest.raises(ConfigError, match="Linux machine and the root account"):
        Machines(root).__enter__()


WEAK = """
import sys
from pathlib import Path
from langchain_memrl.evals.benchmarks.shells.machine import Machines
try:
    Machines(Path(sys.argv[1])).__enter__()
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv (util-linux)")
def test_where_the_kernel_refuses_the_error_says_what(root):
    weaker = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]
    done = subprocess.run(
        [*weaker, sys.executable, "-c", WEAK, str(root)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.startswith("ConfigError")
    assert "unshare: Operation not permitted" in done.stdout
    assert done.stderr == ""


def test_a_root_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="No such file or directory"):
        Machines(tmp_path / "nowhere").__enter__()
