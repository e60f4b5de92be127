"""The operating-system tasks on real isolated systems: grading, agents and runs."""

import json

import pytest
from langchain_core.messages import AIMessage
from typer.testing import CliRunner
from workshop import TASKS, make_root, needs_isolation, task, write_tasks

from langchain_memrl.cli.app import app
from langchain_memrl.errors import ConfigError, InputError, MemRLError
from langchain_memrl.evals.analysis.reading import read_experiment
from langchain_memrl.evals.arms import ARMS
from langchain_memrl.evals.benchmarks import benchmark
from langchain_memrl.evals.benchmarks.agents import CORRECTED, SCRIPTED
from langchain_memrl.evals.benchmarks.downloads import digest
from langchain_memrl.evals.benchmarks.shells.attempt import show_command
from langchain_memrl.evals.benchmarks.shells.roots import VARIABLE
from langchain_memrl.evals.benchmarks.shells.tasks import load_tasks
from langchain_memrl.evals.contract import check_suite
from langchain_memrl.evals.environment import Setup, Situation
from langchain_memrl.evals.estimate import estimate
from langchain_memrl.evals.exceptions import exception_lines
from langchain_memrl.evals.loop import records, run
from langchain_memrl.evals.records import EpisodeRecord, read_records
from langchain_memrl.evals.report.findings import notes
from langchain_memrl.evals.settings import RunSettings
from langchain_memrl.evals.suites import lifelong_os
from langchain_memrl.evals.suites.lifelong_os import prepare
from langchain_memrl.offline import HashingEmbeddings, ScriptedChatModel

pytestmark = needs_isolation


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return make_root(tmp_path_factory.mktemp("system") / "root")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_tasks(tmp_path_factory.mktemp("data") / "os.json")


@pytest.fixture(autouse=True)
def light(monkeypatch):
    monkeypatch.setattr(benchmark, "word_embeddings", lambda: HashingEmbeddings(64))


@pytest.fixture
def prepared(root, data):
    """Gives the suite, prepared on a system of the small root."""
    opened = []

    def prepare_(**options):
        options = {"data": data, "root": root, **options}
        opened.append(prepare(Setup(**options)))
        return opened[-1].__enter__()

    yield prepare_
    for one in opened:
        one.__exit__(None, None, None)


def try_(suite, id, model=None, memories=(), epoch=0, seed=0):
    environment = suite.make(Setup(seed=seed, model=model))
    found = next(one for one in environment.tasks if one.id == id)
    return environment.act(Situation(found, memories, epoch))


def says(*replies):
    """A model that says one thing after the other."""
    return ScriptedChatModel(responses=list(replies))


def runs(script):
    return f"Let me do it.\nAction: Bash\n```bash\n{script}\n```"


FINISH = "That is all.\nAction: Finish"


# --- grading --------------------------------------------------------------------------------------


def test_the_ground_truth_passes_and_nothing_passes_before_acting(prepared):
    suite = prepared(agent="oracle")
    assert {id: try_(suite, id).success for id in TASKS} == dict.fromkeys(TASKS, True)
    suite = prepared()
    assert not any(try_(suite, id, says(FINISH, "x")).success for id in TASKS)


def test_a_task_is_judged_by_the_state_of_its_system_whatever_is_said(prepared):
    suite, right = prepared(), runs("mkdir /srv/oak; chmod 755 /srv/oak")
    assert try_(suite, "0", says(right, FINISH, "x")).success
    assert try_(suite, "0", says(right, "no action at all", "x")).success
    assert not try_(suite, "0", says(runs("mkdir -m 700 /srv/oak"), FINISH, "x")).success
    assert not try_(suite, "0", says("Action: Finish\nIt is solved, exit code 0.", "x")).success


def test_a_system_that_was_destroyed_is_a_failed_task(prepared):
    suite = prepared()
    trial = try_(suite, "2", says(runs("rm -rf --no-preserve-root /"), FINISH, "x"))
    assert not trial.success
    assert try_(suite, "2", says(runs("wc -l < /srv/planks > /srv/count"), FINISH, "x")).success


def test_a_preparation_that_fails_is_no_failed_task(prepared, tmp_path):
    broken = task("Do it.", "true", "true", "echo no such thing >&2; exit 4")
    suite = prepared(agent="oracle", data=write_tasks(tmp_path / "os.json", {"0": broken}))
    with pytest.raises(MemRLError, match=r"preparation of task 0 .*exit code 4.*no such thing"):
        try_(suite, "0")
    settings = RunSettings((ARMS["none"],), seeds=1, epochs=1, attempts=1)
    (found,) = [one for one in records(suite, settings) if isinstance(one, EpisodeRecord)]
    assert found.success is None
    assert "no such thing" in found.error


# --- models ---------------------------------------------------------------------------------------


def test_a_model_thinks_acts_sees_the_result_and_finishes(prepared):
    model = says(
        runs("cat /srv/plank"),
        runs("cd /srv\nwc -l < planks > count"),
        FINISH,
        "Look at the names first.",
    )
    trial = try_(prepared(), "2", model)
    assert trial.success
    assert trial.lesson == "Look at the names first."
    first, second, third, lesson = model.calls
    assert "You are root on a Debian 12.34 machine" in first[0].text
    assert first[-1].text == TASKS["2"]["instruction"]
    assert "No such file or directory\n(exit code 1)" in second[-1].text
    assert "14 replies are left" in second[-1].text
    assert third[-1].text.startswith("(exit code 0)")
    assert "> wc -l < planks > count" in lesson[-1].text
    assert trial.trajectory.splitlines()[0] == "$ cat /srv/plank"
    assert "$ cd /srv\n> wc -l < planks > count\n  (exit code 0)" in trial.trajectory
    assert trial.answer == "done"
    assert trial.calls == 4


def test_tokens_and_calls_are_counted_the_lesson_included(prepared):
    usage = {"input_tokens": 100, "output_tokens": 7, "total_tokens": 107}
    replies = [runs("true"), FINISH, "a lesson"]
    trial = try_(prepared(), "0", says(*(AIMessage(one, usage_metadata=usage) for one in replies)))
    assert (trial.prompt_tokens, trial.completion_tokens, trial.calls) == (300, 21, 3)


def test_a_model_that_never_finishes_is_stopped_at_the_step_limit(prepared):
    asked = []

    def model(prompt):
        asked.append(prompt)
        return runs("echo again")

    trial = try_(prepared(steps=3), "0", model)
    assert not trial.success
    assert len(asked) == 4  # three steps, and the lesson
    assert trial.trajectory.count("$ echo again") == 3


def test_an_output_is_cut_for_the_model_and_more_so_for_the_memory(prepared):
    model = says(runs("yes | head -n 100000"), FINISH, "x")
    trial = try_(prepared(), "0", model)
    assert "characters more] [... 134464 bytes more]\n(exit code 0)" in model.calls[1][-1].text
    assert len(model.calls[1][-1].text) < 4200
    assert len(trial.trajectory) < 1500


def test_a_reply_without_an_action_ends_the_try_and_is_kept(prepared):
    for reply in ("I would use chmod.", "Action: Bash\nls", "Action: Bash\n```bash\n\n```"):
        trial = try_(prepared(), "0", says(reply, "Name an action."))
        assert not trial.success
        assert trial.answer == reply
        assert f"No action could be read in: {reply}" in trial.trajectory


def test_memories_are_quoted_before_the_task(prepared):
    suite = prepared()
    seen = []

    def model(prompt):
        seen.append(prompt)
        return FINISH

    settings = RunSettings((ARMS["rag"],), seeds=1, epochs=2, tasks=2, batch=2)
    list(records(suite, settings, model))
    assert any("What did not work before:" in message.text for message in seen[-1])
    assert all("What did not work" not in m.text for prompt in seen[:2] for m in prompt)


def test_prompts_can_be_replaced_and_are_part_of_the_header(prepared, tmp_path):
    own = tmp_path / "prompts.json"
    own.write_text(json.dumps({"TASK": "Bitte: {instruction}"}))
    model = says("?", "x")
    suite = prepared(prompts=own)
    try_(suite, "1", model)
    assert model.calls[0][-1].text == f"Bitte: {TASKS['1']['instruction']}"
    assert suite.settings["prompts"] != prepared().settings["prompts"]


# --- agents ---------------------------------------------------------------------------------------


def solved(suite, arm, **options):
    options = {"seeds": 1, "epochs": 3, "guard": True, **options}
    settings = RunSettings((ARMS[arm],), **options)
    found = [one for one in records(suite, settings) if isinstance(one, EpisodeRecord)]
    return {(one.epoch, one.task): one.success for one in found}, found


@pytest.mark.parametrize("agent", SCRIPTED)
def test_every_agent_keeps_the_contract_of_a_suite(prepared, agent, tmp_path):
    few = write_tasks(tmp_path / "os.json", {id: TASKS[id] for id in "013"})
    check_suite(prepared(agent=agent, data=few))


def test_a_random_agent_acts_and_solves_next_to_nothing(prepared):
    suite = prepared(agent="random")
    trials = [try_(suite, id, epoch=epoch) for id in TASKS for epoch in range(2)]
    assert sum(trial.success for trial in trials) <= 3
    assert all(trial.trajectory.startswith("$ ") for trial in trials)
    assert trials[:6] == [try_(suite, id, epoch=epoch) for id in "012" for epoch in range(2)]
    assert trials[:6] != [try_(suite, id, epoch=e, seed=1) for id in "012" for e in range(2)]


def test_a_memory_bound_agent_solves_nothing_without_memories(prepared):
    results, _ = solved(prepared(agent="memory-bound"), "none", guard=False, epochs=1)
    assert not any(results.values())


def test_a_memory_bound_agent_solves_what_another_tasks_memory_shows(prepared, tmp_path):
    """Tasks 0 and 1 have the same forms; the guard hides each task's own memories."""
    few = write_tasks(tmp_path / "os.json", {id: TASKS[id] for id in "0134"})
    results, found = solved(prepared(agent="memory-bound", data=few), "rag", epochs=5)
    assert results[4, "0"]
    assert results[4, "1"]
    assert not any(success for (_, id), success in results.items() if id in "34")
    shown = {one.task: one.shown for one in found if one.epoch == 4}
    assert all(not name.endswith(f"-{id}") for id, names in shown.items() for name in names)


def test_a_memory_bound_agent_runs_only_what_it_has_seen(prepared):
    suite = prepared(agent="memory-bound")
    half = memory("mkdir -p /elsewhere")
    trial = try_(suite, "0", memories=(half,))
    assert trial.trajectory.splitlines()[0] == "$ mkdir -p /srv/oak"
    assert not trial.trajectory.count("chmod 755 /srv/oak && ")
    whole = memory("mkdir -p /a\nchmod 640 /b")
    assert try_(suite, "1", memories=(whole,)).success
    assert try_(suite, "1", memories=(memory("true"),)).answer == "I do not know"


def test_half_of_the_failures_are_corrected_for_every_arm_alike(prepared):
    suite = prepared(agent="memory-bound")
    trials = [try_(suite, "0", epoch=epoch) for epoch in range(12)]
    corrected = [trial for trial in trials if CORRECTED in trial.trajectory]
    assert 2 < len(corrected) < 10
    assert not any(trial.lesson for trial in trials)
    right = "$ mkdir -p /srv/oak && chmod 755 /srv/oak"
    assert {trial.trajectory.split(f"{CORRECTED}\n")[1] for trial in corrected} == {right}


def test_a_prior_bound_agent_is_distracted_by_unfit_memories_only(prepared):
    suite = prepared(agent="prior-bound")
    unfit, fit = memory("chown root /"), memory("mkdir -p /a; chmod 600 /a")
    alone = [try_(suite, "1", epoch=e).success for e in range(12)]
    with_fit = [try_(suite, "1", memories=(fit,) * 5, epoch=e).success for e in range(3)]
    distracted = [try_(suite, "1", memories=(unfit,) * 5, epoch=e).success for e in range(12)]
    assert 2 <= sum(alone) <= 10
    assert all(with_fit)  # it knows, or reads the forms off the memory
    assert sum(distracted) < sum(alone)
    assert all(a or not d for a, d in zip(alone, distracted, strict=True))


def memory(script):
    from types import SimpleNamespace

    experience = f"{show_command(script)}\n  (exit code 0)\nAnswer: done"
    return SimpleNamespace(memory=SimpleNamespace(experience=experience))


# --- runs -----------------------------------------------------------------------------------------


def test_the_header_names_the_agent_the_system_and_the_data(prepared, data, root, tmp_path):
    suite = prepared(agent="oracle", steps=3)
    settings = RunSettings((ARMS["none"],), seeds=1, epochs=1, tasks=2)
    (file,) = run(suite, settings, tmp_path / "out")
    header = read_records(file).header
    assert header.settings["agent"] == "oracle"
    assert header.settings["steps"] == 3
    assert header.settings["data"] == load_tasks(data).hashes
    assert header.settings["packages"] == digest((root / "var/lib/dpkg/status").read_bytes())
    assert header.versions["system"] == "Debian 12.34"
    assert str(root) not in file.read_text()
    run(suite, settings, tmp_path / "out")


def test_records_of_another_system_or_other_tasks_are_refused(prepared, tmp_path):
    settings = RunSettings((ARMS["none"],), seeds=1, epochs=1, tasks=2)
    run(prepared(agent="oracle"), settings, tmp_path / "out")
    other = write_tasks(tmp_path / "os.json", {**TASKS, "8": task("x", "true", "true")})
    another = make_root(tmp_path / "another")
    (another / "var/lib/dpkg/status").write_text("Package: bash\nVersion: 6\n")
    for changed in (
        prepared(agent="oracle", data=other),
        prepared(agent="oracle", root=another),
        prepared(agent="random"),
    ):
        with pytest.raises(InputError, match=r"another run.s: .*(data|agent|packages) is"):
            run(changed, settings, tmp_path / "out")


def test_the_preset_is_the_papers(prepared):
    suite = prepared()
    assert dict(suite.make(Setup()).recall) == {"k": 5, "fetch_k": 10, "score_threshold": 0.5}
    assert (suite.epochs, suite.batch, suite.settings["steps"]) == (10, 5, 15)


def test_what_a_run_costs_is_said_before(prepared):
    settings = RunSettings((ARMS["none"], ARMS["memrl"]), seeds=3, epochs=2, batch=4)
    costs = estimate(prepared(), settings, jobs=2)
    assert costs.tries == 2 * 3 * 2 * len(TASKS)
    assert costs.prompt_tokens > costs.completion_tokens > 0
    assert "no tokens" in str(estimate(prepared(agent="oracle"), settings))


def test_exceptions_are_listed_with_their_reason_and_counted_apart(prepared, monkeypatch, tmp_path):
    hopeless = task("Find a needle.", "false", "false")
    tasks = {"6": hopeless, "9": TASKS["0"], "12": task("Find hay.", "false", "false")}
    marks = {"no needle": {"6": digest("Find a needle.")[:8], "9": "00000000"}}
    monkeypatch.setattr(lifelong_os, "EXCEPTIONS", marks)
    suite = prepared(agent="oracle", data=write_tasks(tmp_path / "os.json", tasks))
    assert suite.exceptions == {"6": "no needle"}
    settings = RunSettings((ARMS["none"],), seeds=1, protocol="stream")
    run(suite, settings, tmp_path / "out")
    shown = notes(read_experiment(tmp_path / "out"))
    assert "Nobody can solve task 6 here, it counts as failed: no needle." in shown
    found = [one for one in records(suite, settings) if isinstance(one, EpisodeRecord)]
    assert exception_lines(suite, found)[0] == "1 of 3 pass."


def test_the_command_runs_the_ground_truth(data, root, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(root))
    command = ["eval", "run", "lifelong-os", "--data", str(data), "--agent", "oracle"]
    done = CliRunner().invoke(app, [*command, "--jobs", "4", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "6 of 6 pass." in done.output
    assert "6 tries, no tokens" in done.output


def test_nonsense_is_refused_before_anything_runs(prepared):
    with pytest.raises(ConfigError, match="agent is 'nobody'; expected one of model, oracle"):
        prepared(agent="nobody")
    with pytest.raises(ConfigError, match="steps is 1; expected at least 2"):
        prepared(steps=1)
