"""Grades programs: one connection per try to a process that forks itself behind walls."""

import ast
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, Self

from langchain_memrl.errors import ConfigError, MemRLError
from langchain_memrl.evals.benchmarks.children import module_path
from langchain_memrl.evals.benchmarks.programs import zygote
from langchain_memrl.evals.benchmarks.programs.examining import TEST_CLASS
from langchain_memrl.evals.benchmarks.programs.sandbox import Limits

NOT_LINUX = "bigcodebench runs programs behind walls that only Linux has; use it in Linux"
LONGEST_SOCKET = 100
"""Characters; the path of a Unix socket may not be longer."""
GRACE = 60.0
"""Seconds beyond a try's own limit after which something else must be wrong."""
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MOST_TOLD = 5
"""Failed tests that a report names."""
LIBRARIES = (
    *("numpy", "pandas", "scipy.stats", "scipy.optimize", "matplotlib.pyplot", "seaborn"),
    *("sklearn.linear_model", "sklearn.ensemble", "sklearn.cluster", "sklearn.preprocessing"),
    *("sklearn.model_selection", "sklearn.decomposition", "sklearn.metrics", "bs4", "requests"),
    *("unittest.mock", "numpy.testing", "pandas.testing", "flask", "psutil", "openpyxl"),
)
"""Imported once for all tries, where they are installed: together they take seconds."""


class Verdict(NamedTuple):
    """What the tests say of a program.

    Attributes:
        passed: Whether every test passed.
        report: How many passed, and why others did not, in a few lines.
    """

    passed: bool
    report: str


class ProgramRunner:
    """Grades programs for as long as the `with` block lasts; several threads may ask at a time.

    Args:
        limits: What a try may use.
        modules: What is imported once, before all tries.
        kinds: Which walls will do, the best first; see `sandbox`.

    Attributes:
        kind: Which walls there are.
        imported: Which of the modules are there.

    Raises:
        ConfigError: On entry, when there are no such walls here.
        MemRLError: On entry, when it does not start.
    """

    def __init__(
        self,
        limits: Limits = Limits(),  # noqa: B008 - it cannot be changed
        *,
        modules: Sequence[str] = LIBRARIES,
        kinds: Sequence[str] = zygote.KINDS,
    ) -> None:
        self._limits = limits
        self._modules = modules
        self._kinds = kinds
        self._folder = Path()
        self._process: subprocess.Popen[bytes] | None = None
        self.kind = ""
        self.imported: tuple[str, ...] = ()

    def __enter__(self) -> Self:
        """Start the process that is forked for every try."""
        if sys.platform != "linux":
            raise ConfigError(NOT_LINUX)
        self._folder = Path(tempfile.mkdtemp(prefix="memrl-code-"))
        self._folder.chmod(0o711)  # the account of a try works in it, and sees nothing else
        if len(str(self._folder / zygote.SOCKET)) > LONGEST_SOCKET:
            self._folder.rmdir()
            raise ConfigError(f"{self._folder} is too long a path; set TMPDIR to a shorter one")
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop it, and every try that is under way."""
        self._stop()

    def judge(self, program: str, tests: str, function: str) -> Verdict:
        """Run the tests of a task on a program.

        Args:
            program: A module with the function.
            tests: What follows in the module: a class `TestCases` of `unittest`.
            function: What the function is called.

        Raises:
            MemRLError: The walls or the process failed, which says nothing about the program.
        """
        secret = secrets.token_hex(16)
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(self._limits.seconds + GRACE)
                connection.connect(str(self._folder / zygote.SOCKET))
                with connection.makefile("rwb") as stream:
                    _send(stream, {"program": program, "function": function, "secret": secret})
                    ready = _receive(stream)
                    if not ready or ready["secret"] != secret:
                        raise MemRLError("a try ended before it began: it could not be shut in")
                    return self._hear(stream, secret, tests)
        except OSError as error:
            raise MemRLError(f"the process that runs programs is gone: {error}") from error

    def _hear(self, stream: Any, secret: str, tests: str) -> Verdict:
        """The rest of the talk. From here on, silence and nonsense are the program's doing."""
        loaded = _receive(stream)
        if loaded is None:
            return Verdict(False, self._silence("while it was loaded"))
        if loaded.get("secret") != secret:
            return Verdict(False, "the program sent a message of its own")
        if loaded["loaded"]:
            return Verdict(False, f"it cannot be loaded: {loaded['loaded']}")
        try:
            _send(stream, {"tests": tests})
        except OSError:
            return Verdict(False, self._silence("before the tests"))
        told = _receive(stream)
        if told is None:
            return Verdict(False, self._silence("during the tests"))
        if told.get("secret") != secret or _receive(stream) is not None:
            return Verdict(False, "the program sent a message of its own")
        return _verdict(told, test_names(tests))

    def _silence(self, when: str) -> str:
        limits = self._limits
        return (
            f"it ended without a result {when}: it left, crashed, or took more than "
            f"{limits.seconds:g} s, {limits.processor} s of computing or "
            f"{limits.memory / 2**30:g} GiB"
        )

    def _start(self) -> None:
        with (self._folder / "log").open("w+b") as log:
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-P", "-m", zygote.__name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                cwd=self._folder,
                env=_environment(self._folder),
            )
            told = {
                "folder": str(self._folder),
                "limits": list(self._limits),
                "modules": list(self._modules),
                "kinds": list(self._kinds),
            }
            _send(self._process.stdin, told)
            line = self._process.stdout.readline() if self._process.stdout else b""
            if not line:
                log.seek(0)
                said = log.read().decode(errors="replace").strip()
                raise MemRLError(f"the process that runs programs did not start: {said[-500:]}")
        found = json.loads(line)
        if not found["kind"]:
            raise ConfigError(
                f"no walls for programs here: tried {', '.join(self._kinds) or 'none'}"
            )
        self.kind = found["kind"]
        self.imported = tuple(found["imported"])

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
            process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def test_names(tests: str) -> frozenset[str]:
    """The tests in the class `TestCases` of a module, read off its text."""
    return frozenset(
        inner.name
        for node in ast.parse(tests).body
        if isinstance(node, ast.ClassDef) and node.name == TEST_CLASS
        for inner in node.body
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
        and inner.name.startswith("test")
    )


def _verdict(told: Mapping[str, Any], names: frozenset[str]) -> Verdict:
    if told["changed"]:
        return Verdict(False, f"the program changed {', '.join(told['changed'][:MOST_TOLD])}")
    if told["error"]:
        return Verdict(False, f"the tests cannot be loaded: {told['error']}")
    outcomes = told["outcomes"]
    passed = [name for name in names if outcomes.get(name) == ""]
    failed = [f"{name}: {error}" for name, error in sorted(outcomes.items()) if error]
    silent = [f"{name}: it did not run" for name in sorted(names - set(outcomes))]
    report = f"{len(passed)} of {len(names)} tests pass"
    told_of = (failed + silent)[:MOST_TOLD]
    return Verdict(
        bool(names) and len(passed) == len(names) and not failed, "\n".join([report, *told_of])
    )


def _environment(folder: Path) -> dict[str, str]:
    """Nothing of the user's own but where Python's libraries and the data of NLTK are."""
    kept = ("NLTK_DATA", "LD_LIBRARY_PATH")
    threads = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA", "VECLIB_MAXIMUM")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        **{f"{name}_NUM_THREADS": "1" for name in threads},
        "PATH": f"{Path(sys.executable).parent}:{SYSTEM_PATH}",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": str(folder / "matplotlib"),
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": module_path(),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TZ": "UTC",
    }


def _send(stream: BinaryIO | Any, message: Mapping[str, Any]) -> None:
    stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()


def _receive(stream: BinaryIO | Any) -> dict[str, Any] | None:
    """The next message; None where there is none, and an empty one where it is none."""
    try:
        line = stream.readline(2**20)
        message = json.loads(line) if line else None
    except (ConnectionError, ValueError):
        return {}
    return message if message is None or isinstance(message, dict) else {}
