"""A folder of records: what may go on in it, what may be added, and what is run again."""

from dataclasses import replace

import colours as small
import pytest

from langchain_memrl.errors import InputError
from langchain_memrl.evals.environment import Trial
from langchain_memrl.evals.loop import run
from langchain_memrl.evals.records import read_records
from langchain_memrl.evals.running.headers import source_of
from langchain_memrl.evals.suites import load_suite

ARMS = "none,memrl,shrunk"


def content(out):
    """The records of every unit, whatever the order of the units."""
    found = {}
    for line in small.lines(out):
        if line["kind"] != "header":
            found.setdefault((line["world"], line["arm"], line["seed"]), []).append(line)
    return found


# --- what act returns -----------------------------------------------------------------------------

GOOD = Trial(success=True, trajectory="x", lesson="y")


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"reward": 7.0}, "reward is 7.0; expected a finite number in"),
        ({"reward": float("nan")}, "reward is nan"),
        ({"reward": "1"}, "reward is a str"),
        ({"reward": True}, "reward is the bool"),
        ({"success": "yes"}, "success is 'yes'; expected a bool"),
        ({"answer": None}, "answer is a NoneType"),
        ({"trajectory": 3}, "trajectory is a int"),
        ({"lesson": "\ud800"}, "lesson has a lone surrogate"),
        ({"prompt_tokens": -1}, "prompt_tokens is -1"),
        ({"calls": 1.5}, "calls is 1.5"),
        ({"metadata": {"a": {1}}}, "metadata cannot be stored"),
    ],
)
@pytest.mark.parametrize("jobs", [1, 3])
def test_an_unusable_trial_is_never_written_and_the_mended_suite_goes_on(
    tmp_path, monkeypatch, bad, said, jobs
):
    with monkeypatch.context() as patch:
        patch.setattr(small.Colours, "act", lambda self, situation: replace(GOOD, **bad))
        with pytest.raises(InputError, match=f"task .*, arm memrl, seed 0: {said}"):
            run(small.SLOW, small.settings("memrl"), tmp_path, jobs=jobs, source="a")
    assert len(small.lines(tmp_path)) == 1
    assert all(not path.read_text() for path in tmp_path.rglob("answers.journal"))
    run(small.SLOW, small.settings("memrl"), tmp_path, source="b")
    run(small.SLOW, small.settings("memrl"), tmp_path / "new")
    assert content(tmp_path) == content(tmp_path / "new")


def test_an_integer_reward_and_a_blank_lesson_are_usable(tmp_path, monkeypatch):
    blank = Trial(success=True, reward=1, trajectory=" ", lesson=" ")
    monkeypatch.setattr(small.Colours, "act", lambda self, situation: blank)
    (path,) = run(small.SLOW, small.settings("memrl"), tmp_path)
    assert {(e.reward, e.written) for e in read_records(path).episodes} == {(1.0, "")}


# --- an edited suite ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("tasks", lambda old: old[:-1], r"tasks were changed \(8 there and 7 now\)"),
        ("tasks", lambda old: [replace(old[0], text="z"), *old[1:]], "as many, 8, but with other"),
        ("notes", lambda old: [{"intent": "a", "lesson": "b"}], r"notes were changed \(0 there"),
        ("recall", lambda old: {"k": 2}, "recall: k is not set there and 2 now"),
    ],
)
def test_records_of_a_suite_that_asked_something_else_are_refused(
    tmp_path, monkeypatch, name, value, said
):
    (path,) = run(small.SLOW, small.settings("none"), tmp_path)
    before = path.read_bytes()

    class Edited(small.Colours):
        def __init__(self, setup):
            super().__init__(setup)
            setattr(self, name, value(getattr(self, name)))

    with pytest.raises(InputError, match=said):
        run(replace(small.SLOW, make=Edited), small.settings("none"), tmp_path, accept_edits=True)
    assert path.read_bytes() == before


def test_an_edited_file_is_refused_until_the_edit_is_accepted_and_then_both_are_named(tmp_path):
    (path,) = run(small.SLOW, small.settings("none"), tmp_path, source="aaa")
    with pytest.raises(InputError, match=r"edited since .*aaa there, bbb now; --accept-edits"):
        run(small.SLOW, small.settings("none"), tmp_path, source="bbb")
    run(small.SLOW, small.settings("none"), tmp_path, source="bbb", accept_edits=True)
    run(small.SLOW, small.settings("none"), tmp_path, source="bbb")
    assert read_records(path).header.settings["source"] == ["aaa", "bbb"]


def test_only_a_suite_of_one_s_own_has_a_source(tmp_path):
    load_suite("colours:SLOW")
    assert len(source_of("colours:SLOW")) == 64
    assert source_of("worlds") == ""


# --- more arms, more seeds ------------------------------------------------------------------------


@pytest.mark.parametrize("suite", ["colours", "worlds"])
def test_arms_and_seeds_can_be_added_in_any_order_and_nothing_is_run_twice(tmp_path, suite):
    options = small.WORLDS | {"worlds": ("alike-notes",)} if suite == "worlds" else {}
    options = {name: value for name, value in options.items() if name != "arms"}
    made = load_suite("worlds") if suite == "worlds" else small.SLOW
    first, all_ = tmp_path / "first", tmp_path / "all"
    run(made, small.settings("memrl", **options), first)
    kept = content(first)
    run(made, small.settings("shrunk,memrl", **options | {"seeds": 2}), first)
    told = []
    run(
        made,
        small.settings("none,shrunk,memrl", **options | {"seeds": 2}),
        first,
        progress=lambda done, total, unit: told.append((done, unit)),
    )
    assert {unit.arm for _, unit in told[1:]} == {"none"}
    run(made, small.settings(ARMS, **options | {"seeds": 2}), all_)
    assert content(first) == content(all_)
    assert content(first).items() >= kept.items()
    header = small.lines(first)[0]["settings"]
    assert ([*header["arms"]], header["seeds"]) == (["memrl", "shrunk", "none"], 2)


def test_fewer_arms_than_there_are_leave_the_file_as_it_is(tmp_path):
    (path,) = run(small.SLOW, small.settings(ARMS), tmp_path)
    before = path.read_bytes()
    run(small.SLOW, small.settings("shrunk"), tmp_path)
    assert path.read_bytes() == before


def test_an_arm_of_another_setting_is_refused_in_words(tmp_path):
    run(small.SLOW, small.settings("memrl"), tmp_path)
    chosen = small.settings("memrl")
    chosen = replace(chosen, arms=(replace(chosen.arms[0], step_size=0.5),))
    with pytest.raises(InputError, match=r"arm memrl: step_size is 0.3 there and 0.5 now"):
        run(small.SLOW, chosen, tmp_path)


def test_a_unit_that_another_choice_of_arms_left_unfinished_is_finished(tmp_path):
    (path,) = run(small.SLOW, small.settings("none,memrl"), tmp_path)
    expected = content(tmp_path)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-7]))
    run(small.SLOW, small.settings("none"), tmp_path)
    assert {unit: len(lines) for unit, lines in content(tmp_path).items()} == {
        unit: len(lines) for unit, lines in expected.items()
    }


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("simulated", [False, True])
@pytest.mark.parametrize("guard", [False, True])
def test_retried_errors_leave_what_an_undisturbed_run_leaves(
    tmp_path, monkeypatch, simulated, guard
):
    suite = replace(small.SLOW, simulated=simulated)
    chosen = small.settings("none,memrl,shrunk,placebo,rag", seeds=2, guard=guard)
    run(suite, chosen, tmp_path / "undisturbed")
    act = small.Colours.act

    def fails(self, situation):
        if (situation.epoch, situation.task.id) in {(0, "teal"), (1, "red")}:
            raise TimeoutError("no reply")
        return act(self, situation)

    with monkeypatch.context() as patch:
        patch.setattr(small.Colours, "act", fails)
        (path,) = run(suite, chosen, tmp_path / "disturbed")
    asked = []
    with monkeypatch.context() as patch:
        patch.setattr(
            small.Colours, "act", lambda self, s: (asked.append(s.task.id), act(self, s))[1]
        )
        run(suite, chosen, tmp_path / "disturbed")
        assert asked == []
        run(suite, chosen, tmp_path / "disturbed", retry_errors=True)
    assert "TimeoutError" not in path.read_text()
    assert content(tmp_path / "disturbed") == content(tmp_path / "undisturbed")
    if not simulated:
        assert len(asked) < 10 * 16  # the batches before the first error are not asked again
    again = path.read_bytes()
    run(suite, chosen, tmp_path / "disturbed", retry_errors=True)
    assert path.read_bytes() == again


# --- suites with mistakes -------------------------------------------------------------------------


def test_a_suite_that_does_not_care_about_tasks_is_cut_by_the_loop(tmp_path):
    class Careless(small.Colours):
        def __init__(self, setup):
            super().__init__(replace(setup, tasks=None))

    run(replace(small.SLOW, make=Careless), small.settings("memrl", tasks=3), tmp_path)
    tasks = {line["task"] for line in small.lines(tmp_path) if line["kind"] == "episode"}
    assert tasks == set(small.COLOURS[:3])


def test_every_world_is_checked_before_anything_is_written(tmp_path):
    class Empty(small.Colours):
        def __init__(self, setup):
            super().__init__(setup)
            self.tasks = [] if setup.world == "b" else self.tasks

    suite = replace(small.SLOW, make=Empty, worlds=("a", "b"))
    with pytest.raises(InputError, match="suite colours, world b: there are no tasks"):
        run(suite, small.settings("none", worlds=("a", "b")), tmp_path / "out")
    assert not (tmp_path / "out").exists()
