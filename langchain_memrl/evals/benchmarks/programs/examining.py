"""Runs the unit tests of a task on a program, inside the walls, and tells which passed.

The program and the tests share an interpreter, as in the benchmark. So that a program cannot pass
by anything but its function:

* it has been loaded before the tests come; they come from the owner, who knows how many there are;
* what it prints is lost, and a message counts only with a secret that came before the program;
* no message is a failure: `os._exit`, a crash, a limit;
* after the tests, `unittest`, the assertions of NumPy and pandas, Python's built-in functions, the
  loaded modules and the test class have to be what they were before;
* a test that the program skips has failed, and so has every test where its function returns
  something that equals whatever it is compared with.

Not promised: that a program written against this very file cannot find the secret by walking
through the frames or the memory of its interpreter. Nobody can promise that in one interpreter.
"""

import builtins
import functools
import importlib.abc
import json
import secrets
import socket
import sys
import traceback
import types
import unittest
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

PROGRAM, TESTS = "<program>", "<tests>"
MODULE = "__test__"
"""What the module of a program and its tests is called; not `__main__`."""
TEST_CLASS = "TestCases"
GUARDED = ("unittest.", "json.", "numpy.testing.", "pandas.testing.", "pandas._testing.")
LONGEST = 300
"""Characters of what is told about an error."""
DEEP, WIDE = 3, 50
"""How far a returned value is looked into."""

Fingerprint = dict[tuple[str, str], tuple[object, object]]


class Source(importlib.abc.InspectLoader):
    """A part of a module, given as text.

    Args:
        text: Python code.
        name: What tracebacks call it.
    """

    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name

    def get_source(self, fullname: str) -> str:
        """The text."""
        return self._text

    def get_code(self, fullname: str) -> types.CodeType:
        """The text, compiled."""
        return self.source_to_code(self._text, self._name)


class Results(unittest.TestResult):
    """Which tests passed, and why others did not.

    Args:
        program: Its lines, to show where an error came from.
    """

    def __init__(self, program: list[str]) -> None:
        super().__init__()
        self.outcomes: dict[str, str] = {}
        self._program = program

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        """A test passed."""
        self._add(test, "")

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        """A test, or what a class prepares for its tests, broke."""
        self._add(test, self._describe(err[1]))

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        """An assertion failed."""
        self._add(test, self._describe(err[1]))

    def addSubTest(self, test: unittest.TestCase, subtest: Any, err: Any) -> None:  # noqa: N802
        """A part of a test ended."""
        if err is not None:
            self._add(test, self._describe(err[1]))

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        """A test was skipped: by itself, or by what it called."""
        method = getattr(test, getattr(test, "_testMethodName", ""), None)
        wanted = any(getattr(one, "__unittest_skip__", False) for one in (type(test), method))
        self._add(test, "" if wanted else "the program skipped it")

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        """A test failed as it says it does."""
        self._add(test, "")

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        """A test passed against its word."""
        self._add(test, "it passed and should not")

    def _add(self, test: unittest.TestCase, error: str) -> None:
        name = getattr(test, "_testMethodName", str(test))
        self.outcomes[name] = self.outcomes.get(name) or error

    def _describe(self, error: BaseException) -> str:
        return describe(error, self._program)


def examine(connection: socket.socket) -> None:
    """Talk with the owner over one connection: program, then tests, then outcomes."""
    stream = connection.makefile("rwb")
    given = json.loads(stream.readline())
    say = _speaker(stream, given["secret"])
    say({"ready": True})
    module = types.ModuleType(MODULE)
    vars(module)["__file__"] = f"{MODULE}.py"
    sys.modules[MODULE] = module
    before = _fingerprint()
    program: list[str] = given["program"].splitlines()
    error = _load(module, Source(given["program"], PROGRAM), program)
    say({"loaded": error})
    if error:
        return
    impostors: list[str] = []
    _watch_function(module, given["function"], impostors)
    error = _load(module, Source(json.loads(stream.readline())["tests"], TESTS), program)
    changed = list(_changes(before))
    results = Results(program)
    if not error and not changed:
        cases = _cases(module)
        own = _attributes(cases)
        tests = [cases(name) for name in unittest.TestLoader().getTestCaseNames(cases)]
        unittest.TestSuite(tests).run(results)
        changed += [*_changes(before), *_differences(own, _attributes(cases)), *_shadows(tests)]
    say({"error": error, "outcomes": results.outcomes, "changed": sorted({*changed, *impostors})})


class _Stream(Protocol):
    def write(self, data: bytes, /) -> int: ...
    def flush(self) -> None: ...


def _speaker(stream: _Stream, secret: str) -> Any:
    def say(message: Mapping[str, Any]) -> None:
        stream.write(json.dumps({**message, "secret": secret}).encode() + b"\n")
        stream.flush()

    return say


def _load(module: types.ModuleType, source: Source, program: list[str]) -> str:
    """Run a part of the module; what went wrong, empty for nothing."""
    try:
        source.exec_module(module)
    except BaseException as error:
        return describe(error, program)
    return ""


def describe(error: BaseException, program: list[str]) -> str:
    """An error in a line or two, with the line of the program where it arose."""
    said = " ".join("".join(traceback.format_exception_only(error)).split())
    text = said if len(said) <= LONGEST else f"{said[:LONGEST]}..."
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == PROGRAM and frame.lineno
    ]
    where = program[lines[-1] - 1].strip() if lines and lines[-1] <= len(program) else ""
    return f"{text} (at: {where})" if where else text


# --- what has to be as it was ---------------------------------------------------------------------


def _guarded() -> Iterator[tuple[str, object]]:
    yield "builtins", builtins
    for name, module in list(sys.modules.items()):
        if f"{name}.".startswith(GUARDED):
            yield name, module
            for member, kind in list(vars(module).items()):
                if isinstance(kind, type) and kind.__module__ == name:
                    yield f"{name}.{member}", kind


def _fingerprint() -> Fingerprint:
    found: Fingerprint = {
        ("module", name): (module, None) for name, module in list(sys.modules.items())
    }
    for where, owner in _guarded():
        for name, value in list(vars(owner).items()):
            if callable(value) or isinstance(value, classmethod | property):
                found[where, name] = (value, _code(value))
    return found


def _code(value: object) -> object:
    return value.__code__ if isinstance(value, types.FunctionType) else None


def _changes(before: Fingerprint) -> Iterator[str]:
    """What was there before and is something else now."""
    return _differences(before, _fingerprint())


def _differences(before: Fingerprint, now: Fingerprint) -> Iterator[str]:
    for key, (value, code) in before.items():
        found, its_code = now.get(key, (value, code))
        if found is not value or its_code is not code:
            yield ".".join(key)


def _attributes(cases: type) -> Fingerprint:
    return {
        (TEST_CLASS, name): (value, _code(value))
        for name, value in vars(cases).items()
        if callable(value)
    }


def _shadows(tests: Iterable[Any]) -> Iterator[str]:
    """Methods of a test that were replaced in the test alone."""
    for test in tests:
        for name in vars(test):
            if callable(getattr(type(test), name, None)):
                yield f"{TEST_CLASS}.{name}"


def _cases(module: types.ModuleType) -> type[unittest.TestCase]:
    cases = getattr(module, TEST_CLASS, None)
    if isinstance(cases, type) and issubclass(cases, unittest.TestCase):
        return cases
    return unittest.TestCase


# --- what equals everything -----------------------------------------------------------------------


def _watch_function(module: types.ModuleType, name: str, impostors: list[str]) -> None:
    """Look at what the function returns, each time it is called."""
    function = vars(module).get(name)
    if not isinstance(function, types.FunctionType):
        return

    @functools.wraps(function)
    def watched(*arguments: Any, **named: Any) -> Any:
        value = function(*arguments, **named)
        if equals_everything(value):
            impostors.append(f"{name} returned something that equals everything")
        return value

    vars(module)[name] = watched


def equals_everything(value: Any, deep: int = DEEP) -> bool:
    """Whether a value, or something in it, equals a number or a text that was drawn just now."""
    probes = (secrets.randbits(64) + 0.5, secrets.token_hex(16), object())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if any((value == probe) is True for probe in probes):
                return True
        except (TypeError, ValueError):
            return False  # it cannot be compared at all
    if deep and isinstance(value, dict):
        value = list(value.values())
    if deep and isinstance(value, list | tuple):
        return any(equals_everything(part, deep - 1) for part in value[:WIDE])
    return False
