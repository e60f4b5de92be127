"""The README's code runs as it stands, with stand-ins for the user's own models."""

import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.prompts import ChatPromptTemplate

from langchain_memrl.evals.contract import check_suite
from langchain_memrl.offline import HashingEmbeddings, ScriptedChatModel

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
SERVER = re.compile(r'"postgresql://[^"]*"')
FOLDER = re.compile(r'"(?:\./\w+|postgresql://[^"]*)"')
RUN = Path(__file__).parent.parent / ".ci" / "run"


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_the_python_examples_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str, server: Any
) -> None:
    """On PostgreSQL every folder is a connection string, and nothing else is another."""
    monkeypatch.chdir(tmp_path)
    places = FOLDER if backend == "postgres" else SERVER
    names = {
        "my_embeddings": HashingEmbeddings(),
        "model": ScriptedChatModel(responses=["wait for the green light"], cycle=True),
        "prompt": ChatPromptTemplate.from_template("{notes} {question}"),
    }
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)

    for block in blocks:
        text = places.sub(lambda found: f'"{server.new_location()}"', block)
        exec(compile(text, "README.md", "exec"), names)

    assert len(blocks) == 9
    folders = {"memories", "documents", "private"} if backend == "sqlite" else set()
    assert {path.name for path in tmp_path.iterdir()} == folders
    check_suite(names["SUITE"])
    memory = names["memory"]
    # job-42 was revised to -1, then the episodes of graph and agent got 1
    assert memory.list()[-1].q_value == pytest.approx(1 + 0.7**2 * (-0.3 - 1))
    assert names["used"] == ["new"]
    assert names["documents"].lift(namespace="measured").verdict == "helps"
    names["documents"].close()
    assert memory.episode("job-42").reward == -1.0
    memory.close()


def test_the_test_command_is_what_the_continuous_integration_runs() -> None:
    commands = re.findall(r"```bash\n(python3 -m venv .*?)\n```", README)
    assert len(commands) == 2
    assert commands[1] in RUN.read_text(encoding="utf-8")


def test_the_set_up_line_is_what_the_continuous_integration_uses() -> None:
    (line,) = re.findall(r"```bash\n(apt-get .*?)\n```", README)
    assert line in RUN.read_text(encoding="utf-8")
