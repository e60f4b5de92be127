"""S9: names and ids never become paths; outside the bank's folder nothing changes.

A database that is a link is refused: `faults/test_marker.py`.
"""

import ast
import shutil

import pytest
from trees import package, state_of

from langchain_memrl import EpisodicMemory, load_memories
from langchain_memrl.errors import MemRLError

NAMES = [
    *("..", ".", "../x", "../../x", "/etc", "/etc/passwd", "//x", "C:\\x", "C:/x", "\\\\host\\x"),
    *("a/../../b", "a/b", "a\\b", "~", "~root", "$HOME", "%2e%2e%2f", "CON", "NUL", "aux.txt"),
    *(
        "memrl.sqlite3",
        "intents.faiss",
        "memrl.marker",
        ".",
        " .. ",
        "-rf",
        "*",
        "?",
        "a\nb",
        ":memory:",
    ),
    *("file:x?mode=memory", "x" * 255, "a|b", "a>b", "`id`", "$(id)", "\u2024\u2024/x"),
]


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """A folder beside the bank's, and the current one, with files that must stay as they are."""
    place = tmp_path / "outside"
    (place / "x").mkdir(parents=True)
    for name in ("secret", "x/secret", "memrl.sqlite3", "intents.faiss", "b"):
        (place / name).write_text("untouched")
    monkeypatch.chdir(place)
    monkeypatch.setenv("HOME", str(place))
    return place


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_hostile_name_writes_nothing_outside_the_folder(
    open_bank, folder, outside, tmp_path, embeddings, name
):
    before = state_of(outside)
    with open_bank() as bank:
        space = bank.in_namespace(name)
        made = space.remember(
            "task", "lesson", episode_id=name, source=name, metadata={"path": name}
        )
        space.recall("task", episode_id=f"{name[:200]} shown", score_threshold=None)
        space.reinforce(f"{name[:200]} shown", reward=1.0)
        space.hold(f"{name[:200]} held", intent="task", trajectory=name)
        load_memories(space, [{"intent": name, "lesson": name, "episode_id": f"l{name[:200]}"}])
        assert space.list(filter={"path": name})[0].id == made.id
        assert len(space.search_text("lesson")) >= 1
        bank.rebuild_index()
        bank.compact()
        bank.backup(tmp_path / "copy")
        bank.export_jsonl(tmp_path / "export.jsonl")
        space.forget(episode_id=name)
        space.forget(all=True)
        assert bank.verify().ok
    known = {"outside", "bank", "copy", "export.jsonl"}
    assert {path.name for path in tmp_path.iterdir()} == known
    assert state_of(outside) == before
    assert all(path.parent == folder for path in folder.rglob("*"))


@pytest.mark.parametrize(
    "name", [*NAMES[:20], "x" * 4096, "a\x00b", "", " "], ids=lambda n: ascii(n)[:30]
)
def test_a_hostile_id_is_an_unknown_id_or_refused(open_bank, outside, name):
    bank = open_bank()
    bank.remember("task", "lesson")
    before = state_of(outside)
    for call in (
        lambda: bank.get(name),
        lambda: bank.history(name),
        lambda: bank.forget(ids=[name]),
        lambda: bank.forget(episode_id=name),
        lambda: bank.disable(name),
        lambda: bank.update(name, lesson="x"),
        lambda: bank.episode(name),
        lambda: bank.reinforce("e", reward=1.0, ids=[name]),
    ):
        with pytest.raises(MemRLError):
            call()
    assert len(bank.list()) == 1
    assert state_of(outside) == before


@pytest.fixture
def bank_with_files(open_bank, folder):
    """The names of every file that a bank may have, and a closed bank."""
    with open_bank() as bank:
        bank.remember_many([{"intent": f"task {n}", "lesson": "lesson"} for n in range(5)])
        bank.recall("task 1")
        names = {path.name for path in folder.iterdir()}
    return sorted(names | {path.name for path in folder.iterdir()})


def test_a_planted_link_is_refused_or_replaced_and_its_target_stays(
    bank_with_files, open_bank, folder, outside, tmp_path
):
    whole, changed = tmp_path / "whole", []
    shutil.copytree(folder, whole)
    for name in bank_with_files:
        for target in (outside / "secret", outside / "new", outside):
            shutil.rmtree(folder)
            shutil.copytree(whole, folder)
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(target)
            before = state_of(outside)
            try:
                with open_bank() as bank:
                    bank.recall("task 1", score_threshold=None)
                    bank.remember("another", "lesson")
                    bank.rebuild_index()
                    bank.compact()
            except MemRLError:
                pass
            if state_of(outside) != before:
                changed.append(f"{name} -> {target.name}")
                (outside / "secret").write_text("untouched")
                (outside / "new").unlink(missing_ok=True)
    assert changed == []


def test_a_link_in_the_place_of_an_export_or_a_backup_is_not_followed(open_bank, outside, tmp_path):
    before = state_of(outside)
    (tmp_path / "export.jsonl").symlink_to(outside / "secret")
    (tmp_path / "copy").symlink_to(outside)
    bank = open_bank()
    bank.remember("task", "lesson")
    bank.export_jsonl(tmp_path / "export.jsonl")
    assert not (tmp_path / "export.jsonl").is_symlink()
    with pytest.raises(MemRLError):
        bank.backup(tmp_path / "copy")
    assert state_of(outside) == before


def test_folders_are_removed_only_where_they_were_just_made():
    """No recursive deletion of a path that comes from anywhere else than `mkdtemp`."""
    found = []
    for place, tree in package(without=("evals", "bench", "cli")):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("rmtree"):
                found.append((str(place), ast.unparse(node.args[0])))
    assert found == [("store/files.py", "temporary")]


def test_a_memory_of_the_name_memory_is_a_folder_only_when_it_says_so(outside, embeddings):
    with EpisodicMemory.open(":memory:", embeddings=embeddings) as bank:
        bank.remember("task", "lesson")
    assert not (outside / ":memory:").exists()
