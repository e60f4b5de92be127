"""ALFWorld's suite: steps, agents and models on a stub, and everything on the real engine."""

import json
import os
import select
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from cottage import DOMAIN, GAMES, IDS, StubHouse, StubHouses, needs_engine, write_file
from langchain_core.messages import AIMessage
from typer.testing import CliRunner

from langchain_memrl.cli.app import app
from langchain_memrl.errors import ConfigError, InputError, MemRLError
from langchain_memrl.evals.arms import ARMS
from langchain_memrl.evals.benchmarks.agents import CORRECTED, SCRIPTED, Scripted
from langchain_memrl.evals.benchmarks.households import houses
from langchain_memrl.evals.benchmarks.households.attempt import COMMAND
from langchain_memrl.evals.benchmarks.households.engine import NOTHING
from langchain_memrl.evals.benchmarks.households.games import load_games
from langchain_memrl.evals.benchmarks.households.houses import House, Houses
from langchain_memrl.evals.benchmarks.households.names import plain_names
from langchain_memrl.evals.contract import check_suite
from langchain_memrl.evals.environment import Setup, Situation
from langchain_memrl.evals.estimate import estimate
from langchain_memrl.evals.loop import records, run
from langchain_memrl.evals.records import EpisodeRecord, read_records
from langchain_memrl.evals.settings import RunSettings
from langchain_memrl.evals.suites import alfworld
from langchain_memrl.evals.suites.alfworld import prepare
from langchain_memrl.offline import HashingEmbeddings, ScriptedChatModel


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_file(tmp_path_factory.mktemp("data") / "games.json")


@pytest.fixture(autouse=True)
def light(monkeypatch):
    import langchain_memrl.evals.benchmarks.benchmark as shared

    monkeypatch.setattr(shared, "word_embeddings", lambda: HashingEmbeddings(64))


@pytest.fixture
def stubbed(monkeypatch):
    monkeypatch.setattr(alfworld, "Houses", StubHouses)
    monkeypatch.setattr(alfworld, "engine_versions", lambda: {"textworld": "none: a stub"})


def opener(data):
    """Gives the suite, prepared; whatever was opened is closed in the end."""
    opened = []

    def open_(**options):
        opened.append(prepare(Setup(data=options.pop("data", data), **options)))
        return opened[-1].__enter__()

    yield open_
    for one in opened:
        one.__exit__(None, None, None)


@pytest.fixture
def prepared(stubbed, data):
    yield from opener(data)


@pytest.fixture
def real(data):
    yield from opener(data)


def try_(suite, name, model=None, memories=(), epoch=0, seed=0):
    environment = suite.make(Setup(seed=seed, model=model))
    found = next(one for one in environment.tasks if one.id == IDS[name])
    return environment.act(Situation(found, memories, epoch))


def walkthrough(name):
    return next(one["walkthrough"] for one in GAMES if IDS[name] in one["path"])


def says(*replies):
    return ScriptedChatModel(responses=list(replies))


def acts(command):
    return f"I know what to do.\nAction: {command}"


def solved(suite, arm, **options):
    options = {"seeds": 1, "epochs": 3, "guard": True, **options}
    settings = RunSettings((ARMS[arm],), **options)
    found = [one for one in records(suite, settings) if isinstance(one, EpisodeRecord)]
    letters = {id: letter for letter, id in IDS.items()}
    return {(one.epoch, letters[one.task]): one.success for one in found}


class Planned(Scripted):
    """Gives the commands it was made with, and then no more."""

    name, learns, about = "planned", False, "follows a plan"
    plan = ()

    def play(self, situation, attempt):
        for command in self.plan:
            attempt.do(command)


@pytest.fixture
def planned(monkeypatch):
    monkeypatch.setitem(SCRIPTED, "planned", Planned)
    return lambda *plan: monkeypatch.setattr(Planned, "plan", plan)


# --- steps ----------------------------------------------------------------------------------------


def test_every_command_is_a_step_possible_or_not_and_looking_too(prepared, planned):
    walk = walkthrough("F")
    for extra in ("look", "dance", "go to mars 1", ""):
        planned(extra, *walk)
        assert try_(prepared(agent="planned", steps=len(walk) + 1), "F").success, extra
        assert not try_(prepared(agent="planned", steps=len(walk)), "F").success, extra


def test_whoever_does_nothing_wins_nothing(prepared, planned):
    planned()
    suite = prepared(agent="planned")
    assert not any(try_(suite, name).success for name in IDS)


def test_the_default_is_thirty_steps_and_another_number_is_checked(prepared):
    assert prepared().settings["steps"] == 30
    assert prepared(steps=50).settings["steps"] == 50
    with pytest.raises(ConfigError, match="steps is 0"):
        prepared(steps=0)


def test_a_try_tells_its_goal_its_commands_and_how_it_ended(prepared, planned):
    planned("dance", *walkthrough("D"))
    trial = try_(prepared(agent="planned"), "D")
    assert trial.trajectory.splitlines() == [
        "Task: put a mug on shelf",
        "> dance",
        "Nothing happens.",
        "> take mug 1 from table 1",
        "You did it: take mug 1 from table 1",
        "> go to shelf 1",
        "You did it: go to shelf 1",
        "> move mug 1 to shelf 1",
        "You did it: move mug 1 to shelf 1",
        "Answer: won",
    ]


# --- models ---------------------------------------------------------------------------------------


def test_a_model_thinks_acts_sees_what_came_and_ends_when_the_game_is_won(prepared):
    model = says(acts("use desklamp 1"), acts("take mug 1 from table 1"), "Use the lamp first.")
    trial = try_(prepared(steps=9), "F", model)
    assert trial.success
    assert trial.lesson == "Use the lamp first."
    assert trial.calls == 3
    first, second, lesson = model.calls
    assert "9 replies in all" in first[0].text
    assert first[-1].text == "A hut.\n\nDo: look at mug under the desklamp"
    assert second[-1].text == "You did it: use desklamp 1\n\n8 replies are left."
    assert "> take mug 1 from table 1" in lesson[-1].text


def test_a_reply_that_is_no_command_changes_nothing_counts_and_the_try_goes_on(prepared):
    replies = ["Hm.", acts("fly"), *map(acts, walkthrough("F"))]
    model = says(*replies, "A lesson.")
    assert try_(prepared(steps=4), "F", model).success
    assert "Nothing happens." in model.calls[1][-1].text
    assert not try_(prepared(steps=3), "F", says(*replies[:3], "A lesson.")).success


def test_a_model_that_never_wins_is_stopped_at_the_step_limit(prepared):
    asked = []

    def model(prompt):
        asked.append(prompt)
        return acts("look")

    trial = try_(prepared(steps=5), "A", model)
    assert not trial.success
    assert len(asked) == 6  # five steps, and the lesson
    assert trial.trajectory.count(COMMAND) == 5


def test_tokens_and_calls_are_counted_the_lesson_included(prepared):
    usage = {"input_tokens": 100, "output_tokens": 7, "total_tokens": 107}
    replies = [*map(acts, walkthrough("F")), "The lamp first."]
    model = says(*(AIMessage(text, usage_metadata=usage) for text in replies))
    trial = try_(prepared(), "F", model)
    assert (trial.prompt_tokens, trial.completion_tokens, trial.calls) == (300, 21, 3)


def test_memories_are_quoted_before_the_task(prepared):
    seen = []

    def model(prompt):
        seen.append(prompt)
        return acts("look")

    settings = RunSettings((ARMS["rag"],), seeds=1, epochs=2, tasks=2, batch=2)
    list(records(prepared(agent="model", steps=1), settings, model))
    assert not any("> look" in message.text for prompt in seen[:2] for message in prompt)
    assert any("> look" in message.text for message in seen[-1])


def test_prompts_can_be_replaced_and_are_part_of_the_header(prepared, tmp_path):
    own = tmp_path / "prompts.json"
    own.write_text(json.dumps({"TASK": "Bitte: {observation}"}))
    model = says("?", "x")
    suite = prepared(prompts=own, steps=1)
    try_(suite, "F", model)
    assert model.calls[0][-1].text.startswith("Bitte: A hut.")
    assert suite.settings["prompts"] != prepared().settings["prompts"]


# --- agents ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", SCRIPTED)
def test_every_agent_keeps_the_contract_of_a_suite(prepared, agent):
    check_suite(prepared(agent=agent))


def test_the_oracle_wins_every_game(prepared):
    suite = prepared(agent="oracle")
    assert all(try_(suite, name).success for name in IDS)


def test_a_random_agent_does_what_is_possible_until_it_wins_or_stops(prepared):
    suite = prepared(agent="random", steps=3)
    trials = [try_(suite, name, epoch=epoch) for name in IDS for epoch in range(5)]
    assert all(NOTHING not in trial.trajectory for trial in trials)
    assert all(trial.trajectory.count(COMMAND) == 3 or trial.success for trial in trials)
    assert trials == [try_(suite, name, epoch=epoch) for name in IDS for epoch in range(5)]
    assert trials != [try_(suite, name, epoch=e, seed=1) for name in IDS for e in range(5)]


def test_a_memory_bound_agent_does_nothing_without_memories(prepared):
    suite = prepared(agent="memory-bound")
    assert not any(solved(suite, "none", guard=False).values())
    assert COMMAND not in try_(suite, "A", epoch=2).trajectory.partition(CORRECTED)[0]


def memory(*commands):
    text = "\n".join(f"{COMMAND}{command}" for command in commands)
    return SimpleNamespace(memory=SimpleNamespace(experience=text))


def test_a_memory_bound_agent_wins_with_the_forms_of_another_games_walkthrough_only(prepared):
    suite = prepared(agent="memory-bound")
    assert try_(suite, "B", memories=[memory(*walkthrough("A"))]).success
    for name in "DCF":
        assert not try_(suite, "B", memories=[memory(*walkthrough(name))]).success
    assert try_(
        suite,
        "B",
        memories=[
            memory("heat x 1 with microwave 2"),
            memory(*walkthrough("D")),
            memory("go to microwave 3"),
        ],
    ).success
    half = try_(suite, "B", memories=[memory(*walkthrough("D"))])
    assert "> heat" not in half.trajectory.partition(CORRECTED)[0]


def test_a_memory_bound_agent_learns_from_other_games_under_the_guard(prepared):
    results = solved(prepared(agent="memory-bound"), "rag", epochs=4)
    assert results[3, "D"]
    assert results[3, "E"]
    assert not any(success for (_, name), success in results.items() if name in "CF")


def test_a_memory_bound_agent_repeats_its_own_walkthrough_without_the_guard(prepared):
    results = solved(prepared(agent="memory-bound"), "rag", guard=False, epochs=8)
    assert all(results[7, name] for name in IDS)


def test_half_of_the_failures_are_corrected(prepared):
    suite = prepared(agent="memory-bound")
    trials = [try_(suite, name, epoch=epoch) for name in IDS for epoch in range(10)]
    corrected = [trial for trial in trials if CORRECTED in trial.trajectory]
    assert 18 < len(corrected) < 42
    assert all(f"{CORRECTED}\n{COMMAND}" in trial.trajectory for trial in corrected)
    assert not any(trial.lesson for trial in trials)


def test_a_prior_bound_agent_is_distracted_by_memories_of_another_deed_only(prepared):
    suite = prepared(agent="prior-bound")
    unfit, fit = memory(*walkthrough("D")), memory(*walkthrough("A"))
    alone = [try_(suite, "B", epoch=e).success for e in range(40)]
    with_fit = [try_(suite, "B", memories=(fit,) * 3, epoch=e).success for e in range(40)]
    distracted = [try_(suite, "B", memories=(unfit,) * 3, epoch=e).success for e in range(40)]
    assert 12 <= sum(alone) <= 28
    assert all(with_fit)
    assert sum(distracted) < sum(alone)
    assert all(a or not d for a, d in zip(alone, distracted, strict=True))


def test_a_game_without_a_walkthrough_is_for_models_only(prepared, tmp_path):
    games = [{key: value for key, value in GAMES[0].items() if key != "walkthrough"}]
    suite = prepared(agent="oracle", data=write_file(tmp_path / "games.json", games))
    with pytest.raises(InputError, match="has no walkthrough"):
        try_(suite, "A")


# --- runs -----------------------------------------------------------------------------------------


def test_the_header_names_the_agent_the_engine_the_steps_and_the_data(prepared, data, tmp_path):
    settings = RunSettings((ARMS["none"],), seeds=1, epochs=1, tasks=2)
    (file,) = run(prepared(agent="oracle"), settings, tmp_path / "out")
    header = read_records(file).header
    assert header.settings["agent"] == "oracle"
    assert header.settings["steps"] == 30
    assert header.settings["data"] == load_games(data).hashes
    assert header.versions["textworld"] == "none: a stub"
    other = write_file(tmp_path / "other.json", GAMES[:3])
    for changed in (prepared(agent="oracle", steps=50), prepared(agent="oracle", data=other)):
        with pytest.raises(InputError, match=r"another run.s: .*--(data|steps|asks)"):
            run(changed, settings, tmp_path / "out")


def test_a_transfer_holds_out_the_unseen_rooms(prepared):
    settings = RunSettings((ARMS["rag"],), seeds=1, epochs=1, protocol="transfer")
    found = list(records(prepared(agent="memory-bound"), settings))
    held = {one.task for one in found if isinstance(one, EpisodeRecord) and one.split == "held_out"}
    assert held == {IDS[name] for name in "DEF"}


def test_the_preset_is_the_papers(prepared):
    suite = prepared()
    assert dict(suite.make(Setup()).recall) == {"k": 3, "fetch_k": 5, "score_threshold": 0.62}
    assert (suite.epochs, suite.batch) == (10, 5)


def test_what_a_run_costs_is_said_before(prepared):
    settings = RunSettings((ARMS["none"], ARMS["memrl"]), seeds=3, epochs=2, batch=4)
    costs = estimate(prepared(), settings, jobs=2)
    assert costs.tries == 2 * 3 * 2 * len(GAMES)
    assert costs.prompt_tokens > costs.completion_tokens > 0
    assert "no tokens" in str(estimate(prepared(agent="oracle"), settings))


def test_a_missing_engine_is_told_in_one_sentence(monkeypatch, data):
    monkeypatch.setattr(houses, "PACKAGES", ("no-such-engine",))
    with pytest.raises(ConfigError, match=r"pip install .*bench-alfworld"):
        prepare(Setup(data=data)).__enter__()


@pytest.mark.parametrize(
    ("module", "said"),
    [("no_such_module", "engine ended: .*no_such_module"), ("json.tool", "0.5 s without a reply")],
)
def test_an_engine_that_dies_or_hangs_is_told_of(monkeypatch, module, said):
    monkeypatch.setattr(houses, "engine", SimpleNamespace(__name__=module))
    house = House(limit=0.5 if module == "json.tool" else 60)
    with pytest.raises(MemRLError, match=said):
        house.do("look")
    house.close()


# --- the real engine ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def games(data):
    return {game.id[-1]: game for game in load_games(data).games}


@pytest.fixture(scope="module")
def house():
    one = House()
    yield one
    one.close()


def walk(house, game, commands=None):
    return [house.start(game), *map(house.do, commands or game.walkthrough)]


@needs_engine
def test_walkthroughs_win_on_the_engine_and_not_before_their_last_command(house, games):
    for game in games.values():
        assert [seen.won for seen in walk(house, game)] == [False] * len(game.walkthrough) + [True]


@needs_engine
def test_the_engine_tells_the_room_the_goal_and_what_is_possible(house, games):
    seen = house.start(games["A"])
    assert "A cottage with chest 1, microwave 1, shelf 1, and table 1." in seen.text
    assert seen.text.endswith("Your task is to: put a hot teapot on table.")
    assert "take mug 1 from table 1" in seen.commands
    assert house.do("open chest 1").text == NOTHING
    assert house.do("go to chest 1").text.endswith("The chest 1 is closed.")
    assert "open chest 1" in house.do("dance").commands
    assert house.do(" open chest 1 ").text.endswith("Inside is a teapot 1.")


@needs_engine
def test_what_the_engine_says_is_what_textworlds_own_environment_says(house, games):
    import textworld
    from textworld.envs.pddl import PddlEnv

    environment = PddlEnv(textworld.EnvInfos(admissible_commands=True))
    for name, game in games.items():
        domain, problem, grammar = game.parts
        parts = {"pddl_domain": domain, "pddl_problem": problem, "grammar": grammar}
        environment.load(parts)
        for id, plain in plain_names(environment._entity_infos).items():
            environment._entity_infos[id].name = plain
        commands = ["go to chest 1", "open chest 1", "look", "dance", *game.walkthrough]
        theirs = [environment.reset(), *(environment.step(one)[0] for one in commands)]
        for mine, other in zip(walk(house, game, commands), theirs, strict=True):
            assert mine.text == other.feedback, name
            assert list(mine.commands) == other.admissible_commands, name
            assert mine.won == other["won"], name


@needs_engine
def test_nothing_is_carried_over_from_one_try_to_the_next(house, games):
    first = walk(house, games["A"])
    for before in ("A", "C", "E"):
        for commands in (games[before].walkthrough, games[before].walkthrough[:2], ["dance"]):
            walk(house, games[before], commands)
            assert walk(house, games["A"]) == first


@needs_engine
def test_games_that_differ_in_their_words_alone_are_kept_apart(house, games, data):
    same = {**GAMES[0], "grammar": GAMES[0]["grammar"].replace("A cottage", "A castle")}
    castle = load_games(write_file(data.parent / "castle.json", [same])).games[0]
    assert house.start(games["A"]).text.count("A cottage") == 1
    assert house.start(castle).text.count("A castle") == 1


@needs_engine
def test_tries_at_the_same_time_do_not_touch_each_other(games):
    alone = {}
    with Houses() as shared:

        def play(name):
            with shared.lend() as one:
                return name, walk(one, games[name])

        alone = dict(map(play, games))
        assert len(shared._free) == 1
        with ThreadPoolExecutor(2) as pool:
            for name, found in pool.map(play, list(games) * 3):
                assert found == alone[name]
        assert len(shared._free) == 2


OWNER = """
import sys
from langchain_memrl.evals.benchmarks.households.houses import House
print(House()._process.pid, flush=True)
sys.stdin.readline()
"""


@needs_engine
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")
def test_an_engine_ends_with_its_owner_even_when_that_is_killed():
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    process = os.pidfd_open(int(owner.stdout.readline()))
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    assert select.select([process], [], [], 20)[0]
    os.close(process)


class Clumsy(Scripted):
    """Loses its first engine; then does what is right."""

    name, learns, about = "clumsy", False, "loses its engine"
    lost = 0

    def play(self, situation, attempt):
        if not Clumsy.lost:
            Clumsy.lost += 1
            attempt.house._process.kill()
        self._script.solve(attempt)


@needs_engine
def test_an_engine_that_is_killed_is_no_failed_task_and_the_next_try_has_another(real, monkeypatch):
    monkeypatch.setitem(SCRIPTED, "clumsy", Clumsy)
    environment = real(agent="clumsy").make(Setup())
    with pytest.raises(MemRLError, match="engine ended"):
        environment.act(Situation(environment.tasks[0]))
    assert environment.act(Situation(environment.tasks[0])).success


@needs_engine
def test_a_game_that_the_engine_cannot_read_is_told_of_and_not_counted(real, tmp_path):
    broken = {**GAMES[0], "pddl_problem": GAMES[0]["pddl_problem"].replace("(:init", "(:inat")}
    suite = real(agent="oracle", data=write_file(tmp_path / "games.json", [broken]))
    settings = RunSettings((ARMS["none"],), seeds=1, epochs=1, attempts=1)
    found = [one for one in records(suite, settings) if isinstance(one, EpisodeRecord)]
    assert [one.success for one in found] == [None]
    assert "engine failed" in found[0].error


@needs_engine
def test_the_command_runs_the_walkthroughs_on_the_engine(data, tmp_path):
    command = ["eval", "run", "alfworld", "--data", str(data), "--agent", "oracle"]
    done = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "6 of 6 pass." in done.output
    header = read_records(tmp_path / "out" / "records.jsonl").header
    assert header.versions["textworld"] == "1.7.0"
    assert "fast-downward-textworld" in header.versions


def test_the_stub_is_what_the_tests_think(data):
    game = load_games(data).games[0]
    assert DOMAIN in game.parts
    stub = StubHouse()
    assert walk(stub, game)[-1].won
    assert not walk(stub, game, ["look", "dance"])[-1].won
