"""The user's download: read in every form it comes in, and refused in one sentence else."""

import gzip
import hashlib
import json
import lzma

import pytest
from teashop import COLUMNS, ROWS, TASKS, task, write_tasks
from typer.testing import CliRunner

from langchain_memrl.cli.app import app
from langchain_memrl.errors import ConfigError, InputError, MemRLError
from langchain_memrl.evals.benchmarks.databases import server as servers
from langchain_memrl.evals.benchmarks.databases.server import (
    Address,
    PrivateServer,
    client,
    find_program,
)
from langchain_memrl.evals.benchmarks.databases.tasks import load_tasks
from langchain_memrl.evals.environment import Setup
from langchain_memrl.evals.running.protocols import plan
from langchain_memrl.evals.suites import find_suites, load_suite
from langchain_memrl.evals.suites.lifelong_db import prepare


def test_tasks_are_read_as_they_stand_and_their_file_is_known_by_its_hash(tmp_path):
    path = write_tasks(tmp_path / "db.json")
    found = load_tasks(path)
    assert found.hashes == {"db.json": hashlib.sha256(path.read_bytes()).hexdigest()}
    assert [one.id for one in found.tasks] == list(TASKS)
    first = found.tasks[0]
    assert first.instruction == TASKS["0"]["instruction"]
    assert first.table.columns == tuple(COLUMNS)
    assert first.table.rows == tuple(map(tuple, ROWS))
    assert [one.asks for one in found.tasks] == [True, True, True, False, False, False, True, True]


def test_python_literals_in_strings_and_packed_files_are_the_same_tasks(tmp_path):
    plain = load_tasks(write_tasks(tmp_path / "db.json")).tasks
    literals = {
        key: {
            name: value if name == "instruction" else repr(value) for name, value in entry.items()
        }
        for key, entry in TASKS.items()
    }
    text = json.dumps(literals).encode()
    (tmp_path / "a.json.xz").write_bytes(lzma.compress(text))
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(text))
    assert load_tasks(tmp_path / "a.json.xz").tasks == plain
    assert load_tasks(tmp_path / "a.json.gz").tasks == plain


def test_tasks_are_in_the_order_of_their_numbers_not_of_the_file(tmp_path):
    renamed = {key: TASKS[old] for key, old in (("10", "0"), ("9", "1"), ("2", "2"))}
    found = load_tasks(write_tasks(tmp_path / "db.json", renamed))
    assert [one.id for one in found.tasks] == ["2", "9", "10"]


def test_the_validation_part_of_a_folder_is_what_a_transfer_holds_out(tmp_path):
    split = {"db_train.json": ["0", "3", "4", "5"], "db_val.json": ["1", "2"]}
    for name, keys in split.items():
        write_tasks(tmp_path / name, {key: TASKS[key] for key in keys})
    found = load_tasks(tmp_path)
    assert [one.id for one in found.tasks if one.held_out] == ["1", "2"]
    assert set(found.hashes) == set(split)


def test_a_split_that_the_tasks_bring_along_is_not_drawn_again():
    from colours import settings

    from langchain_memrl.evals.environment import Task

    tasks = [Task(str(i), f"do {i}", held_out=i in (1, 4)) for i in range(6)]
    batches = plan(settings(protocol="transfer", epochs=1, batch=6), tasks, seed=3)
    assert {t.id for b in batches if b.frozen for t in b.tasks} == {"1", "4"}
    assert {t.id for b in batches if not b.frozen for t in b.tasks} == {"0", "2", "3", "5"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "cannot be read"),
        ("[]", "holds no tasks"),
        ("{}", "holds no tasks"),
        ('{"0": {"instruction": "x"}}', "task 0 is not one of LifelongAgentBench's database tasks"),
        ('{"0": 3}', "task 0 is not one"),
        (json.dumps({"0": TASKS["0"] | {"table_info": "{'name': open}"}}), "task 0 is not one"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(tmp_path, content, said):
    path = tmp_path / "db.json"
    path.write_text(content)
    with pytest.raises(InputError, match=said):
        load_tasks(path)


def test_a_table_of_another_kind_is_refused(tmp_path):
    strange = task("x", "SELECT 1", [[1]])
    strange["table_info"]["column_info_list"][0]["type"] = "INT); DROP TABLE x; --"
    with pytest.raises(InputError, match="the type of a column"):
        load_tasks(write_tasks(tmp_path / "a.json", {"0": strange}))
    short = task("x", "SELECT 1", [[1]])
    short["table_info"] = short["table_info"] | {"row_list": [[1]]}
    with pytest.raises(InputError, match="a row is longer or shorter"):
        load_tasks(write_tasks(tmp_path / "b.json", {"0": short}))
    with pytest.raises(InputError, match="two tasks have the instruction"):
        load_tasks(write_tasks(tmp_path / "c.json", {"0": TASKS["0"], "1": TASKS["0"]}))


def test_without_data_one_sentence_says_where_to_get_it(tmp_path):
    for call in (
        lambda: load_tasks(None),
        lambda: load_tasks(tmp_path / "missing.json"),
        lambda: load_tasks(tmp_path),
        lambda: load_suite("lifelong-db").make(Setup()),
        lambda: prepare(Setup()).__enter__(),
    ):
        with pytest.raises(InputError, match=r"https://huggingface.co/.*--data PATH"):
            call()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lifelong-db"], "--data PATH"),
        (["lifelong-db", "--data", "missing.json"], "--data PATH"),
        (["worlds", "--data", "missing.json"], "the suite worlds takes no --data"),
        (["worlds", "--agent", "oracle"], "the suite worlds takes no --data, --agent"),
    ],
)
def test_the_command_says_in_one_sentence_what_it_needs(tmp_path, arguments, said):
    done = CliRunner().invoke(app, ["eval", "run", *arguments, "--out", str(tmp_path)])
    assert done.exit_code != 0
    assert isinstance(done.exception, MemRLError)
    assert said in str(done.exception)


def test_the_suite_is_found_by_its_name():
    assert find_suites()["lifelong-db"].endswith("lifelong_db")


# --- what is missing ------------------------------------------------------------------------------


def test_a_missing_server_is_said_with_its_package(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(servers, "SYSTEM_PATH", "")
    with pytest.raises(ConfigError, match="apt-get install mariadb-server-core"):
        find_program("mariadbd")


def test_a_missing_client_is_said_with_its_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pymysql", None)
    for call in (client, PrivateServer().__enter__):
        with pytest.raises(ConfigError, match=r"langchain-memrl\[bench-db\]"):
            call()


def test_an_address_is_read_with_its_password_and_never_repeats_it():
    assert Address.parse("mysql://me:p%40ss@db.test:3307/") == Address(
        "me", "p@ss", "db.test", 3307
    )
    assert Address.parse("mysql://me@/?unix_socket=/run/x").socket == "/run/x"
    for wrong in (
        "postgres://me:secret@host/",
        "secret",
        "mysql://me:secret@host:no/",
        "mysql:///",
    ):
        with pytest.raises(ConfigError, match="the database address") as caught:
            Address.parse(wrong)
        assert "secret" not in str(caught.value).replace("secret://", "")


@pytest.mark.parametrize(
    ("setup", "said"),
    [
        ({"agent": "genius"}, "agent is 'genius'; expected one of model, oracle"),
        ({"steps": 1}, "steps is 1; expected at least 2"),
    ],
)
def test_a_choice_that_does_not_exist_is_refused_before_anything_starts(setup, said):
    with pytest.raises(ConfigError, match=said):
        prepare(Setup(**setup)).__enter__()


@pytest.mark.parametrize(
    "content", ["", "[]", '{"OTHER": "x"}', '{"TASK": 3}', '{"TASK": "{unknown}"}', '{"TASK": "{"}']
)
def test_a_file_without_usable_prompts_is_refused(tmp_path, content):
    data = write_tasks(tmp_path / "db.json")
    (tmp_path / "prompts.json").write_text(content)
    with pytest.raises(ConfigError, match="holds no prompts"):
        prepare(Setup(data=data, prompts=tmp_path / "prompts.json")).__enter__()
