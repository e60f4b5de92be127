"""Opening, saved learning settings, and settings that are never saved."""

import inspect
import threading

import pytest

from langchain_memrl import EpisodicMemory, LearningConfig
from langchain_memrl.errors import (
    ConfigError,
    RewardConflictError,
    RewardError,
    StoreError,
    StoreNotFoundError,
)

# --- signatures -------------------------------------------------------------------------------

RECALL = {
    "k": 5,
    "fetch_k": 10,
    "score_threshold": "auto",
    "q_weight": 0.5,
    "epsilon": 0.0,
    "normalization": "zscore",
    "namespace": None,
    "filter": None,
    "exclude_intents": (),
    "episode_id": None,
}
REMEMBER = {
    "trajectory": "",
    "outcome": "unknown",
    "episode_id": None,
    "parents": (),
    "source": "agent",
    "metadata": None,
    "namespace": None,
}
REQUIRED = inspect.Parameter.empty
SIGNATURES = {
    "recall": (["intent"], RECALL),
    "reinforce": (["episode_id"], {"reward": REQUIRED, "ids": None, "namespace": None}),
    "remember": (["intent", "lesson"], REMEMBER),
    "hold": (["episode_id"], {"intent": REQUIRED, "trajectory": REQUIRED, "namespace": None}),
    "reinforce_many": (["rewards"], {"namespace": None}),
    "remember_many": (["memories"], {"namespace": None}),
    "recall_many": (["intents"], {"namespace": None, "filter": None, "exclude_intents": ()}),
}


@pytest.mark.parametrize("prefix", ["", "a"])
@pytest.mark.parametrize("verb", SIGNATURES)
def test_the_subject_is_positional_and_everything_else_named(verb, prefix):
    positional, named = SIGNATURES[verb]
    parameters = inspect.signature(getattr(EpisodicMemory, prefix + verb)).parameters
    keyword_only = {
        name: parameter.default
        for name, parameter in parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    rest = [
        name
        for name, parameter in parameters.items()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    assert rest == ["self", *positional]
    assert named.items() <= keyword_only.items()


def test_open_takes_the_documented_arguments():
    parameters = inspect.signature(EpisodicMemory.open).parameters
    assert {name: parameter.default for name, parameter in parameters.items()} == {
        "location": REQUIRED,
        "embeddings": None,
        "namespace": "default",
        "learning": None,
        "trust": None,
        "create": True,
        "read_only": False,
        "seed": None,
        "exact": False,
        "redact": None,
    }
    assert parameters["embeddings"].kind is inspect.Parameter.KEYWORD_ONLY


def test_an_unknown_argument_is_a_type_error(memory, folder, behind):
    for call in (
        lambda: EpisodicMemory.open(folder, persist_dirr="x"),
        lambda: memory.recall("task", top_k=3),
        lambda: memory.recall("task", 3),
        lambda: memory.recall_many(["task"], top_k=3),
        lambda: memory.reinforce("e", reward=1, weight=2),
        lambda: memory.reinforce("e", 1),
        lambda: memory.hold("e", intent="i", trajectory="t", lesson="l"),
        lambda: memory.list(10),
        lambda: memory.forget(["id"]),
        lambda: memory.forget(id="id"),
    ):
        with pytest.raises(TypeError):
            call()
    assert not behind.exists()


def test_both_forms_of_a_verb_have_the_same_documented_signature():
    for verb in SIGNATURES:
        plain, awaited = (getattr(EpisodicMemory, prefix + verb) for prefix in ("", "a"))
        assert inspect.signature(plain) == inspect.signature(awaited)
        assert inspect.getdoc(plain) == inspect.getdoc(awaited)
        assert inspect.iscoroutinefunction(awaited)
        assert not inspect.iscoroutinefunction(plain)


# --- opening ----------------------------------------------------------------------------------


def test_a_bank_is_where_it_was_left(form, open_bank):
    memory = form(open_bank())
    made = memory.remember("task", "lesson")
    memory.reinforce("e", reward=1, ids=[made.id])
    before = memory.get(made.id), memory.stats(), memory.history(made.id)
    memory.close()
    memory = form(open_bank())
    assert (memory.get(made.id), memory.stats(), memory.history(made.id)) == before


def test_two_banks_in_memory_are_two_banks(open_bank):
    open_bank(":memory:").remember("task", "lesson")
    assert open_bank(":memory:").stats().memories == 0


def test_a_missing_bank_is_not_made_where_that_was_not_wanted(open_bank, behind):
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(StoreNotFoundError, match="create=True"):
            open_bank(**options)
    assert not behind.exists()


def test_read_only_recalls_and_refuses_to_learn(form, open_bank, behind):
    made = open_bank().remember("task", "lesson")
    memory = form(open_bank(read_only=True))
    before = behind.dump()
    assert memory.recall("task").ids == (made.id,)
    assert memory.list() == [made]
    assert memory.verify().ok
    for call in (
        lambda: memory.recall("task", episode_id="e"),
        lambda: memory.remember("task", "lesson"),
        lambda: memory.reinforce("e", reward=1, ids=[made.id]),
        lambda: memory.hold("e", intent="task", trajectory="done"),
        lambda: memory.update(made.id, lesson="x"),
        lambda: memory.forget(ids=[made.id]),
        lambda: memory.forget(all=True),
        lambda: memory.configure(step_size=0.1),
    ):
        with pytest.raises(StoreError, match="read-only"):
            call()
    assert behind.dump() == before


@pytest.mark.parametrize("location", ["", " ", "\n"])
def test_a_blank_location_is_refused_instead_of_using_the_current_folder(
    open_bank, location, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="location is blank"):
        open_bank(location)
    assert list(tmp_path.iterdir()) == []


def test_a_closed_bank_says_so(form, open_bank):
    memory = form(open_bank())
    made = memory.remember("task", "lesson")
    memory.close()
    memory.close()
    for call in (
        lambda: memory.recall("task"),
        lambda: memory.remember("task", "lesson"),
        lambda: memory.reinforce("e", reward=1, ids=[made.id]),
        lambda: memory.list(),
        lambda: memory.stats(),
    ):
        with pytest.raises(StoreError, match="is closed; open it again"):
            call()


def test_a_with_block_closes_the_bank(open_bank):
    with open_bank() as memory:
        memory.remember("task", "lesson")
    with pytest.raises(StoreError, match="is closed"):
        memory.stats()


# --- learning settings ------------------------------------------------------------------------


def test_learning_settings_are_given_at_creation_and_saved(open_bank):
    learning = LearningConfig(step_size=0.1, q_init=0.25, reward_range=(0, 1))
    open_bank(learning=learning).close()
    assert open_bank().learning == learning
    assert open_bank(learning=learning).learning == learning


def test_other_learning_settings_later_are_an_error_that_names_both(open_bank):
    open_bank(learning=LearningConfig(step_size=0.1)).close()
    with pytest.raises(ConfigError, match=r"step_size=0\.1.*step_size=0\.2.*configure"):
        open_bank(learning=LearningConfig(step_size=0.2))
    assert open_bank().learning.step_size == 0.1


def test_configure_changes_what_later_rewards_use(form, open_bank):
    memory = form(open_bank())
    made = memory.remember("task", "lesson")
    memory.reinforce("e1", reward=1, ids=[made.id])  # .3
    assert memory.configure(step_size=0.1).step_size == 0.1
    memory.reinforce("e2", reward=1, ids=[made.id])  # .3 + .1 * .7
    assert memory.get(made.id).q_value == pytest.approx(0.37)
    assert [step.step_size for step in memory.history(made.id)] == [0.3, 0.1]
    assert memory.verify().ok
    memory.close()
    assert open_bank().learning.step_size == 0.1


def test_configure_is_seen_by_a_second_open_bank(open_bank):
    first, second = open_bank(), open_bank()
    first.configure(step_size=0.5)
    made = second.remember("task", "lesson")
    second.reinforce("e", reward=1, ids=[made.id])
    assert second.get(made.id).q_value == 0.5


def test_two_that_configure_at_once_lose_nothing(open_bank):
    banks = [open_bank(), open_bank()]
    changes = [{"step_size": 0.1}, {"q_init": 0.5}]
    for number in range(30):
        threads = [
            threading.Thread(target=bank.configure, kwargs={name: value + number / 100})
            for bank, change in zip(banks, changes, strict=True)
            for name, value in change.items()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        learning = banks[0].learning
        assert learning.step_size == pytest.approx(0.1 + number / 100)
        assert learning.q_init == pytest.approx(0.5 + number / 100)


def test_a_repeated_reward_is_answered_although_the_range_is_narrower_now(form, bank):
    memory = form(bank)
    made = memory.remember("task", "lesson")
    first = memory.reinforce("e", reward=-0.5, ids=[made.id])
    memory.reinforce("e2", reward=1, ids=[made.id])
    memory.configure(reward_range=(0, 1))
    again = memory.reinforce("e", reward=-0.5)
    assert (again.applied, again.credits) == (False, first.credits)
    with pytest.raises(RewardConflictError):
        memory.reinforce("e", reward=0.5)
    with pytest.raises(RewardError, match=r"\[0, 1\]"):
        memory.reinforce("e3", reward=-0.5, ids=[made.id])
    assert memory.verify().problems == ()


def test_a_range_that_leaves_a_q_outside_is_refused(form, bank):
    memory = form(bank)
    made = memory.remember("task", "lesson")
    memory.reinforce("e", reward=-1, ids=[made.id])
    with pytest.raises(ConfigError, match=r"reward_range is \(0, 1\).*Q from -0\.3 to -0\.3"):
        memory.configure(reward_range=(0, 1))
    assert memory.learning == LearningConfig()


@pytest.mark.parametrize(
    "change", [{"step_size": 2}, {"alpha": 0.1}, {"q_init": 5}, {"reward_range": (1, 0)}]
)
def test_configure_refuses_what_a_new_bank_would_refuse(bank, change):
    with pytest.raises(ConfigError, match=next(iter(change))):
        bank.configure(**change)
    assert bank.learning == LearningConfig()


def test_the_reward_range_of_the_bank_decides(form, open_bank):
    learning = LearningConfig(reward_range=(0, 10), q_init=5)
    memory = form(open_bank(":memory:", learning=learning))
    made = memory.remember("task", "lesson")
    with pytest.raises(ValueError, match=r"\[0, 10\]"):
        memory.reinforce("e", reward=-1, ids=[made.id])
    memory.hold("e", intent="task", trajectory="done")
    result = memory.reinforce("e", reward=4)
    assert memory.get(result.memory_id).outcome == "failure"
    assert memory.get(result.memory_id).q_value == 5


def test_recall_settings_are_never_saved(form, open_bank):
    memory = form(open_bank())
    for n in range(8):
        memory.remember("task", f"lesson {n}")
    assert len(memory.recall("task", k=1, q_weight=1, score_threshold=0.9).ids) == 1
    defaults = memory.recall("task").settings
    assert (defaults["k"], defaults["q_weight"], defaults["score_threshold"]) == (5, 0.5, "auto")
    memory.close()
    assert form(open_bank()).recall("task").settings == defaults
