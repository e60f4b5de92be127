"""S10: the library itself never runs what a model wrote.

The environments of `memrl eval` that must run programs do so in child processes behind walls, which
are tried in `evals/test_program_runner.py` and `evals/test_isolation.py`, and are no boundary
against an attacker, as the README says.
"""

from contextlib import nullcontext
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage
from trees import called, imported, package

from langchain_memrl import (
    LLMJudge,
    MemRLRetriever,
    contains,
    create_memrl_graph,
    exact_match,
    from_openevals,
    verbatim,
)
from langchain_memrl.errors import VerdictError
from langchain_memrl.offline import ScriptedChatModel

PROGRAMS = ("evals", "bench", "cli")
"""Folders that start programs: benchmarks, measurements, and the demo behind the command line."""
STARTERS = {"subprocess", "multiprocessing", "pty", "runpy", "code", "ctypes", "cffi"}
CALLS = {
    *("eval", "exec", "compile", "__import__", "os.system", "os.popen", "os.execv", "os.execvp"),
    *("os.spawnv", "os.posix_spawn", "os.fork", "getattr(builtins"),
}


def test_outside_the_benchmarks_nothing_starts_a_program_or_runs_a_text():
    found = []
    for place, tree in package(without=PROGRAMS):
        modules = {name.split(".")[0] for name in imported(tree)} & STARTERS
        if str(place) != "offline/model_file.py":  # where pip fetches the demo's model
            found += [f"{place}: imports {name}" for name in sorted(modules)]
        found += [f"{place}:{node.lineno}: {name}" for name, node in called(tree) if name in CALLS]
    assert found == []


def test_modules_are_imported_by_name_only_for_the_command_line_and_the_bench():
    found = {
        str(place)
        for place, tree in package(without=PROGRAMS)
        for name, _ in called(tree)
        if name.endswith("import_module")
    }
    assert found <= {"importing.py", "__init__.py", "store/embedded/bare.py"}


@pytest.mark.parametrize(
    "evaluator",
    [
        exact_match("x"),
        contains("x"),
        from_openevals(lambda inputs, outputs: {"key": "k", "score": 0.0}),
        LLMJudge(ScriptedChatModel(responses=["__import__('os').system('touch ran')"], cycle=True)),
    ],
    ids=["exact_match", "contains", "openevals", "judge"],
)
def test_an_answer_that_is_a_program_is_only_read(bank, tmp_path, monkeypatch, evaluator):
    monkeypatch.chdir(tmp_path)
    program = "```python\nopen('ran', 'w')\n```\n$(touch ran)\n`touch ran`\n{open('ran', 'w')}"
    call = {"name": "python", "args": {"code": "open('ran', 'w')"}, "id": "1"}
    graph = create_memrl_graph(
        lambda messages: AIMessage(program, tool_calls=[call]),
        MemRLRetriever(memory=bank, score_threshold=None),
        evaluator=evaluator,
        summarizer=verbatim,
    )
    for _ in range(2):
        judged = isinstance(evaluator, LLMJudge)  # which finds no grade in a program
        with pytest.raises(VerdictError) if judged else nullcontext():
            graph.invoke({"messages": [("user", program)]})
    assert list(Path(tmp_path).iterdir()) == []
