"""Programs behind walls: what passes, what cannot pass, what is kept in, what is left."""

import os
import select
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kitchen import needs_linux

from langchain_memrl.errors import ConfigError, MemRLError
from langchain_memrl.evals.benchmarks.programs import runner as runners
from langchain_memrl.evals.benchmarks.programs.runner import ProgramRunner, test_names
from langchain_memrl.evals.benchmarks.programs.sandbox import LIMITS, NAMESPACES, Limits

pytestmark = needs_linux
test_names.__test__ = False

SMALL = Limits(seconds=3.0, processor=1, memory=2**30, file=2**20, disk=4 * 2**20, processes=16)
TESTS = """
import unittest
class TestCases(unittest.TestCase):
    def test_one(self):
        self.assertEqual(task_func(2), 4)
    def test_other(self):
        self.assertTrue(task_func(3) == 9)
    def test_error(self):
        with self.assertRaises(TypeError):
            task_func("x")
"""
RIGHT = "def task_func(x):\n    return x * x"


@pytest.fixture(scope="module", params=[NAMESPACES, LIMITS])
def runner(request):
    try:
        with ProgramRunner(SMALL, modules=(), kinds=(request.param,)) as found:
            yield found
    except ConfigError as error:
        pytest.skip(f"not possible here: {error}")


in_namespaces = pytest.mark.parametrize("runner", [NAMESPACES], indirect=True, scope="module")
"""For what the other walls do not promise: there the rights of the account decide."""


def judge(runner, program, tests=TESTS):
    return runner.judge(program, tests, "task_func")


def says(runner, expression, setup=""):
    """What an expression is inside the walls, told by a test that fails."""
    program = f"{setup}\ndef task_func(x):\n    return {expression}"
    tests = (
        "import unittest\nclass TestCases(unittest.TestCase):\n"
        "    def test_it(self):\n        raise ValueError(task_func(1))"
    )
    report = judge(runner, program, tests).report
    return report.partition("ValueError: ")[2]


# --- verdicts -------------------------------------------------------------------------------------


def test_a_program_passes_if_every_test_does(runner):
    assert judge(runner, RIGHT) == (True, "3 of 3 tests pass")
    passed, report = judge(runner, "def task_func(x):\n    y = x + x\n    return y")
    assert not passed
    assert report.splitlines() == [
        "1 of 3 tests pass",
        "test_error: AssertionError: TypeError not raised",
        "test_other: AssertionError: False is not true",
    ]


def test_the_report_shows_the_line_of_the_program_that_failed(runner):
    _, report = judge(runner, "def task_func(x):\n    y = x\n    return y / 0")
    assert "test_one: ZeroDivisionError: division by zero (at: return y / 0)" in report
    assert judge(runner, "import nothing_like_it").report == (
        "it cannot be loaded: ModuleNotFoundError: No module named 'nothing_like_it' "
        "(at: import nothing_like_it)"
    )
    assert "SyntaxError" in judge(runner, "def task_func(:").report


@pytest.mark.parametrize("program", ["", "pass", "def other(x):\n    return x * x"])
def test_an_empty_program_fails(runner, program):
    assert not judge(runner, program).passed


def test_tests_that_patch_and_that_skip_on_their_own_pass(runner):
    tests = """
import unittest, json
from unittest.mock import patch, mock_open
class TestCases(unittest.TestCase):
    def setUp(self):
        self.value = lambda: 3
    @patch("builtins.open", mock_open(read_data="4"))
    @patch("json.loads", return_value=4)
    def test_patched(self, loads):
        self.assertEqual(task_func("f"), 4)
    @patch(__name__ + ".task_func", return_value=1)
    def test_itself(self, fake):
        self.assertEqual(task_func(7), 1)
    @unittest.skip("not here")
    def test_skipped(self):
        self.fail()
    def test_parts(self):
        for part in range(3):
            with self.subTest(part):
                self.assertEqual(part, part)
"""
    program = "import json\ndef task_func(path):\n    return json.loads(open(path).read())"
    assert judge(runner, program, tests) == (True, "4 of 4 tests pass")


FAKES = {
    "prints": "import sys\nprint('OK')\nsys.stderr.write('Ran 3 tests in 0.0s\\n\\nOK\\n')",
    "leaves at import": "import os\nos._exit(0)",
    "leaves politely at import": "import sys\nsys.exit(0)",
    "raises SystemExit": "raise SystemExit(0)",
    "leaves in the function": "def task_func(x):\n    import os\n    os._exit(0)",
    "leaves politely in the function": "def task_func(x):\n    raise SystemExit(0)",
    "interrupts": "def task_func(x):\n    raise KeyboardInterrupt",
    "kills itself": "import os\nos.kill(os.getpid(), 9)",
    "kills its parent": "import os\nos.kill(os.getppid(), 9)\nos.kill(os.getpid(), 9)",
    "kills everybody": "import os\nos.kill(-1, 9)",
    "ends when asked": "import atexit, os\natexit.register(lambda: os._exit(0))",
    "patches assertions": "import unittest\n"
    "for name in dir(unittest.TestCase):\n"
    "    if name.startswith('assert'):\n"
    "        setattr(unittest.TestCase, name, lambda *a, **k: None)\n"
    "def task_func(x): return 0",
    "patches the code of assertions": "import unittest\n"
    "def nothing(self, *a, **k): pass\n"
    "unittest.TestCase.assertEqual.__code__ = nothing.__code__\n"
    "unittest.TestCase.assertTrue.__code__ = nothing.__code__\n"
    "def task_func(x): return 0 if x != 'x' else x.nothing()",
    "patches assertions while tested": "import unittest\n"
    "def task_func(x):\n"
    "    unittest.TestCase.assertEqual = lambda *a, **k: None\n"
    "    unittest.TestCase.assertTrue = lambda *a, **k: None\n"
    "    return x * x",
    "patches the results": "import unittest\n"
    "for name in ('addFailure', 'addError'):\n"
    "    setattr(unittest.TestResult, name, lambda *a: None)\n"
    "def task_func(x): return 0",
    "patches the run": "import unittest\n"
    "unittest.TestCase.run = lambda self, result: result.addSuccess(self)\n"
    "def task_func(x): return 0",
    "patches the loader": "import unittest\n"
    "unittest.TestLoader.getTestCaseNames = lambda *a: []\n"
    "def task_func(x): return 0",
    "replaces the module": "import sys, types, unittest\n"
    "fake = types.ModuleType('unittest')\n"
    "class TestCase(unittest.TestCase):\n"
    "    def assertEqual(self, *a): pass\n"
    "    assertTrue = assertRaises = assertEqual\n"
    "fake.TestCase = TestCase\n"
    "sys.modules['unittest'] = fake\n"
    "def task_func(x): return 0",
    "patches the test class": "def task_func(x):\n"
    "    for name in ('test_one', 'test_other', 'test_error'):\n"
    "        setattr(TestCases, name, lambda self: None)\n"
    "    return x * x",
    "patches the test": "import sys\n"
    "def task_func(x):\n"
    "    frame = sys._getframe()\n"
    "    while 'self' not in frame.f_locals or not hasattr(frame.f_locals['self'], 'assertTrue'):\n"
    "        frame = frame.f_back\n"
    "    test = frame.f_locals['self']\n"
    "    test.assertEqual = test.assertTrue = lambda *a: None\n"
    "    return x * x",
    "brings tests of its own": "import unittest\n"
    "class TestCases(unittest.TestCase):\n"
    "    def test_one(self): pass\n"
    "    test_other = test_error = test_one\n"
    "unittest.main(exit=False)",
    "patches a built-in": "import builtins\n"
    "builtins.isinstance = lambda *a: True\n"
    "def task_func(x): return x * x",
    "skips": "import unittest\ndef task_func(x):\n    raise unittest.SkipTest('no need')",
    "equals everything": "class All:\n"
    "    def __eq__(self, other): return True\n"
    "def task_func(x):\n"
    "    if x == 'x': raise TypeError\n"
    "    return All()",
    "is a number that equals everything": "class All(int):\n"
    "    def __eq__(self, other): return True\n"
    "    __hash__ = int.__hash__\n"
    "def task_func(x):\n"
    "    if x == 'x': raise TypeError\n"
    "    return All(3)",
    "writes to every file": "import os, json\n"
    "def task_func(x):\n"
    "    told = {'loaded': '', 'error': '', 'changed': [],\n"
    "            'outcomes': dict.fromkeys(['test_one', 'test_other', 'test_error'], '')}\n"
    "    for handle in range(3, 50):\n"
    "        try: os.write(handle, json.dumps(told).encode() + b'\\n')\n"
    "        except OSError: pass\n"
    "    return x * x",
    "writes as soon as it can": "import os, json\n"
    "told = {'loaded': '', 'error': '', 'changed': [],\n"
    "        'outcomes': dict.fromkeys(['test_one', 'test_other', 'test_error'], '')}\n"
    "for handle in range(3, 50):\n"
    "    for _ in range(2):\n"
    "        try: os.write(handle, json.dumps(told).encode() + b'\\n')\n"
    "        except OSError: pass\n"
    "os._exit(0)",
    "takes the tests": "import os\n"
    "def task_func(x): return 0\n"
    "if os.fork() == 0:\n"
    "    while True: pass\n"
    "os._exit(0)",
    "loops at import": "while True: pass",
    "loops": "def task_func(x):\n    while True: pass",
    "waits": "import time\ndef task_func(x):\n    time.sleep(1000)",
    "loops and catches all": "def task_func(x):\n"
    "    while True:\n"
    "        try:\n"
    "            while True: pass\n"
    "        except BaseException: pass",
    "ignores signals": "import signal\n"
    "for one in set(signal.Signals) - {9, 19}:\n"
    "    signal.signal(one, signal.SIG_IGN)\n"
    "while True: pass",
    "allocates": "def task_func(x):\n    return bytearray(2**33)",
    "allocates and catches all": "def task_func(x):\n"
    "    kept = []\n"
    "    while True:\n"
    "        try: kept.append(bytearray(2**24))\n"
    "        except MemoryError: return 0",
    "recurses": "def task_func(x):\n    return task_func(x)",
    "crashes": "def task_func(x):\n    import ctypes\n    ctypes.string_at(0)",
    "forks without end": "import os\n"
    "def task_func(x):\n"
    "    while True:\n"
    "        try: os.fork()\n"
    "        except OSError: pass",
    "starts threads without end": "import threading, time\n"
    "def task_func(x):\n"
    "    while True: threading.Thread(target=time.sleep, args=(100,)).start()",
    "writes one file without end": "def task_func(x):\n"
    "    with open('f', 'wb') as file:\n"
    "        while True: file.write(bytes(2**16))",
    "writes files without end": "import itertools\n"
    "def task_func(x):\n"
    "    for i in itertools.count():\n"
    "        open(f'f{i}', 'wb').write(bytes(2**19))",
}


NEEDS_NAMESPACES = ("kills its parent", "kills everybody", "writes files without end")


def test_nothing_but_the_right_function_passes(runner):
    """All at once, so that those that wait for their limit wait together."""
    chosen = [how for how in FAKES if runner.kind == NAMESPACES or how not in NEEDS_NAMESPACES]
    with ThreadPoolExecutor(8) as pool:
        verdicts = list(pool.map(lambda how: judge(runner, FAKES[how]), chosen))
    passed = [how for how, verdict in zip(chosen, verdicts, strict=True) if verdict.passed]
    assert passed == []
    assert judge(runner, RIGHT).passed, "the next try is not touched"


def test_what_was_tampered_with_is_said(runner):
    report = judge(runner, FAKES["patches the results"]).report
    assert report.startswith("the program changed unittest.result.TestResult.add")
    assert "equals everything" in judge(runner, FAKES["equals everything"]).report


def test_the_names_of_the_tests_are_read_off_the_text():
    tests = TESTS + "    async def test_late(self): pass\n    def helper(self): pass\n"
    assert test_names(tests) == {"test_one", "test_other", "test_error", "test_late"}
    assert test_names("class Other:\n    def test_a(self): pass") == set()


# --- walls ----------------------------------------------------------------------------------------


def test_a_program_finds_nothing_of_the_users_environment(runner, monkeypatch):
    known = set(says(runner, "' '.join(sorted(os.environ))", "import os").split())
    assert known <= {
        *("HOME", "LANG", "LC_CTYPE", "LD_LIBRARY_PATH", "MPLBACKEND", "MPLCONFIGDIR"),
        *("MKL_NUM_THREADS", "NLTK_DATA", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
        *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PATH", "PYTHONDONTWRITEBYTECODE"),
        *("PYTHONHASHSEED", "PYTHONPATH", "TMPDIR", "TZ", "VECLIB_MAXIMUM_NUM_THREADS"),
    }
    assert "OMP_NUM_THREADS" in known


def test_a_program_has_an_empty_folder_of_its_own_each_time(runner):
    program = (
        "import os, tempfile\ndef task_func(x):\n"
        "    assert os.listdir('.') == [] and os.getcwd() == os.environ['HOME']\n"
        "    open('left', 'w').write('x')\n"
        "    tempfile.mkdtemp()\n"
        "    assert os.listdir(os.environ['TMPDIR'])\n"
        "    os.remove('left')\n"
        "    return x * x"
    )
    leaving = "open('left', 'w').write('x')\n" + RIGHT
    assert judge(runner, leaving).passed
    assert judge(runner, program).passed


def test_there_is_no_network(runner):
    program = (
        "import socket\ndef task_func(x):\n"
        "    with socket.socket() as one:\n"
        "        one.settimeout(2)\n"
        "        try: one.connect(('{}', {}))\n"
        "        except OSError: return x * x\n"
        "        return 0"
    )
    assert judge(runner, program.format("1.1.1.1", 80)).passed
    with __import__("socket").socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        assert judge(runner, program.format("127.0.0.1", server.getsockname()[1])).passed


@in_namespaces
def test_a_program_can_only_write_where_it_works(runner, tmp_path):
    tmp_path.chmod(0o777)
    for folder in (tmp_path, Path.cwd(), Path("/etc"), Path.home()):
        judge(runner, f"open({str(folder / 'made-by-a-try')!r}, 'w').write('x')\n" + RIGHT)
        assert not (folder / "made-by-a-try").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="this is not root")
def test_a_program_that_root_runs_is_not_root(runner):
    assert int(says(runner, "os.getuid()", "import os")) >= 61_184


@in_namespaces
def test_a_program_sees_no_other_process(runner):
    seen = says(runner, "len([one for one in os.listdir('/proc') if one.isdigit()])", "import os")
    assert int(seen) <= 2
    reached = says(runner, "socket.gethostname() and os.getpid()", "import os, socket")
    assert int(reached) <= 3


@in_namespaces
def test_processes_that_are_apart_reach_each_other(runner):
    program = (
        "import socket\ndef task_func(x):\n"
        "    with socket.socket() as server, socket.socket() as client:\n"
        "        server.bind(('localhost', 12345)); server.listen()\n"
        "        client.connect(('127.0.0.1', 12345))\n"
        "        return x * x"
    )
    assert judge(runner, program).passed


def alive(mark):
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "cmdline").read_bytes():
                found.append(folder.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("then", ["", "\nimport os\nos._exit(0)", "\nwhile True: pass"])
def test_nothing_that_a_program_started_is_left(runner, then):
    mark = f"41{os.getpid()}{len(then)}"
    program = (
        "import os, subprocess\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        f"        os.execvp('sleep', ['sleep', '{mark}'])\n"
        "    os._exit(0)\n"
        f"subprocess.Popen(['sleep', '{mark}'], start_new_session=True)\n"
        "import time; time.sleep(0.3)\n"
    )
    assert judge(runner, program + RIGHT + then).passed is (then == "")
    assert wait_until(lambda: not alive(mark))


def wait_until(true, seconds=10):
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def test_several_threads_may_ask_at_a_time(runner):
    found = {}

    def ask(place):
        wrong = RIGHT.replace("x * x", "x + 1")
        found[place] = judge(runner, RIGHT if place % 2 else wrong).passed

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == {place: place % 2 == 1 for place in range(6)}


# --- its end --------------------------------------------------------------------------------------

OWNER = """
import sys, threading
from langchain_memrl.evals.benchmarks.programs.runner import ProgramRunner
from langchain_memrl.evals.benchmarks.programs.sandbox import Limits
with ProgramRunner(Limits(), modules=(), kinds=[sys.argv[1]]) as runner:
    program = "import subprocess; subprocess.run(['sleep', sys.argv[2]])"
    program = program.replace("sys.argv[2]", repr(sys.argv[2]))
    threading.Thread(target=runner.judge, args=(program, "", "f"), daemon=True).start()
    print(runner._process.pid, runner._folder, flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, None])
def test_everything_ends_with_its_owner_however_that_ends(runner, how):
    mark = f"42{os.getpid()}{how or 0}"
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, runner.kind, mark],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    pid, folder = owner.stdout.readline().split()
    process = os.pidfd_open(int(pid))
    assert wait_until(lambda: alive(mark)[1:])
    owner.stdin.close() if how is None else owner.send_signal(how)
    owner.wait()
    assert select.select([process], [], [], 20)[0]
    assert wait_until(lambda: not alive(mark))
    assert wait_until(lambda: not Path(folder).exists())
    os.close(process)


def test_where_the_process_is_gone_there_is_no_verdict():
    with ProgramRunner(SMALL, modules=()) as gone:
        gone._process.kill()
        gone._process.wait()
        with pytest.raises(MemRLError, match="the process that runs programs is gone"):
            judge(gone, RIGHT)


def test_walls_that_cannot_be_built_are_no_verdict():
    with ProgramRunner(SMALL, modules=()) as broken:
        (broken._folder / "work").rmdir()
        with pytest.raises(MemRLError, match="could not be shut in"):
            judge(broken, RIGHT)


def test_what_does_not_start_says_why(monkeypatch):
    with pytest.raises(ConfigError, match="no walls for programs here: tried none"):
        ProgramRunner(SMALL, modules=(), kinds=()).__enter__()
    monkeypatch.setattr(runners.zygote, "__name__", "no_such_module")
    with pytest.raises(MemRLError, match=r"did not start: .*no_such_module"):
        ProgramRunner(SMALL, modules=()).__enter__()
