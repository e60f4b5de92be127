"""The operating-system tasks as they are downloaded, their roots, the forms of their scripts."""

import hashlib
import json

import pytest
from workshop import TASKS, make_root, task, write_tasks

from langchain_memrl.errors import ConfigError, InputError
from langchain_memrl.evals.benchmarks.shells import groups
from langchain_memrl.evals.benchmarks.shells.attempt import forms_in, show_command, show_result
from langchain_memrl.evals.benchmarks.shells.conversing import Move, read_move
from langchain_memrl.evals.benchmarks.shells.forms import forms_of, parts_of, write
from langchain_memrl.evals.benchmarks.shells.machine import Result
from langchain_memrl.evals.benchmarks.shells.roots import VARIABLE, find_root
from langchain_memrl.evals.benchmarks.shells.tasks import load_tasks
from langchain_memrl.evals.environment import Setup
from langchain_memrl.evals.suites import find_suites, load_suite
from langchain_memrl.evals.suites.lifelong_os import prepare

# --- tasks ----------------------------------------------------------------------------------------


def test_tasks_are_read_as_they_stand_and_their_file_is_known_by_its_hash(tmp_path):
    path = write_tasks(tmp_path / "os.json")
    found = load_tasks(path)
    assert found.hashes == {"os.json": hashlib.sha256(path.read_bytes()).hexdigest()}
    assert [one.id for one in found.tasks] == list(TASKS)
    counted = found.tasks[2]
    assert counted.instruction == TASKS["2"]["instruction"]
    assert counted.preparation == "printf 'a\\nb\\nc\\n' > /srv/planks"
    assert counted.truth == "wc -l < /srv/planks > /srv/count"
    assert counted.check == "[ $(cat /srv/count) -eq 3 ]"


def test_python_literals_in_strings_are_the_same_tasks(tmp_path):
    plain = load_tasks(write_tasks(tmp_path / "os.json")).tasks
    literals = {
        key: {
            name: value if name == "instruction" else repr(value) for name, value in entry.items()
        }
        for key, entry in TASKS.items()
    }
    assert load_tasks(write_tasks(tmp_path / "literals.json", literals)).tasks == plain


def test_the_validation_part_of_a_folder_is_what_a_transfer_holds_out(tmp_path):
    split = {"os_interaction_train.json": ["0", "3"], "os_interaction_val.json": ["1", "2"]}
    for name, keys in split.items():
        write_tasks(tmp_path / name, {key: TASKS[key] for key in keys})
    found = load_tasks(tmp_path)
    assert [one.id for one in found.tasks if one.held_out] == ["1", "2"]
    assert set(found.hashes) == set(split)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "cannot be read"),
        ("[]", "holds no tasks"),
        ('{"0": {"instruction": "x"}}', "not one of LifelongAgentBench's operating-system tasks"),
        (
            json.dumps({"0": TASKS["0"] | {"initialization_command_item": {"command_name": "c"}}}),
            "a command for 'c'; expected bash",
        ),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(tmp_path, content, said):
    path = tmp_path / "os.json"
    path.write_text(content)
    with pytest.raises(InputError, match=said):
        load_tasks(path)


def test_without_data_one_sentence_says_where_to_get_it(tmp_path):
    for call in (
        lambda: load_tasks(None),
        lambda: load_tasks(tmp_path / "missing.json"),
        lambda: load_tasks(tmp_path),
        lambda: load_suite("lifelong-os").make(Setup()),
        lambda: prepare(Setup()).__enter__(),
    ):
        with pytest.raises(InputError, match=r"https://huggingface.co/.*--data PATH"):
            call()
    assert "lifelong-os" in find_suites()


# --- roots ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return make_root(tmp_path_factory.mktemp("system") / "root")


def test_a_root_is_known_by_its_release_and_its_packages(root, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(root))
    found = find_root(None)
    assert found == find_root(root)
    assert (found.folder, found.name) == (root.resolve(), "Debian 12.34")
    packages = (root / "var/lib/dpkg/status").read_bytes()
    assert found.packages == hashlib.sha256(packages).hexdigest()


def test_what_is_no_root_is_refused_with_the_command_that_makes_one(tmp_path, root, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    lacking = make_root(tmp_path / "lacking")
    (lacking / "bin/vim").unlink()
    for folder, said in (
        (None, "needs a folder"),
        (tmp_path, "holds no Debian"),
        (tmp_path / "nowhere", "holds no Debian"),
        (tmp_path.__class__("/"), "is this machine itself"),
        (lacking, "lacks vim"),
    ):
        with pytest.raises(ConfigError, match=rf"{said}.*debootstrap --variant=minbase.*--root"):
            find_root(folder)
    data = write_tasks(tmp_path / "os.json")
    with pytest.raises(ConfigError, match="needs a folder"):
        prepare(Setup(data=data)).__enter__()


# --- control groups -------------------------------------------------------------------------------

HYBRID = """cgroup {0}/pids cgroup rw,pids 0 0
cgroup {0}/memory cgroup rw,memory 0 0
cgroup2 {0}/unified cgroup2 rw 0 0
"""


def places(monkeypatch, tmp_path, mounts, own):
    (tmp_path / "mounts").write_text(mounts.format(tmp_path))
    (tmp_path / "own").write_text(own)
    monkeypatch.setattr(groups, "MOUNTS", tmp_path / "mounts")
    monkeypatch.setattr(groups, "OWN", tmp_path / "own")
    return list(groups._parents("pids"))


def test_a_group_is_made_below_the_own_one_or_else_at_the_top(monkeypatch, tmp_path):
    (tmp_path / "pids/mine").mkdir(parents=True)
    found = places(monkeypatch, tmp_path, HYBRID, "8:pids:/mine\n4:memory:/other\n0::/\n")
    assert found == [
        (tmp_path / "pids/mine", 1),
        (tmp_path / "pids", 1),
        (tmp_path / "unified", 2),
    ]
    (tmp_path / "user.slice").mkdir()
    found = places(monkeypatch, tmp_path, "cgroup2 {0} cgroup2 rw 0 0\n", "0::/user.slice\n")
    assert found == [(tmp_path / "user.slice", 2), (tmp_path, 2)]


def test_in_version_two_the_children_of_a_group_are_limited_if_they_are_not(tmp_path):
    control = tmp_path / "cgroup.subtree_control"
    control.write_text("cpu pids\n")
    groups._enable(tmp_path)
    assert control.read_text() == "+memory"
    control.write_text("cpu memory pids\n")
    groups._enable(tmp_path)
    assert control.read_text() == "cpu memory pids\n"


def test_where_no_group_can_be_made_the_error_says_for_what(monkeypatch, tmp_path):
    places(monkeypatch, tmp_path, "", "0::/\n")
    with pytest.raises(OSError, match="no control group for pids"):
        groups.make_group("memrl-x", processes=1, memory=1)


# --- forms ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "forms"),
    [
        ("chmod -R 755 /srv", {"chmod -R"}),
        ("/usr/bin/tool --deep=3 x", {"a file --deep"}),
        ("useradd -m -s /bin/sh ann", {"useradd -m -s"}),
        ("useradd -s /bin/zsh -m bob", {"useradd -m -s"}),
        ("echo 'a && b; c' > /x", {"echo >"}),
        ("echo a >> /x 2>/dev/null", {"echo >>"}),
        ("ls /x > /dev/null 2>&1", {"ls"}),
        ("cut -d: -f1 /etc/passwd | sort -u | head -n 5", {"cut -d -f1", "sort -u", "head -n"}),
        ('n=$(wc -l < /x) && echo "$(date +%F) $n"', {"wc -l", "echo", "date"}),
        ("echo '$(date)'", {"echo"}),
        ("if [ -f /x ]; then rm -f /x; else touch /x; fi", {"[ -f", "rm -f", "touch"}),
        ("for i in 1 2; do mkdir /d$i; done", {"for", "mkdir"}),
        ("cat /x | while read -r line; do echo $line; done", {"cat", "read -r", "echo"}),
        ("(cd /x && ./run &)", {"cd", "a file"}),
        ("LANG=C sort /x", {"sort"}),
        ("# only a remark", set()),
        ("touch /a # and a remark; rm /a", {"touch"}),
        ("diff <(sort /a) /b", {"diff", "sort"}),
        ("", set()),
        ("echo 'never closed", {"echo"}),
    ],
)
def test_the_form_of_a_command_is_its_name_and_its_options(script, forms):
    found = forms_of(script)
    if "never" in script:
        assert "echo" in {form.split()[0] for form in found}
    else:
        assert found == forms


def test_a_script_falls_apart_where_commands_end_and_not_inside_of_loops():
    script = "mkdir -p /a && cd /a; for f in *; do rm $f; echo $f; done || exit 1\nls | wc -l &"
    parts = parts_of(script)
    assert [part.text for part in parts] == [
        "mkdir -p /a",
        "cd /a",
        "for f in *; do rm $f; echo $f; done",
        "exit 1",
        "ls | wc -l",
    ]
    assert [part.joint for part in parts] == ["&&", ";", "||", "\n", "&"]
    assert "".join(write(parts).split()) == "".join(script.split())
    assert write(parts[:1]) == "mkdir -p /a"
    assert write(parts[2:3]) == "for f in *; do rm $f; echo $f; done"
    assert write([]) == ""


def test_parts_keep_what_belongs_together():
    for script in (
        "echo 'one; two' \"three && four\" five\\;six",
        "(a; b)",
        "{ a; b; }",
        "x=$(a; b)",
        "if a; then b; fi",
        "case $x in a) b;; c) d;; esac",
        "while a; do if b; then c; fi; done",
        "find / -exec rm {} \\;",
        "a 2>&1 | b",
        "a &> /dev/null",
    ):
        assert len(parts_of(script)) == 1, script
        assert write(parts_of(script)) == script


def test_a_memory_shows_the_forms_of_its_commands_and_not_of_its_outputs():
    memory = (
        f"{show_command('mkdir -p /a')}\n  rm -rf /\n  $ no-command\n  (exit code 0)\n"
        f"{show_command('for i in 1 2')}\n> do touch /b$i\n> done\nAnswer: done"
    )
    assert forms_in(memory) == {"mkdir -p", "for", "touch"}
    assert forms_in(show_command("cd /a\nls -l")) == {"cd", "ls -l"}


# --- what a model reads and says ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "move"),
    [
        ("Think.\nAction: Bash\n```bash\nls /srv\n```", Move(script="ls /srv")),
        ("**Action: bash**\n```sh\nls\n\npwd\n```\nthen?", Move(script="ls\n\npwd")),
        ("Action: Bash\n```\nls\n```", Move(script="ls")),
        ("Action: Bash\n```bash\nls", Move(script="ls")),
        ("Action: Bash\n```bash\na\n```\nAction: Bash\n```bash\nb\n```", Move(script="a")),
        ("Action: Finish", Move(finished=True)),
        ("action: finish\n```bash\nls\n```", Move(finished=True)),
        ("Action: Bash\nls /srv", Move()),
        ("```bash\nls\n```", Move()),
        ("", Move()),
    ],
)
def test_the_first_action_of_a_reply_counts(reply, move):
    assert read_move(reply) == move


def test_a_result_tells_its_exit_code_and_what_is_missing():
    assert show_result(Result(0, "a\nb\n")) == "a\nb\n(exit code 0)"
    assert show_result(Result(1)) == "(exit code 1)"
    assert show_result(Result(None, "x")) == "x\n(not finished after 20 s, still running)"
    assert show_result(Result(0, "x" * 10, 5), 4) == (
        "xxxx [... 6 characters more] [... 5 bytes more]\n(exit code 0)"
    )


def test_a_task_without_a_preparation_has_none(tmp_path):
    found = load_tasks(write_tasks(tmp_path / "os.json", {"0": task("x", "true", "true")}))
    assert found.tasks[0].preparation == ""
