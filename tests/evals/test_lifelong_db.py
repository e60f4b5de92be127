"""The database tasks on a real private server: grading, isolation, limits and agents."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage
from teashop import ROWS, TASKS, needs_server, task, write_tasks
from typer.testing import CliRunner

from langchain_memrl.cli.app import app
from langchain_memrl.errors import ConfigError, InputError, MemRLError
from langchain_memrl.evals.analysis.reading import read_experiment
from langchain_memrl.evals.arms import ARMS
from langchain_memrl.evals.benchmarks import benchmark
from langchain_memrl.evals.benchmarks.agents import CORRECTED, SCRIPTED, Scripted
from langchain_memrl.evals.benchmarks.databases import server as servers
from langchain_memrl.evals.benchmarks.databases.attempt import SQL
from langchain_memrl.evals.benchmarks.databases.connection import Database, server_version
from langchain_memrl.evals.benchmarks.databases.script import forms_in
from langchain_memrl.evals.benchmarks.databases.server import PrivateServer
from langchain_memrl.evals.benchmarks.databases.tasks import load_tasks
from langchain_memrl.evals.benchmarks.downloads import digest
from langchain_memrl.evals.contract import check_suite
from langchain_memrl.evals.environment import Setup, Situation
from langchain_memrl.evals.estimate import estimate
from langchain_memrl.evals.exceptions import exception_lines
from langchain_memrl.evals.loop import records, run
from langchain_memrl.evals.records import EpisodeRecord, read_records
from langchain_memrl.evals.report.findings import notes
from langchain_memrl.evals.settings import RunSettings
from langchain_memrl.evals.suites import lifelong_db
from langchain_memrl.evals.suites.lifelong_db import prepare
from langchain_memrl.offline import HashingEmbeddings, ScriptedChatModel

pytestmark = needs_server


@pytest.fixture(scope="module")
def server():
    with PrivateServer() as found:
        yield found


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_tasks(tmp_path_factory.mktemp("data") / "db.json")


@pytest.fixture(autouse=True)
def light(monkeypatch):
    monkeypatch.setattr(benchmark, "word_embeddings", lambda: HashingEmbeddings(64))


@pytest.fixture
def prepared(server, data):
    """Gives the suite, prepared on the shared server."""
    opened = []

    def prepare_(**options):
        dsn = f"mysql://root@/?unix_socket={server.address.socket}"
        opened.append(prepare(Setup(data=options.pop("data", data), dsn=dsn, **options)))
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


def runs(sql):
    return f"Let me see.\nAction: Operation\n```sql\n{sql}\n```"


def answers(text):
    return f"That is it.\nAction: Answer\nFinal Answer: {text}"


# --- grading --------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", list(TASKS))
def test_the_ground_truth_passes(prepared, id):
    assert try_(prepared(agent="oracle"), id).success is True


def test_the_right_rows_pass_in_any_order_and_wrong_ones_fail(prepared):
    suite, look = prepared(), runs("SELECT tea_name FROM teas WHERE price > 15")
    for text, right in (
        ("[('Gyokuro',), ('Oolong, dark',)]", True),
        ("[('Oolong, dark',), ('Gyokuro',)]", True),
        ("[('Gyokuro',)]", False),
        ("[('Gyokuro',), ('Gyokuro',)]", False),
        ("[('Gyokuro',), ('Oolong, dark',), ('Sencha',)]", False),
        ("", False),
    ):
        assert try_(suite, "1", says(look, answers(text), "a lesson")).success is right, text


def test_an_order_that_the_question_asks_for_counts(prepared):
    suite, look = prepared(), runs("SELECT country, AVG(price) FROM teas GROUP BY country")
    falling = "[('Japan', 21), ('Taiwan', 20), ('India', 9)]"
    rising = "[('India', 9), ('Taiwan', 20), ('Japan', 21)]"
    assert try_(suite, "2", says(look, answers(falling), "x")).success
    assert not try_(suite, "2", says(look, answers(rising), "x")).success


def test_an_answer_that_prints_the_expected_text_without_acting_fails(prepared):
    suite = prepared()
    right = answers("[('Gyokuro',), ('Oolong, dark',)]")
    assert not try_(suite, "1", says(right, "x")).success
    assert not try_(suite, "1", says(runs("SELEC nonsense"), right, "x")).success
    assert try_(suite, "1", says(runs("SELECT * FROM teas"), right, "x")).success


def test_a_change_is_judged_by_the_state_of_the_table_whatever_is_said(prepared):
    suite = prepared()
    right = "UPDATE teas SET price = 10 WHERE country = 'India'"
    assert try_(suite, "4", says(runs(right), answers("done"), "x")).success
    assert try_(suite, "4", says(runs(right), "no action at all", "x")).success
    assert not try_(suite, "4", says(answers("done"), "x")).success
    assert not try_(
        suite, "4", says(runs("UPDATE teas SET price = 10"), answers("done"), "x")
    ).success
    assert not try_(suite, "4", says(runs("DROP TABLE teas"), answers("done"), "x")).success


def test_where_the_file_gives_no_answer_the_right_statement_does(prepared):
    suite = prepared()
    look = runs("SELECT DISTINCT country FROM teas")
    assert try_(suite, "7", says(look, answers("[(3,)]"), "x")).success
    assert not try_(suite, "7", says(look, answers("[(4,)]"), "x")).success


# --- the server -----------------------------------------------------------------------------------


@pytest.fixture
def teas(data):
    return load_tasks(data).tasks[0].table


def test_a_drop_in_one_try_does_not_touch_another(server, teas):
    with Database(server.address, teas) as one, Database(server.address, teas) as other:
        name = one.run("SELECT DATABASE()").rows[0][0]
        assert "denied" in other.run(f"DROP DATABASE {name}").error
        assert not other.run("DROP TABLE teas").error
        assert other.run("SELECT * FROM teas").error
        assert other.state() == ""
        assert one.run("SELECT COUNT(*) FROM teas").rows == ((5,),)
        assert not one.run(f"DROP DATABASE {name}").error
        assert one.run("SELECT 1").error
        assert one.state() == ""


def test_a_try_sees_no_other_database_and_no_file(server, teas):
    with Database(server.address, teas) as one, Database(server.address, teas):
        assert len(one.run("SHOW DATABASES LIKE 'memrl%'").rows) == 1
        for statement in (
            "SELECT * FROM mysql.user",
            "SELECT 1 INTO OUTFILE '/tmp/x'",
            "SHUTDOWN",
            "SET GLOBAL max_connections = 1",
            "CREATE USER x",
            f"GRANT ALL ON *.* TO {one.run('SELECT DATABASE()').rows[0][0]}",
        ):
            assert one.run(statement).error, statement
        assert one.run("SELECT LOAD_FILE('/etc/passwd')").rows == ((None,),)


def test_nothing_of_a_try_is_left(server, teas):
    with Database(server.address, teas) as one:
        one.run("CREATE TABLE more (a INT)")
        name = one.run("SELECT DATABASE()").rows[0][0]
    with server.address.connect() as admin, admin.cursor() as cursor:
        cursor.execute("SHOW DATABASES")
        assert name not in {row[0] for row in cursor.fetchall()}
        cursor.execute("SELECT User FROM mysql.user")
        assert name not in {row[0] for row in cursor.fetchall()}


def test_a_statement_has_a_time_limit_that_it_cannot_lift(server, teas, monkeypatch):
    monkeypatch.setattr("langchain_memrl.evals.benchmarks.databases.connection.SLACK", 0.5)
    with Database(server.address, teas, limit=0.5) as one:
        assert one.run("SELECT COUNT(*) FROM teas a, teas b, (SELECT SLEEP(30)) c").error
        assert not one.run("SET SESSION max_statement_time = 0").error
        found = one.run("SET STATEMENT max_statement_time = 0 FOR SELECT SLEEP(30) FROM teas")
        assert found.error == "stopped: no statement may take more than 0.5 s"
        assert one.run("SELECT COUNT(*) FROM teas").rows == ((5,),)
        with server.address.connect() as admin, admin.cursor() as cursor:
            cursor.execute(
                "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE"
                " '%SLEEP(30)%' AND id <> CONNECTION_ID()"
            )
            assert cursor.fetchone() == (0,)


def test_a_statement_returns_at_most_a_thousand_rows(server, teas):
    with Database(server.address, teas) as one:
        assert (
            len(one.run("SELECT a.price FROM teas a, teas b, teas c, teas d, teas e").rows) == 1000
        )


def test_one_statement_at_a_time_and_no_setting_outlives_it(server, teas):
    with Database(server.address, teas) as one:
        assert one.run("DELETE FROM teas; SELECT 1").error
        one.run("SET SESSION sql_select_limit = 1")
        one.run("START TRANSACTION")
        assert len(one.run("SELECT * FROM teas").rows) == 5
        assert one.run("KILL CONNECTION_ID()").error
        assert one.run("SELECT 100 % 7, '%s'").rows == ((2, "%s"),)


def test_values_come_back_as_numbers_and_texts(server, teas):
    with Database(server.address, teas) as one:
        found = one.run(
            "SELECT SUM(price), AVG(price), NULL, DATE('2024-01-02'), tea_name FROM teas"
        )
        assert found.rows == ((80, 16.0, None, "2024-01-02", "Sencha"),)


OWNER = """
import sys
from langchain_memrl.evals.benchmarks.databases.script import forms_in
from langchain_memrl.evals.benchmarks.databases.server import PrivateServer
with PrivateServer() as server:
    with server.address.connect() as admin, admin.cursor() as cursor:
        cursor.execute("SELECT @@pid_file, @@datadir")
        file, folder = cursor.fetchone()
        if not file.startswith("/"):
            file = folder + file
    print(open(file).read().strip(), folder, flush=True)
    sys.stdin.readline()
"""


def ended(handle):
    return bool(select.select([handle], [], [], 20)[0])


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, None])
def test_the_server_ends_with_its_owner_however_that_ends(how):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    pid, folder = owner.stdout.readline().split()
    process = os.pidfd_open(int(pid))
    keeper = os.pidfd_open(int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]))
    assert Path(folder).is_dir()
    owner.stdin.close() if how is None else owner.send_signal(how)
    owner.wait()
    assert ended(process)
    assert ended(keeper)
    assert not Path(folder).parent.exists()
    os.close(process)
    os.close(keeper)


HALFWAY = """
import sys
from langchain_memrl.evals.benchmarks.databases.script import forms_in
from langchain_memrl.evals.benchmarks.databases.server import PrivateServer
def wait(self, log):
    print(self._keeper.pid, self._folder, flush=True)
    sys.stdin.readline()
PrivateServer._wait = wait
PrivateServer().__enter__()
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")
def test_a_server_that_is_being_set_up_ends_with_its_owner_too():
    owner = subprocess.Popen(
        [sys.executable, "-c", HALFWAY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    pid, folder = owner.stdout.readline().split()
    keeper = os.pidfd_open(int(pid))
    owner.kill()
    owner.wait()
    assert ended(keeper)
    assert not Path(folder).exists()
    os.close(keeper)


def test_a_server_that_does_not_start_says_why(monkeypatch):
    monkeypatch.setattr(servers, "LIKE_MYSQL", ("--no-such-setting",))
    with pytest.raises(MemRLError, match=r"did not start: .*no-such-setting"):
        PrivateServer().__enter__()


def test_a_server_that_is_gone_is_no_failed_task(data, tmp_path):
    with prepare(Setup(data=data, agent="oracle")) as suite:
        environment = suite.make(Setup())
    settings = RunSettings((ARMS["none"],), seeds=1, epochs=1, tasks=2, attempts=1)
    with pytest.raises(Exception, match="Can't connect"):
        environment.act(Situation(environment.tasks[0]))
    found = [one for one in records(suite, settings) if isinstance(one, EpisodeRecord)]
    assert [one.success for one in found] == [None, None]
    assert all("Can't connect" in one.error for one in found)


def test_an_account_that_may_not_create_is_told_so(server, teas):
    with server.address.connect() as admin, admin.cursor() as cursor:
        cursor.execute("CREATE USER IF NOT EXISTS weak IDENTIFIED BY 'w'")
    weak = server.address._replace(user="weak", password="w")
    assert "MariaDB" in server_version(weak)
    with pytest.raises(ConfigError, match="weak may not create databases"):
        Database(weak, teas).__enter__()
    with pytest.raises(ConfigError, match="does not answer"):
        server_version(server.address._replace(user="nobody", password="x"))


# --- models ---------------------------------------------------------------------------------------


def test_a_model_thinks_acts_sees_the_result_and_answers(prepared):
    model = says(
        runs("SELECT tea FROM teas"),
        runs("SELECT tea_name FROM teas WHERE price > 15"),
        answers("[('Gyokuro',), ('Oolong, dark',)]"),
        "Look at the columns first.",
    )
    trial = try_(prepared(), "1", model)
    assert trial.success
    assert trial.lesson == "Look at the columns first."
    first, second, third, lesson = model.calls
    assert "Table: teas (tea_id INT, tea_name TEXT, country TEXT, price INT)" in first[-1].text
    assert "Gyokuro" not in first[-1].text
    assert "error: 1054 Unknown column 'tea'" in second[-1].text
    assert "[('Gyokuro',), ('Oolong, dark',)]" in third[-1].text
    assert "12 replies are left" not in second[-1].text
    assert "SELECT tea FROM teas" in lesson[-1].text
    assert trial.trajectory.splitlines()[1] == f"{SQL}SELECT tea FROM teas"
    assert trial.calls == 4


def test_tokens_and_calls_are_counted_the_lesson_included(prepared):
    usage = {"input_tokens": 100, "output_tokens": 7, "total_tokens": 107}
    replies = [runs("SELECT 1"), answers("[(5,)]"), "count"]
    model = says(*(AIMessage(text, usage_metadata=usage) for text in replies))
    trial = try_(prepared(), "6", model)
    assert (trial.success, trial.prompt_tokens, trial.completion_tokens, trial.calls) == (
        True,
        300,
        21,
        3,
    )


def test_a_model_that_never_answers_is_stopped_at_the_step_limit(prepared):
    asked = []

    def model(prompt):
        asked.append(prompt)
        return runs("SELECT 1")

    trial = try_(prepared(steps=3), "1", model)
    assert not trial.success
    assert len(asked) == 4  # three steps, and the lesson
    assert trial.trajectory.count(SQL) == 3
    assert trial.answer == ""


class Endless(Scripted):
    """Runs one statement after the other and never answers."""

    name, learns = "endless", False

    def play(self, situation, attempt):
        while True:
            attempt.run("SELECT 1")


def test_no_agent_gets_more_steps_than_the_limit(prepared, monkeypatch):
    monkeypatch.setitem(SCRIPTED, "endless", Endless)
    Endless.about = "never ends"
    trial = try_(prepared(agent="endless", steps=4), "1")
    assert not trial.success
    assert trial.trajectory.count(SQL) == 4


def test_no_lesson_is_asked_for_where_none_is_kept(prepared):
    asked = []

    def model(prompt):
        asked.append(prompt)
        return answers("[]")

    for arm, calls in (("none", 2), ("rag", 2), ("memrl", 4)):
        asked.clear()
        settings = RunSettings((ARMS[arm],), seeds=1, epochs=1, tasks=2)
        list(records(prepared(), settings, model))
        assert len(asked) == calls, arm


def test_a_reply_without_an_action_ends_the_try_and_is_kept(prepared):
    trial = try_(prepared(), "1", says("I would use SQL here.", "Name an action."))
    assert not trial.success
    assert trial.answer == "I would use SQL here."
    assert "No action could be read in: I would use SQL here." in trial.trajectory


def test_memories_are_quoted_before_the_task(prepared):
    suite = prepared(agent="model")
    seen = []

    def model(prompt):
        seen.append(prompt)
        return answers("[]")

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
def test_every_agent_keeps_the_contract_of_a_suite(prepared, agent):
    check_suite(prepared(agent=agent))


def test_a_random_agent_acts_and_solves_next_to_nothing(prepared):
    suite = prepared(agent="random")
    trials = [try_(suite, id, epoch=epoch) for id in TASKS for epoch in range(5)]
    assert sum(trial.success for trial in trials) <= 2
    assert all("error" not in trial.trajectory for trial in trials)
    again = [try_(suite, id, epoch=epoch) for id in TASKS for epoch in range(5)]
    assert trials == again
    assert trials != [try_(suite, id, epoch=e, seed=1) for id in TASKS for e in range(5)]


def test_a_memory_bound_agent_solves_nothing_without_memories(prepared):
    results, _ = solved(prepared(agent="memory-bound"), "none", guard=False)
    assert not any(results.values())


def test_a_memory_bound_agent_solves_what_another_tasks_memory_shows(prepared):
    """Tasks 0 and 1 have one form; the guard hides each task's own memories."""
    results, found = solved(prepared(agent="memory-bound"), "rag")
    assert results[2, "0"]
    assert results[2, "1"]
    assert not any(success for (_, task), success in results.items() if task in "3456")
    shown = {one.task: one.shown for one in found if one.epoch == 2}
    assert all(not name.endswith(f"-{id}") for id, names in shown.items() for name in names)


def test_a_memory_bound_agent_repeats_its_own_solution_without_the_guard(prepared):
    results, _ = solved(prepared(agent="memory-bound"), "rag", guard=False, epochs=4)
    assert all(results[3, id] for id in TASKS)


def test_half_of_the_failures_are_corrected_for_every_arm_alike(prepared):
    suite = prepared(agent="memory-bound")
    trials = [try_(suite, id, epoch=epoch) for id in TASKS for epoch in range(8)]
    corrected = [CORRECTED in trial.trajectory for trial in trials]
    assert 20 < sum(corrected) < 44
    assert not any(trial.lesson for trial in trials)


def test_a_prior_bound_agent_is_distracted_by_unfit_memories_only(prepared):
    suite = prepared(agent="prior-bound")
    unfit, fit = memory("DELETE FROM teas"), memory("SELECT COUNT(*) FROM teas")
    alone = [try_(suite, "6", epoch=e).success for e in range(40)]
    with_fit = [try_(suite, "6", memories=(fit,) * 5, epoch=e).success for e in range(40)]
    distracted = [try_(suite, "6", memories=(unfit,) * 5, epoch=e).success for e in range(40)]
    assert 12 <= sum(alone) <= 28
    assert all(with_fit)  # it knows, or reads the form off the memory
    assert sum(distracted) < sum(alone)
    assert all(a or not d for a, d in zip(alone, distracted, strict=True))


def memory(sql):
    from types import SimpleNamespace

    experience = f"Table: teas (tea_id INT)\n{SQL}{sql}"
    assert forms_in(experience)
    return SimpleNamespace(memory=SimpleNamespace(experience=experience))


# --- runs -----------------------------------------------------------------------------------------


def test_the_header_names_the_agent_the_server_and_the_data(prepared, data, tmp_path):
    suite = prepared(agent="oracle", steps=3)
    settings = RunSettings((ARMS["none"],), seeds=1, epochs=1, tasks=2)
    (file,) = run(suite, settings, tmp_path / "out")
    header = read_records(file).header
    assert header.settings["agent"] == "oracle"
    assert header.settings["steps"] == 3
    assert (
        header.settings["note"]
        == "agent oracle: does what the benchmark calls right; it measures the environment"
    )
    assert header.settings["data"] == load_tasks(data).hashes
    assert "MariaDB" in header.versions["database"]
    assert "unix_socket" not in file.read_text()
    run(suite, settings, tmp_path / "out")
    other = write_tasks(tmp_path / "db.json", {**TASKS, "8": task("x", "SELECT 1", [[1]])})
    for changed in (
        prepared(agent="oracle", steps=3, data=other),
        prepared(agent="random", steps=3),
    ):
        with pytest.raises(InputError, match=r"another run.s: .*--(data|agent) is"):
            run(changed, settings, tmp_path / "out")


def test_a_part_of_the_tasks_is_drawn_by_the_seed_in_the_order_of_the_file(prepared):
    suite = prepared(agent="oracle")
    drawn = [[one.id for one in suite.make(Setup(seed=s, tasks=4)).tasks] for s in range(5)]
    assert all(ids == sorted(ids) and len(ids) == 4 for ids in drawn)
    assert len({tuple(ids) for ids in drawn}) > 1
    assert [one.id for one in suite.make(Setup()).tasks] == list(TASKS)


def test_the_preset_is_the_papers(prepared):
    suite = prepared()
    assert dict(suite.make(Setup()).recall) == {"k": 5, "fetch_k": 10, "score_threshold": 0.37}
    assert (suite.epochs, suite.batch, suite.settings["steps"]) == (10, 5, 15)


def test_what_a_run_costs_is_said_before(prepared):
    settings = RunSettings((ARMS["none"], ARMS["memrl"]), seeds=3, epochs=2, batch=4)
    costs = estimate(prepared(), settings, jobs=2)
    assert costs.tries == 2 * 3 * 2 * len(TASKS)
    assert costs.prompt_tokens > costs.completion_tokens > 0
    assert "tokens sent" in str(costs)
    assert "no tokens" in str(estimate(prepared(agent="oracle"), settings))


def test_exceptions_are_listed_with_their_reason_and_counted_apart(prepared, monkeypatch, tmp_path):
    tie = task("Name any tea.", "SELECT tea_name FROM teas LIMIT 1", [["Assam"]])
    wrong = task("Name a tea.", "SELECT nothing FROM teas", [["Assam"]])
    tasks = {"6": tie, "9": TASKS["0"], "12": wrong}
    mark = digest("Name any tea.")[:8]
    monkeypatch.setattr(lifelong_db, "EXCEPTIONS", {"a tie": {"6": mark, "9": "00000000"}})
    suite = prepared(agent="oracle", data=write_tasks(tmp_path / "db.json", tasks))
    assert suite.exceptions == {"6": "a tie"}
    settings = RunSettings((ARMS["none"],), seeds=1, protocol="stream")
    run(suite, settings, tmp_path / "out")
    shown = notes(read_experiment(tmp_path / "out"))
    assert (
        "Agent oracle: does what the benchmark calls right; it measures the environment." in shown
    )
    assert "Nobody can solve task 6 here, it counts as failed: a tie." in shown
    found = [one for one in records(suite, settings) if isinstance(one, EpisodeRecord)]
    assert exception_lines(suite, found) == [
        "1 of 3 pass.",
        "1 of 3 tries met a task that cannot be solved here; 0 of them count as solved all the "
        "same:",
        "  6: a tie",
        "  not expected: 12",
    ]


def test_the_command_runs_the_ground_truth_on_a_server_of_its_own(data, tmp_path, monkeypatch):
    monkeypatch.delenv(lifelong_db.DSN, raising=False)
    command = ["eval", "run", "lifelong-db", "--data", str(data), "--agent", "oracle"]
    done = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "8 of 8 pass." in done.output
    assert "8 tries, no tokens" in done.output
    assert "agent oracle: does what the benchmark calls right" in done.output


def test_rows_of_the_invented_table_are_what_the_tests_think(server, teas):
    with Database(server.address, teas) as one:
        assert [list(row) for row in one.run("SELECT * FROM teas").rows] == ROWS
