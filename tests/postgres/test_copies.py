"""From a folder to a server and back: nothing changes on the way."""

import json

import pytest
from fakes import FakeEmbeddings

from langchain_memrl import EpisodicMemory, LearningConfig

SPACES = ("default", "acme")
TASKS = [f"task {number} ä" for number in range(30)]


@pytest.fixture
def origin(tmp_path, embeddings):
    """A bank in a folder, with everything that a bank can hold."""
    learning = LearningConfig(step_size=0.2, reward_range=(-2, 2))
    with EpisodicMemory.open(
        tmp_path / "origin", embeddings=embeddings, learning=learning
    ) as memory:
        for space in SPACES:
            for number, task in enumerate(TASKS):
                memory.remember(
                    task,
                    f'lesson {number} "quoted"\n',
                    trajectory="日本 \\ 😀" * (number % 3),
                    outcome=("success", "failure", "unknown")[number % 3],
                    metadata={"n": number, "deep": {"x": [1.5, None, True]}},
                    namespace=space,
                    episode_id=f"w{number}",
                )
            for number in range(20):
                memory.recall(
                    TASKS[number],
                    episode_id=f"e{number}",
                    namespace=space,
                    score_threshold=None,
                    holdout=0.3,
                )
                if number % 4:
                    memory.reinforce(f"e{number}", reward=(-1) ** number / 3, namespace=space)
            memory.hold("h", intent="held", trajectory="steps", namespace=space)
            memory.reinforce("later", reward=1, early=True, namespace=space)
            newest = memory.list(namespace=space)
            memory.disable(newest[3].id, namespace=space)
            memory.pin(newest[4].id, namespace=space)
            memory.forget(ids=[newest[5].id], namespace=space)
        yield memory


def contents(memory):
    """All that can be seen of a bank."""
    found = {"learning": memory.learning, "spaces": memory.namespaces()}
    for space in SPACES:
        every = memory.list(limit=None, namespace=space)
        found[space] = {
            "memories": every,
            "histories": [memory.history(one.id, namespace=space) for one in every],
            "stats": memory.stats(namespace=space),
            "episodes": [
                memory.episode(f"{kind}{n}", namespace=space) for kind in "we" for n in range(20)
            ],
            "waiting": memory.open_episodes(namespace=space),
            "lift": repr(memory.lift(namespace=space)),
            "recalls": [
                [
                    (hit.id, hit.similarity, hit.score, hit.memory.q_value)
                    for hit in memory.recall(task, namespace=space, **options).memories
                ]
                for task in [*TASKS[::5], "another task"]
                for options in ({}, {"score_threshold": None, "k": 12, "filter": {"n": {"$gt": 7}}})
            ],
        }
    return found


def test_a_bank_goes_to_a_server_and_back_and_nothing_changes(origin, folder, tmp_path, embeddings):
    before = contents(origin)
    assert any(before["default"]["recalls"])
    origin.export_jsonl(tmp_path / "there.jsonl")
    there = EpisodicMemory.import_jsonl(tmp_path / "there.jsonl", folder, embeddings=embeddings)
    with there:
        assert contents(there) == before
        assert there.verify().problems == ()
        there.export_jsonl(tmp_path / "back.jsonl")
        there.backup(tmp_path / "backup")
        again = EpisodicMemory.import_jsonl(tmp_path / "there.jsonl", folder)
        assert again.stats() == before["default"]["stats"]  # repeating it adds nothing
        again.close()
    back = EpisodicMemory.import_jsonl(
        tmp_path / "back.jsonl", tmp_path / "back", embeddings=embeddings
    )
    with back:
        assert contents(back) == before
        assert back.verify().problems == ()
    with EpisodicMemory.open(tmp_path / "backup", embeddings=embeddings) as copy:
        assert contents(copy) == before
        assert copy.verify().problems == ()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("back", "back.jsonl", "backup", "origin", "there.jsonl")
    ]


def test_what_both_export_after_the_same_import_is_the_same(origin, folder, tmp_path):
    origin.export_jsonl(tmp_path / "dump.jsonl")
    exported = []
    for number, place in enumerate((folder, tmp_path / "another")):
        file = tmp_path / f"{number}.jsonl"
        with EpisodicMemory.import_jsonl(tmp_path / "dump.jsonl", place) as memory:
            memory.export_jsonl(file)
        lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        for line in lines:
            line.pop("change", None)  # counted only where there are index files
        exported.append(sorted(json.dumps(line, sort_keys=True) for line in lines))
    assert exported[0] == exported[1]


def test_rewards_go_on_where_they_stood(origin, folder, tmp_path):
    origin.export_jsonl(tmp_path / "dump.jsonl")
    with EpisodicMemory.import_jsonl(
        tmp_path / "dump.jsonl", folder, embeddings=FakeEmbeddings()
    ) as there:
        for memory in (origin, there):
            assert not memory.reinforce("e1", reward=-1 / 3).applied
            memory.reinforce("e4", reward=1)
            memory.reinforce("h", reward=1)
            memory.recall(TASKS[0], episode_id="later", score_threshold=None)
        assert [one.q_value for one in origin.list(limit=None)] == [
            one.q_value for one in there.list(limit=None)
        ]
        assert there.stats() == origin.stats()
