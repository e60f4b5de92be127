"""BigCodeBench: the tasks, the replies, the forms, the agents and the runs on invented tasks."""

import json
import time
from types import SimpleNamespace

import pytest
from kitchen import TASKS, needs_linux, right, task, write_tasks
from langchain_core.messages import AIMessage
from typer.testing import CliRunner

from langchain_memrl.cli.app import app
from langchain_memrl.errors import ConfigError, InputError
from langchain_memrl.evals.analysis.reading import read_experiment
from langchain_memrl.evals.arms import ARMS
from langchain_memrl.evals.benchmarks import benchmark
from langchain_memrl.evals.benchmarks.agents import CORRECTED, SCRIPTED
from langchain_memrl.evals.benchmarks.downloads import digest
from langchain_memrl.evals.benchmarks.programs.attempt import fenced
from langchain_memrl.evals.benchmarks.programs.forms import forms_of, without
from langchain_memrl.evals.benchmarks.programs.replies import read_program
from langchain_memrl.evals.benchmarks.programs.script import VALUES, forms_in
from langchain_memrl.evals.benchmarks.programs.tasks import load_tasks, missing_modules
from langchain_memrl.evals.contract import check_suite
from langchain_memrl.evals.environment import Setup, Situation
from langchain_memrl.evals.estimate import estimate
from langchain_memrl.evals.exceptions import exception_lines
from langchain_memrl.evals.loop import records, run
from langchain_memrl.evals.records import EpisodeRecord, read_records
from langchain_memrl.evals.report.findings import notes
from langchain_memrl.evals.settings import RunSettings
from langchain_memrl.evals.suites import bigcodebench
from langchain_memrl.evals.suites.bigcodebench import prepare
from langchain_memrl.offline import HashingEmbeddings, ScriptedChatModel


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_tasks(tmp_path_factory.mktemp("data") / "tasks.jsonl")


@pytest.fixture(autouse=True)
def light(monkeypatch):
    monkeypatch.setattr(benchmark, "word_embeddings", lambda: HashingEmbeddings(64))


@pytest.fixture(scope="module")
def prepared(data):
    """Gives the suite, prepared once for each choice."""
    opened = {}

    def prepare_(**options):
        setup = Setup(data=options.pop("data", data), **options)
        if setup not in opened:
            prepared_ = prepare(setup)
            opened[setup] = (prepared_.__enter__(), prepared_)
        return opened[setup][0]

    yield prepare_
    for _, one in opened.values():
        one.__exit__(None, None, None)


def try_(suite, id, model=None, memories=(), epoch=0, seed=0):
    environment = suite.make(Setup(seed=seed, model=model))
    found = next(one for one in environment.tasks if one.id == id)
    return environment.act(Situation(found, memories, epoch))


def says(*replies):
    return ScriptedChatModel(responses=list(replies))


def memory(program):
    return SimpleNamespace(memory=SimpleNamespace(experience=fenced(program)))


# --- tasks ----------------------------------------------------------------------------------------


def test_a_file_and_a_split_beside_it_are_read(data, tmp_path):
    tasks = load_tasks(data)
    assert [one.id for one in tasks.tasks] == ["1", "2", "3", "4", "5"]
    assert not any(one.held_out for one in tasks.tasks)
    write_tasks(tmp_path / "all.jsonl")
    split = tmp_path / "hard.json"
    ids = {"train_ids": ["BigCodeBench/4", "BigCodeBench/1"], "val_ids": ["BigCodeBench/2"]}
    split.write_text(json.dumps(ids))
    for path in (split, tmp_path):
        found = load_tasks(path)
        assert [(one.id, one.held_out) for one in found.tasks] == [
            ("1", False),
            ("2", True),
            ("4", False),
        ]
        assert set(found.hashes) == {"all.jsonl", "hard.json"}


def test_a_task_that_asks_what_another_asks_is_left_out(tmp_path):
    twice = [TASKS[0], {**TASKS[0], "task_id": "BigCodeBench/9"}, TASKS[1]]
    found = load_tasks(write_tasks(tmp_path / "t.jsonl", twice))
    assert [one.id for one in found.tasks] == ["1", "2"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no tasks"),
        ("nonsense", "cannot be read"),
        ("[1]\n", "is not a task of BigCodeBench"),
        ('{"task_id": "BigCodeBench/1"}\n', "BigCodeBench/1 is not a task of .*instruct_prompt"),
        (json.dumps({**TASKS[0], "test": "x = 1"}) + "\n", "it has no tests"),
        (json.dumps({**TASKS[0], "test": "x = ("}) + "\n", "SyntaxError"),
        ((json.dumps(TASKS[0]) + "\n") * 2, "two tasks have the same task_id"),
    ],
)
def test_what_is_no_file_of_tasks_is_refused(tmp_path, content, message):
    file = tmp_path / "tasks.jsonl"
    file.write_text(content)
    with pytest.raises(InputError, match=message):
        load_tasks(file)


def test_a_wrong_split_and_no_data_are_refused(tmp_path):
    with pytest.raises(InputError, match="bigcode/bigcodebench"):
        load_tasks(None)
    with pytest.raises(InputError, match=r"holds 0 files \*.json; expected one"):
        load_tasks(tmp_path)
    (tmp_path / "hard.json").write_text('{"train_ids": ["BigCodeBench/77"], "val_ids": []}')
    with pytest.raises(InputError, match=r"holds 0 files \*.jsonl"):
        load_tasks(tmp_path)
    write_tasks(tmp_path / "all.jsonl")
    with pytest.raises(InputError, match=r"hard.json is no split of these tasks .*77"):
        load_tasks(tmp_path)


def test_libraries_that_are_not_there_are_found_before_anything_runs(tmp_path):
    imports = "import json\nimport no_such_library.part"
    needy = task(6, "Bake.", "x", "import no_other_library\nreturn x", "1", "1", imports=imports)
    tasks = load_tasks(write_tasks(tmp_path / "t.jsonl", [*TASKS, needy])).tasks
    assert missing_modules(tasks) == {"6": "no_other_library, no_such_library"}


# --- replies --------------------------------------------------------------------------------------

CODE = "import json\n\ndef task_func(x):\n    return json.dumps(x)"


@pytest.mark.parametrize(
    ("reply", "program"),
    [
        (CODE, CODE),
        (f"Here it is:\n```python\n{CODE}\n```\nIt works.", CODE),
        (f"```py\n{CODE}\n```", CODE),
        (f"```\n{CODE}\n```", CODE),
        (f"```python\nprint(1)\n```\nor rather\n```python\n{CODE}\n```", CODE),
        (f"```python\n{CODE}\n```\nTry it:\n```python\ntask_func(1)\n```", CODE),
        (f"```python\n{CODE}\n", CODE),
        (f"I think:\n{CODE}\nThat's it!", CODE),
        (f"<think>```python\ndef task_func(x): pass\n```</think>\n```python\n{CODE}\n```", CODE),
        (f"```python\n{CODE}\n\ndef more(:", CODE),
        ("```python\nx = 1\n```", "x = 1"),
        ("I cannot do that.", ""),
        ("", ""),
        ("```python\ndef task_func(:\n```", ""),
    ],
)
def test_the_program_is_found_in_a_reply(reply, program):
    assert read_program(reply, "task_func") == program


def test_a_long_reply_without_a_program_is_given_up_soon():
    reply = (
        "import json\n" * 200 + "def task_func(x):\n    return (\n" + "import it, or not\n" * 190
    )
    started = time.monotonic()
    assert read_program(reply, "task_func") == ""
    assert time.monotonic() - started < 5


# --- forms ----------------------------------------------------------------------------------------

PROGRAM = """
import os.path, numpy as np, json
from sklearn.preprocessing import MinMaxScaler as Scaler
from datetime import datetime
def task_func(path):
    values = np.random.rand(3)
    text = ", ".join(sorted(str(one) for one in values))
    with open(os.path.join(path, "f")) as file:
        for line in file:
            json.loads(line)
            print(line)
    if datetime.now():
        return Scaler().fit(values)
    return text
"""


def test_a_form_is_the_part_of_a_library_that_is_called():
    assert forms_of(PROGRAM) == {
        *("numpy.random", "os.path", "json", "sklearn.preprocessing", "datetime.datetime"),
    }
    assert forms_of("def task_func(x): return sorted(x.split())") == set()
    assert forms_of("not a program (") == set()


def test_statements_of_unknown_form_are_left_out():
    left = without(PROGRAM, {"os.path", "numpy.random"})
    assert "np.random.rand(3)" in left
    assert "json.loads" not in left
    assert "datetime.now" not in left
    assert "print(line)" in left
    assert forms_of(left) == {"os.path", "numpy.random"}
    assert forms_of(without(PROGRAM, set())) == set()
    assert without(PROGRAM, forms_of(PROGRAM)).count("pass") == 0


def test_forms_in_a_memory_are_those_of_its_programs():
    wrong = fenced("import re\nre.sub(1, 2, 3)")
    text = f"{wrong}\nTests: 0 of 1\n{CORRECTED}\n{fenced(PROGRAM)}"
    assert forms_in(text) == {"re", *forms_of(PROGRAM)}
    assert forms_in("nothing") == set()


# --- tries ----------------------------------------------------------------------------------------

pytestmark = needs_linux


@pytest.mark.parametrize("entry", TASKS, ids=lambda entry: entry["task_id"])
def test_the_ground_truth_passes(prepared, entry):
    trial = try_(prepared(agent="oracle"), entry["task_id"].partition("/")[2])
    assert trial.success
    assert "2 of 2 tests pass" in trial.trajectory


def test_a_model_replies_once_with_a_program_that_is_tested(prepared):
    model = says(f"So:\n```python\n{right(TASKS[0])}```", "Filter the list, then count.")
    trial = try_(prepared(), "1", model)
    assert trial.success
    assert trial.lesson == "Filter the list, then count."
    assert (trial.calls, trial.answer) == (2, right(TASKS[0]).strip())
    task_, lesson = model.calls
    assert "Count the spoons" in task_[-1].text
    assert "2 of 2 tests pass" in lesson[-1].text
    assert trial.trajectory == f"{fenced(right(TASKS[0]))}\nTests: 2 of 2 tests pass"


def test_the_prompt_for_the_lesson_is_the_same_in_every_run(prepared):
    prompts = set()
    for _ in range(2):
        model = says(f"So:\n```python\n{right(TASKS[0])}```", "Filter the list, then count.")
        try_(prepared(), "1", model)
        prompts.add(model.calls[1][-1].text)
    assert len(prompts) == 1


def test_an_answer_may_leave_out_the_imports_that_it_was_given(prepared):
    answer = "def task_func(text):\n    return json.loads(text).count('spoon')"
    assert try_(prepared(), "1", says(answer, "x")).success


def test_a_failed_try_keeps_what_its_tests_said(prepared):
    trial = try_(prepared(), "1", says("def task_func(text):\n    return len(text)", "x"))
    assert not trial.success
    assert "1 of 2 tests pass\ntest_one: AssertionError: 26 != 2" in trial.trajectory


def test_a_reply_without_a_program_fails_and_is_kept(prepared):
    trial = try_(prepared(), "1", says("I would rather cook.", "Write code."))
    assert not trial.success
    assert trial.trajectory == "No program could be read in: I would rather cook."
    assert trial.answer == "I would rather cook."


def test_tokens_and_calls_are_counted_the_lesson_included(prepared):
    usage = {"input_tokens": 100, "output_tokens": 7, "total_tokens": 107}
    model = says(*(AIMessage(text, usage_metadata=usage) for text in ("x = 1", "count")))
    trial = try_(prepared(), "5", model)
    assert (trial.prompt_tokens, trial.completion_tokens, trial.calls) == (200, 14, 2)


def test_memories_are_quoted_before_the_task(prepared):
    seen = []

    def model(prompt):
        seen.append(prompt)
        return "def task_func(x): return 0"

    settings = RunSettings((ARMS["rag"],), seeds=1, epochs=2, tasks=2, batch=2)
    list(records(prepared(), settings, model))
    assert any("What did not work before:" in message.text for message in seen[-1])
    assert any("tests pass" in message.text for message in seen[-1])


def test_prompts_can_be_replaced_and_are_part_of_the_header(prepared, tmp_path):
    own = tmp_path / "prompts.json"
    own.write_text(json.dumps({"TASK": "Bitte: {instruction}"}))
    model = says("?", "x")
    suite = prepared(prompts=own)
    try_(suite, "1", model)
    assert model.calls[0][-1].text.startswith("Bitte: Count the spoons")
    assert suite.settings["prompts"] != prepared().settings["prompts"]


def test_what_the_suite_does_not_know_is_refused(data):
    for options in ({"steps": 3}, {"dsn": "x"}, {"root": data}, {"agent": "nobody"}):
        with pytest.raises(ConfigError):
            prepare(Setup(data=data, **options)).__enter__()


# --- agents ---------------------------------------------------------------------------------------


def solved(suite, arm, **options):
    options = {"seeds": 1, "epochs": 3, "guard": True, **options}
    settings = RunSettings((ARMS[arm],), **options)
    found = [one for one in records(suite, settings) if isinstance(one, EpisodeRecord)]
    return {(one.epoch, one.task): one.success for one in found}


@pytest.mark.parametrize("agent", SCRIPTED)
def test_every_agent_keeps_the_contract_of_a_suite(prepared, agent):
    check_suite(prepared(agent=agent))


def test_a_random_agent_hands_in_programs_and_solves_next_to_nothing(prepared):
    suite = prepared(agent="random")
    trials = [try_(suite, str(id), epoch=epoch) for id in range(1, 6) for epoch in range(4)]
    assert sum(trial.success for trial in trials) <= 2
    assert all(any(f"return {value}" in t.answer for value in VALUES) for t in trials)
    assert trials == [try_(suite, str(id), epoch=e) for id in range(1, 6) for e in range(4)]


def test_a_memory_bound_agent_solves_nothing_without_memories(prepared):
    assert not any(solved(prepared(agent="memory-bound"), "none", guard=False).values())


def test_a_memory_bound_agent_solves_what_another_tasks_memory_shows(prepared):
    """Tasks 1 and 2 use one library, 3 and 4 another, 5 its own; nobody sees its own memories."""
    results = solved(prepared(agent="memory-bound"), "rag", epochs=4)
    assert any(results[3, id] for id in "12")
    assert any(results[3, id] for id in "34")
    assert not any(results[epoch, "5"] for epoch in range(4))


def test_a_memory_bound_agent_repeats_its_own_solution_without_the_guard(prepared):
    results = solved(prepared(agent="memory-bound"), "rag", guard=False, epochs=5)
    assert all(results[4, str(id)] for id in range(1, 6))


def test_a_prior_bound_agent_is_distracted_by_unfit_memories_only(prepared):
    suite = prepared(agent="prior-bound")
    unfit, fit = memory("import re\nre.sub(1, 2, 3)"), memory("import math\nmath.sqrt(4)")
    alone = [try_(suite, "5", epoch=e).success for e in range(40)]
    with_fit = [try_(suite, "5", memories=(fit,) * 5, epoch=e).success for e in range(40)]
    distracted = [try_(suite, "5", memories=(unfit,) * 5, epoch=e).success for e in range(40)]
    assert 12 <= sum(alone) <= 28
    assert all(with_fit)
    assert sum(distracted) < sum(alone)


def test_a_program_of_a_scripted_agent_is_run_once_and_one_of_a_model_each_time():
    asked = []

    class Runner:
        def judge(self, *arguments):
            asked.append(arguments)
            return len(asked)

    tasks = SimpleNamespace(id="1", tests="", function="f", completed=str)
    remembering = bigcodebench.judge_with(Runner(), remembers=True)
    assert [remembering(tasks, one) for one in "aab"] == [1, 1, 2]
    forgetful = bigcodebench.judge_with(Runner(), remembers=False)
    assert [forgetful(tasks, one) for one in "aa"] == [3, 4]


# --- runs -----------------------------------------------------------------------------------------


def test_the_header_names_the_agent_the_walls_and_the_data(prepared, data, tmp_path):
    settings = RunSettings((ARMS["none"],), seeds=1, epochs=1, tasks=2)
    (file,) = run(prepared(agent="oracle"), settings, tmp_path / "out")
    header = read_records(file).header
    assert header.settings["agent"] == "oracle"
    assert header.settings["data"] == load_tasks(data).hashes
    assert header.settings["walls"] in ("namespaces", "limits only")
    assert header.settings["limits"]["seconds"] == 240
    assert header.versions["python"]
    changed = write_tasks(tmp_path / "tasks.jsonl", TASKS[:3])
    with pytest.raises(InputError, match=r"another run.s: .*--data is"):
        run(prepared(agent="oracle", data=changed), settings, tmp_path / "out")


def test_the_preset_is_the_papers(prepared):
    suite = prepared()
    assert suite.make(Setup()).recall == {"k": 5, "fetch_k": 10, "score_threshold": 0.38}
    assert (suite.epochs, suite.batch) == (10, 5)


def test_what_a_run_costs_is_said_before(prepared):
    settings = RunSettings((ARMS["none"], ARMS["memrl"]), seeds=3, epochs=2, batch=4)
    costs = estimate(prepared(), settings, jobs=2)
    assert costs.prompt_tokens > costs.completion_tokens > 0
    assert "no tokens" in str(estimate(prepared(agent="oracle"), settings))


def test_exceptions_are_listed_with_their_reason_and_counted_apart(prepared, monkeypatch, tmp_path):
    web = task(6, "Fetch the menu.", "x", "raise OSError", "1", "1")
    needy = task(7, "Bake.", "x", "import no_such_library\nreturn x", "1", "1")
    wrong = task(8, "Burn.", "x", "return 0", "1", "1")
    known = {"it wants the web": {"6": digest(web["instruct_prompt"])[:8], "1": "00000000"}}
    monkeypatch.setattr(bigcodebench, "EXCEPTIONS", known)
    tasks = write_tasks(tmp_path / "t.jsonl", [TASKS[0], web, needy, wrong])
    suite = prepared(agent="oracle", data=tasks)
    assert suite.exceptions["6"] == "it wants the web"
    assert "needs no_such_library, which is not installed here" in suite.exceptions["7"]
    settings = RunSettings((ARMS["none"],), seeds=1, protocol="stream")
    run(suite, settings, tmp_path / "out")
    shown = notes(read_experiment(tmp_path / "out"))
    assert any("it wants the web" in line for line in shown)
    found = [one for one in records(suite, settings) if isinstance(one, EpisodeRecord)]
    lines = exception_lines(suite, found)
    assert lines[0] == "1 of 4 pass."
    assert lines[-1] == "  not expected: 8"


def test_the_command_runs_the_ground_truth(data, tmp_path):
    command = ["eval", "run", "bigcodebench", "--data", str(data), "--agent", "oracle"]
    done = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "5 of 5 pass." in done.output
