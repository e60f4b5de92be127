"""`memrl eval run` on a suite of one's own, typed in the folder where it is."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest

SUITE = """
import time
from langchain_memrl.evals.environment import Environment, Suite, Task, Trial

class Tickets(Environment):
    def __init__(self, setup):
        self.tasks = [Task(name, f"Where does {name} go?") for name in "abcdefghij"]

    def act(self, situation):
        time.sleep(PAUSE)
        FAIL
        return Trial(success=True, trajectory="done")

class Actless(Environment):
    tasks = [Task("a", "b")]

class Twice(Tickets):
    def __init__(self, setup):
        self.tasks = [Task("a", "b"), Task("a", "c")]

def broken(setup):
    return 1 / 0

SUITE = Suite("tickets", Tickets, epochs=2)
QUICK = Suite("tickets", Tickets, epochs=2, simulated=True)
ACTLESS = Suite("actless", Actless)
TWICE = Suite("twice", Twice, worlds=("w",))
BROKEN = Suite("broken", broken)
NUMBER = Suite("number", lambda setup: 3)
"""
OPTIONS = ("--arms", "none,memrl", "--seeds", "1", "--out", "out")


@pytest.fixture
def folder(tmp_path):
    write(tmp_path)
    return tmp_path


def write(folder, pause="0", fail="pass"):
    text = SUITE.replace("PAUSE", pause).replace("FAIL", fail)
    (folder / "my_tasks.py").write_text(text)


def begin(folder, *arguments):
    """Like the console script: the current folder is not on the path."""
    command = [sys.executable, "-P", "-c", "from langchain_memrl.cli import main; main()"]
    return subprocess.Popen(
        [*command, "eval", "run", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"COLUMNS": "200"},
        start_new_session=True,
    )


def run(folder, *arguments):
    child = begin(folder, *arguments)
    out, err = child.communicate(timeout=60)
    return child.returncode, out, err


def test_a_simulated_suite_of_the_current_folder_is_found_by_every_process(folder):
    code, out, err = run(folder, "my_tasks:QUICK", *OPTIONS, "--jobs", "2")
    assert (code, err) == (0, "")
    assert "40 episodes to run, about 1 s" in out
    assert "50 %: 20 of 40 episodes" in out
    assert "nothing to do" not in out


def test_a_finished_run_says_so_before_the_table_and_an_edited_file_is_refused(folder):
    code, out, _ = run(folder, "my_tasks:SUITE", *OPTIONS)
    assert code == 0
    assert "to go, by the first batch" in out
    code, out, _ = run(folder, "my_tasks:SUITE", *OPTIONS)
    assert code == 0
    assert out.index("nothing to do: all 40 episodes are recorded") < out.index("solved")
    write(folder, fail="1 + 1")
    code, _, err = run(folder, "my_tasks:SUITE", *OPTIONS)
    assert code == 1
    assert "the suite's file was edited since" in err


def test_errors_are_shown_with_the_first_text_and_leave_no_nan(folder):
    write(
        folder, fail="if situation.epoch == 0 and situation.task.id == 'a': raise OSError('gone')"
    )
    out_text = run(folder, "my_tasks:SUITE", *OPTIONS, "--tasks", "1", "--jobs", "1")[1]
    assert "nan" not in out_text
    (row,) = [line for line in out_text.splitlines() if line.strip(" │").startswith("memrl")]
    assert re.findall(r"[\d.]+|-", row) == ["-", "1.000", "1.000"]
    assert "2 episodes got no answer" in out_text
    assert "OSError: gone" in out_text
    assert "--retry-errors" in out_text


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("my_tasks:Tickets", "is a class; expected a Suite"),
        ("my_tasks:broken", "makes no suite (TypeError"),
        ("my_tasks:ACTLESS", "suite actless: the environment of seed 0 cannot be made (TypeError"),
        ("my_tasks:TWICE", "suite twice, world w, task 2 of 2 (a) and task 1 (a) have the same id"),
        ("my_tasks:BROKEN", "ZeroDivisionError: division by zero, at my_tasks.py:22"),
        ("my_tasks:NUMBER", "suite number: make gave a int; expected an Environment"),
        ("mine:SUITE", "looked in "),
        ("half:SUITE", "half cannot be imported (NameError: name 'Suit' is not defined, at half"),
    ],
)
def test_a_mistake_in_a_suite_is_one_sentence_and_leaves_nothing(
    folder, monkeypatch, capsys, name, said
):
    from langchain_memrl.cli import main

    (folder / "half.py").write_text("SUITE = Suit()\n")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for module in ("my_tasks", "half"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setattr(sys, "argv", ["memrl", "eval", "run", name, "--out", "out"])
    with pytest.raises(SystemExit) as end:
        main()
    for module in ("my_tasks", "half"):
        sys.modules.pop(module, None)
    assert end.value.code == 1
    assert said in capsys.readouterr().err.replace("\n", " ")
    assert not (folder / "out").exists()


@pytest.mark.parametrize(("suite", "jobs"), [("QUICK", "2"), ("SUITE", "3"), ("SUITE", "1")])
def test_ctrl_c_ends_at_once_with_one_line_and_code_130(folder, suite, jobs):
    write(folder, pause="0.5" if suite == "QUICK" else "30 * situation.epoch")
    child = begin(folder, f"my_tasks:{suite}", *OPTIONS, "--jobs", jobs, "--batch", "5")
    assert "episodes to run" in child.stdout.readline()
    while suite == "SUITE" and "25 %" not in child.stdout.readline():
        pass  # the processes of the other one are starting: even then they keep silent
    os.killpg(child.pid, signal.SIGINT)
    began = time.monotonic()
    out, err = child.communicate(timeout=20)
    assert time.monotonic() - began < 5
    assert (child.returncode, err) == (130, "")
    done = 0 if suite == "QUICK" else 10
    assert out.splitlines()[-1] == (f"stopped after {done} of 40; the same command goes on there")
