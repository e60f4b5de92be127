"""Games in a download: what is read, what is refused, and how things and commands are named."""

import json
import lzma
from pathlib import Path

import pytest
from cottage import DOMAIN, GAMES, IDS, RULES, grammar, write_file, write_folder

from langchain_memrl.errors import InputError
from langchain_memrl.evals.benchmarks.households.conversing import read_command
from langchain_memrl.evals.benchmarks.households.forms import form_of
from langchain_memrl.evals.benchmarks.households.games import load_games
from langchain_memrl.evals.benchmarks.households.grammar import check_grammar, goal_of
from langchain_memrl.evals.benchmarks.households.names import plain_names


def changed(**parts):
    return [{**GAMES[0], **parts}]


# --- reading --------------------------------------------------------------------------------------


def test_a_file_a_packed_file_and_the_official_folder_hold_the_same_games(tmp_path):
    file = write_file(tmp_path / "games.json")
    packed = tmp_path / "games.json.xz"
    packed.write_bytes(lzma.compress(file.read_bytes()))
    folder = write_folder(tmp_path / "json_2.1.1")
    read = [load_games(path) for path in (file, packed, folder)]
    assert read[0].games == read[1].games == read[2].games
    assert {game.id for game in read[0].games} == set(IDS.values())
    assert [len(games.hashes) for games in read] == [1, 1, 2]
    assert list(read[2].hashes) == ["valid_seen", "valid_unseen"]


def test_a_game_has_its_goal_its_kind_its_furniture_and_its_walkthrough(tmp_path):
    games = {game.id: game for game in load_games(write_file(tmp_path / "games.json")).games}
    game = games[IDS["A"]]
    assert game.goal == "put a hot teapot on table"
    assert game.kind == "pick_heat_then_place_in_recep"
    assert game.room == "chest, microwave, shelf, table"
    assert game.walkthrough == tuple(GAMES[0]["walkthrough"])
    assert game.parts == [DOMAIN, GAMES[0]["pddl_problem"], GAMES[0]["grammar"]]


def test_the_order_mixes_the_kinds_and_is_the_same_for_the_same_games(tmp_path):
    one = load_games(write_file(tmp_path / "one.json"))
    other = load_games(write_file(tmp_path / "other.json", GAMES[::-1]))
    assert one.games == other.games
    assert [game.id for game in one.games] != sorted(game.id for game in one.games)


def test_games_that_differ_only_in_where_things_are_get_numbers(tmp_path):
    for entries in (GAMES, GAMES[::-1]):
        texts = load_games(write_file(tmp_path / "games.json", entries)).texts
        assert texts[IDS["C"]] == "put a teapot on shelf\nRoom: chest, microwave, shelf, table"
        alike = "put a mug on shelf\nRoom: chest, microwave, shelf, table\nArrangement "
        assert texts[IDS["D"]] == f"{alike}1 of 2"
        assert texts[IDS["E"]] == f"{alike}2 of 2"
        assert len(set(texts.values())) == len(GAMES)


def test_unseen_rooms_are_held_out_and_both_validation_parts_where_there_is_a_training_part(
    tmp_path,
):
    both = load_games(write_folder(tmp_path / "both"))
    assert {game.split for game in both.games if both.held_out(game)} == {"valid_unseen"}
    train = {**GAMES[0], "path": GAMES[0]["path"].replace("valid_seen", "train").replace("_A", "")}
    three = load_games(write_folder(tmp_path / "three", [*GAMES, train]))
    assert {game.split for game in three.games if not three.held_out(game)} == {"train"}
    seen = load_games(tmp_path / "three" / "valid_seen")
    assert {game.id for game in seen.games} == {IDS[name] for name in "ABC"}


def test_what_alfworld_leaves_out_is_left_out(tmp_path):
    path = GAMES[0]["path"]
    out = [
        {**GAMES[0], "path": path.replace("Teapot-None", "Teapot-movable")},
        {**GAMES[0], "path": path.replace("Teapot-None", "TeapotSliced-None")},
        {**GAMES[0], "path": path.replace("trial_A", "trial_Z"), "solvable": False},
    ]
    assert len(load_games(write_file(tmp_path / "games.json", [*GAMES, *out])).games) == len(GAMES)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([], "holds no games"),
        (changed(path="x/y/z/game.tw-pddl"), r"game 0 is no game .*it is in x/y/z; expected train"),
        (changed(path="valid_seen/sleep-Bed/t/game.tw-pddl"), "sleep-Bed"),
        (changed(grammar="nothing"), "states 0 goals"),
        (changed(grammar=GAMES[0]["grammar"] + '"Your task is to: win."'), "states 2 goals"),
        (changed(pddl_problem=7), "have to be texts"),
        ([{"path": GAMES[0]["path"]}], "no game of ALFWorld"),
        (["no object"], "no game of ALFWorld"),
        ([GAMES[0], GAMES[0]], "two games are called pick_heat"),
    ],
)
def test_what_holds_no_games_is_refused_in_one_sentence(tmp_path, entries, said):
    with pytest.raises(InputError, match=said):
        load_games(write_file(tmp_path / "games.json", entries))


def test_a_path_with_nothing_in_it_is_told_where_to_get_games(tmp_path):
    for path in (None, tmp_path, tmp_path / "none.json"):
        with pytest.raises(InputError, match=r"alfworld-download .* --data PATH"):
            load_games(path)
    other = tmp_path / "other.json"
    other.write_text("[1]")
    with pytest.raises(InputError, match="expected an object with domain and games"):
        load_games(other)


# --- grammars -------------------------------------------------------------------------------------


def test_a_goal_is_read_with_and_without_a_full_stop():
    assert goal_of('{"rhs": "Your task is to: put a mug in desk."}') == "put a mug in desk"
    assert goal_of('{"rhs": "Your task is to: put a mug in desk"}') == "put a mug in desk"


def test_a_grammar_of_texts_passes():
    check_grammar(grammar("put a mug on shelf"))


@pytest.mark.parametrize(
    "program",
    [
        "{__import__('os').system('x')}",
        "{ __import__('os').system('x') }",
        "{i.name.__class__}",
        "{i.name + open('x').read()}",
        "{i.name if exit() else i.id}",
        "[{open('x') | lies(i:item, r:receptacle)}]",
        "{i.name or [].clear()}",
        "\\u007bexit()\\u007d",
        "{\\nexit()}",
        "{\nexit()}",
        "{\texit()}",
        "{'a' + 'b'.join(x)}",
        "{#here# or exit()}",
        "{i.name{exit()}",
    ],
)
def test_a_grammar_that_would_run_a_program_is_refused(tmp_path, program):
    text = GAMES[0]["grammar"].replace(RULES["here"][1]["rhs"], program)
    assert text != GAMES[0]["grammar"]
    with pytest.raises(InputError, match="program"):
        load_games(write_file(tmp_path / "games.json", changed(grammar=text)))
    template = GAMES[0]["grammar"].replace("open {r}", program)
    with pytest.raises(InputError, match="program"):
        check_grammar(template)


# --- names ----------------------------------------------------------------------------------------


def test_things_are_numbered_against_the_order_of_their_ids():
    names = plain_names(
        [
            "Mug_bar__minus_01_dot_00",
            "Mug_bar__plus_01_dot_00",
            "agent1",
            "Sink_bar__plus_01_bar_SinkBasin",
            "Sink_bar__plus_01",
        ]
    )
    assert names == {
        "Mug_bar__plus_01_dot_00": "mug 1",
        "Mug_bar__minus_01_dot_00": "mug 2",
        "agent1": "agent1",
        "Sink_bar__plus_01_bar_SinkBasin": "sinkbasin 1",
        "Sink_bar__plus_01": "sink 1",
    }


@pytest.mark.parametrize(
    ("command", "form"),
    [
        ("go to shelf 12", "go to THING"),
        ("go to fridge 1", "go to fridge"),
        ("take apple 1 from countertop 2", "take THING from THING"),
        ("heat apple 1 with microwave 1", "heat THING with microwave"),
        ("clean pan 3 with sinkbasin 1", "clean THING with sinkbasin"),
        ("use desklamp 2", "use desklamp"),
        ("look", "look"),
    ],
)
def test_a_form_keeps_the_verb_and_the_tool(command, form):
    assert form_of(command) == form


@pytest.mark.parametrize(
    ("reply", "command"),
    [
        ("I need a mug.\nAction: go to desk 1", "go to desk 1"),
        ("action:  `take mug 1 from desk 1`.\nThen more", "take mug 1 from desk 1"),
        ("Action: look\nAction: inventory", "look"),
        ("go to desk 1", "go to desk 1"),
        ("I do not know", "I do not know"),
        ("Action:\nlook", ""),
        ("", ""),
    ],
)
def test_the_first_action_of_a_reply_is_its_command(reply, command):
    assert read_command(reply) == command


def test_nothing_of_the_benchmark_comes_along():
    here = Path(__file__).parent
    assert not list(here.rglob("*.tw-pddl*"))
    assert "ALFRED" in json.dumps(RULES)
