"""One loop: the same records whatever happens to the process, the threads or the environment."""

import random
import threading
from collections import Counter

import colours as small
import pytest
from children import PROCESSES

from langchain_memrl.errors import ConfigError, InputError, MemRLError
from langchain_memrl.evals.environment import Trial
from langchain_memrl.evals.loop import records, run
from langchain_memrl.evals.records import BankRecord, EpisodeRecord
from langchain_memrl.evals.running.learning import shuffle
from langchain_memrl.evals.running.protocols import plan
from langchain_memrl.evals.running.unit import UnitRun, units


def episodes(found):
    return [record for record in found if isinstance(record, EpisodeRecord)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What runs leave that nothing happens to."""
    out = tmp_path_factory.mktemp("undisturbed")
    for kind in ("worlds", "colours"):
        small.start(kind, out / kind)
    return {kind: small.lines(out / kind) for kind in ("worlds", "colours")}


# --- kills ----------------------------------------------------------------------------------------


def killed_after(kind, out, steps, wait):
    """Run in a child, kill it a moment after so many steps; whether it had finished before."""
    ours, theirs = PROCESSES.Pipe()
    child = PROCESSES.Process(target=small.run_told, args=(kind, str(out), theirs))
    child.start()
    theirs.close()
    told = None
    for _ in range(steps):
        try:
            told = ours.recv()
        except EOFError:
            break
    if told != "finished":
        ours.poll(wait)
        child.kill()
    child.join()
    return told == "finished"


@pytest.mark.parametrize("kind", ["worlds", "colours"])
def test_a_run_killed_at_random_moments_leaves_the_records_of_an_undisturbed_one(
    kind, tmp_path, undisturbed, much
):
    rng = random.Random(kind)
    for _ in range(much(4, 50)):
        killed_after(kind, tmp_path, rng.randrange(4), rng.random() * 0.05)
    assert killed_after(kind, tmp_path, 1000, 0)
    assert small.lines(tmp_path) == undisturbed[kind]


class KilledError(BaseException):
    """Ends a run like a kill would: nobody catches it."""


@pytest.mark.parametrize("step", range(12))
def test_an_answer_that_is_recorded_or_kept_is_never_asked_for_again(
    step, tmp_path, undisturbed, monkeypatch
):
    """The run ends after every single action of a batch in turn: ask, keep, learn, write."""
    asked = Counter()
    act = small.Colours.act
    monkeypatch.setattr(
        small.Colours, "act", lambda self, s: (asked.update([key(s)]), act(self, s))[1]
    )
    count = iter(range(1000))

    def key(situation):
        return situation.epoch, situation.task.id

    def dies(original):
        def call(*arguments, **options):
            result = original(*arguments, **options)
            if next(count) == 24 + step:  # in the first two batches of the first arm that remembers
                raise KilledError
            return result

        return call

    with monkeypatch.context() as patch:
        from langchain_memrl.evals.running import acting, recorder
        from langchain_memrl.memory import EpisodicMemory

        patch.setattr(acting.Journal, "add", dies(acting.Journal.add))
        patch.setattr(recorder.Recorder, "append", dies(recorder.Recorder.append))
        for verb in ("recall_many", "record_many", "reinforce_many", "remember_many"):
            patch.setattr(EpisodicMemory, verb, dies(getattr(EpisodicMemory, verb)))
        with pytest.raises(KilledError):
            run(small.SLOW, small.settings(), tmp_path)
    run(small.SLOW, small.settings(), tmp_path)
    assert small.lines(tmp_path) == undisturbed["colours"]
    assert set(asked.values()) == {3}  # three arms


def test_a_line_that_is_cut_short_is_dropped(tmp_path, undisturbed):
    chosen = small.settings()
    (path,) = run(small.SLOW, chosen, tmp_path)
    whole = path.read_bytes()
    for cut in (1, 40, 300):
        path.write_bytes(whole[:-cut])
        run(small.SLOW, chosen, tmp_path)
        assert small.lines(tmp_path) == undisturbed["colours"]


# --- nothing is overwritten -----------------------------------------------------------------------


def test_a_finished_run_is_left_as_it_is(tmp_path):
    (path,) = run(small.SLOW, small.settings(), tmp_path)
    before = path.read_bytes()
    run(small.SLOW, small.settings(), tmp_path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"batch": 4}, "--batch is 3 there and 4 now"),
        ({"guard": True}, "--guard is off there and on now"),
        ({"first_seed": 3, "seeds": 3}, "--first-seed is 0 there and 3 now"),
    ],
)
def test_another_run_is_refused_and_the_difference_is_named(tmp_path, change, said):
    (path,) = run(small.SLOW, small.settings(), tmp_path)
    before = path.read_bytes()
    with pytest.raises(InputError, match=said):
        run(small.SLOW, small.settings(**change), tmp_path)
    assert path.read_bytes() == before


def test_a_file_of_something_else_is_refused(tmp_path):
    (tmp_path / "records.jsonl").write_text("a poem\n")
    with pytest.raises(InputError, match="damaged line"):
        run(small.SLOW, small.settings(), tmp_path)
    assert (tmp_path / "records.jsonl").read_text() == "a poem\n"


def test_two_runs_do_not_write_one_file(tmp_path):
    def again(done, total, unit):
        with pytest.raises(InputError, match="another run is writing"):
            run(small.SLOW, small.settings(), tmp_path)
        raise KilledError

    with pytest.raises(KilledError):
        run(small.SLOW, small.settings(), tmp_path, progress=again)


# --- order ----------------------------------------------------------------------------------------


def test_the_order_in_which_tasks_finish_does_not_change_the_records(
    tmp_path, undisturbed, monkeypatch
):
    """Of three tasks tried together, the last one finishes first."""
    act = small.Colours.act
    barriers = {}
    lock = threading.Lock()

    def reversed_(self, situation):
        batch = (id(self), situation.epoch, int(situation.progress * 16 + 1e-9) % 8 // 3)
        place = int(situation.progress * 16 + 1e-9) % 8 % 3
        with lock:
            events = barriers.setdefault(batch, [threading.Event() for _ in range(3)])
        last = place == 2 or (batch[2] == 2 and place == 1)
        assert last or events[place + 1].wait(10)
        result = act(self, situation)
        events[place].set()
        return result

    monkeypatch.setattr(small.Colours, "act", reversed_)
    run(small.SLOW, small.settings(), tmp_path, jobs=3)
    assert small.lines(tmp_path) == undisturbed["colours"]


def test_several_processes_write_the_same_file_as_one(tmp_path, undisturbed):
    small.start("worlds", tmp_path, jobs=2)
    assert small.lines(tmp_path) == undisturbed["worlds"]


def test_every_arm_meets_the_same_tasks_in_the_same_order(undisturbed):
    orders = {}
    for line in undisturbed["worlds"]:
        if line["kind"] == "episode":
            unit = orders.setdefault((line["arm"], line["seed"]), [])
            unit.append((line["epoch"], line["step"], line["task"]))
    assert len(orders) == 4
    assert len({tuple(order) for order in orders.values()}) == 1


def test_a_bank_is_recorded_after_every_epoch(undisturbed):
    banks = [line for line in undisturbed["colours"] if line["kind"] == "bank"]
    assert Counter((bank["arm"], bank["epoch"], len(bank["ids"])) for bank in banks) == Counter(
        {
            (arm, epoch, 0 if arm == "none" else 8 * (epoch + 1)): 1
            for arm in ("none", "memrl", "shrunk")
            for epoch in range(2)
        }
    )


# --- the environment fails ------------------------------------------------------------------------


def failing(monkeypatch, how_often):
    """Make "blue" of the second epoch fail so many times."""
    act, left = small.Colours.act, iter(range(how_often))

    def sometimes(self, situation):
        if (situation.epoch, situation.task.id) == (1, "blue") and next(left, None) is not None:
            raise TimeoutError("no reply")
        return act(self, situation)

    monkeypatch.setattr(small.Colours, "act", sometimes)


def one_unit(**options):
    chosen = small.settings("memrl", seeds=1, **options)
    pauses = []
    found = UnitRun(small.SLOW, chosen, units(chosen)[0], pause=pauses.append)
    return [record for batch in found.run() for record in batch], pauses


def test_a_failing_environment_is_asked_again(monkeypatch):
    expected, _ = one_unit()
    failing(monkeypatch, 2)
    found, pauses = one_unit(attempts=3)
    assert pauses == [1.0, 2.0]
    assert [r.success for r in episodes(found)] == [r.success for r in episodes(expected)]
    assert not any(r.error for r in episodes(found))


def test_an_error_that_stays_is_recorded_and_is_no_failure(monkeypatch):
    failing(monkeypatch, 3)
    found, _ = one_unit(attempts=3)
    (record,) = [record for record in episodes(found) if record.error]
    assert record.error == "TimeoutError: no reply"
    assert (record.task, record.success, record.reward, record.written) == ("blue", None, None, "")
    assert len(episodes(found)) == 16
    assert [len(bank.ids) for bank in found if isinstance(bank, BankRecord)] == [8, 15]


def test_the_run_stops_where_the_environment_is_down_and_goes_on_later(
    tmp_path, undisturbed, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr(small.Colours, "act", lambda self, situation: 1 / 0)
        with pytest.raises(MemRLError, match="failed 3 times in a row"):
            run(small.SLOW, small.settings(patience=3), tmp_path)
    run(small.SLOW, small.settings(patience=3), tmp_path)
    changed = [line for line in small.lines(tmp_path) if line["kind"] != "header"]
    assert changed == [line for line in undisturbed["colours"] if line["kind"] != "header"]


def test_an_environment_that_returns_something_else_is_an_error(monkeypatch):
    monkeypatch.setattr(small.Colours, "act", lambda self, situation: True)
    with pytest.raises(InputError, match="expected a Trial"):
        one_unit()


# --- protocols ------------------------------------------------------------------------------------


def test_transfer_freezes_the_bank_and_asks_tasks_never_seen():
    chosen = small.settings("none,memrl", seeds=1, protocol="transfer", held_out=0.25)
    found = [r for r in records(small.SLOW, chosen) if r.arm == "memrl"]
    held = [r for r in episodes(found) if r.split == "held_out"]
    train = [r for r in episodes(found) if r.split == "train"]
    assert (len(held), len(train)) == (2, 12)
    assert not {r.task for r in held} & {r.task for r in train}
    assert all(r.reward is None and not r.written and r.epoch == 2 for r in held)
    assert all(set(r.shown) <= {r.written for r in train} for r in held)
    assert any(r.shown for r in held)


def test_a_stream_has_every_task_once_in_order():
    chosen = small.settings("memrl", seeds=1, protocol="stream")
    found = episodes(records(small.SLOW, chosen))
    assert [record.task for record in found] == small.COLOURS


def test_all_tasks_of_a_batch_recall_before_the_bank_learns():
    chosen = small.settings("rag", seeds=1, batch=8, epochs=1)
    assert all(record.shown == () for record in episodes(records(small.SLOW, chosen)))


@pytest.mark.parametrize("arm", ["rag", "memrl", "shrunk"])
def test_with_the_guard_no_task_recalls_its_own_memories(arm):
    shares = {}
    for guard in (False, True):
        found = episodes(records(small.SLOW, small.settings(arm, seeds=1, guard=guard)))
        own = [name for r in found for name in r.shown if name.split("-")[1] == r.task]
        assert any(record.shown for record in found)
        shares[guard] = len(own)
    assert shares[False] > 0
    assert shares[True] == 0


def test_the_placebo_learns_a_permutation_of_each_batch_s_rewards():
    rewards = [1.0, -1.0, None, 1.0, -1.0, -1.0, None, 1.0]
    shuffled = shuffle(rewards, "0 0")
    assert Counter(shuffled) == Counter(rewards)
    assert [r is None for r in shuffled] == [r is None for r in rewards]
    assert len({tuple(shuffle(rewards, str(draw))) for draw in range(20)}) > 5
    chosen = small.settings("placebo,memrl", seeds=1, batch=8)
    for start in range(0, 16, 8):
        batch = episodes(records(small.SLOW, chosen))[start : start + 8]
        told = Counter(record.reward for record in batch)
        assert told == Counter(1.0 if record.success else -1.0 for record in batch)


@pytest.mark.parametrize(
    "bad", [{"epochs": 0}, {"batch": 0}, {"protocol": "x"}, {"held_out": 1.0}, {"tasks": 0}]
)
def test_settings_out_of_range_are_refused(bad):
    with pytest.raises(ConfigError):
        small.settings(**bad)


def test_a_plan_covers_every_task_once_per_epoch():
    tasks = small.Colours(type("S", (), {"tasks": None, "seed": 0})).tasks
    batches = plan(small.settings(batch=3), tasks, seed=4)
    for epoch in range(2):
        own = [task.id for batch in batches if batch.epoch == epoch for task in batch.tasks]
        assert sorted(own) == sorted(small.COLOURS)
    assert [batch.epoch_ends for batch in batches] == [False, False, True] * 2
    assert len({id for batch in batches for id in batch.episode_ids}) == 16


def test_tokens_and_answers_reach_the_records(undisturbed):
    line = next(line for line in undisturbed["colours"] if line["kind"] == "episode")
    assert line["answer"] == f"answer 0-{line['task']}"
    assert (line["prompt_tokens"], line["calls"]) == (7, 1)
    assert Trial(success=False).told == -1.0
