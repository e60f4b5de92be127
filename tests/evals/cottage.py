"""Invented household games in the shape of ALFWorld's, a stub of their engine, and what tells of
the real one."""

import importlib.util
import json
from contextlib import contextmanager

import pytest

from langchain_memrl.evals.benchmarks.households.houses import Seen

SET_UP = (
    'needs ALFWorld\'s engine, which compiles for some minutes: pip install -e ".[bench-alfworld]"'
)
needs_engine = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("textworld", "fast_downward")),
    reason=SET_UP,
)

DOMAIN = """
(define (domain cottage)
  (:requirements :adl :typing)
  (:types person receptacle item)
  (:predicates
    (near ?p - person ?r - receptacle)
    (stands ?r - receptacle ?p - person)
    (lies ?i - item ?r - receptacle)
    (carries ?p - person ?i - item)
    (laden ?p - person)
    (oven ?r - receptacle)
    (lamp ?i - item)
    (hot ?i - item)
    (lit ?i - item)
    (lidded ?r - receptacle)
    (ajar ?r - receptacle)
    (seen ?p - person))
  (:action walk
    :parameters (?p - person ?from - receptacle ?r - receptacle)
    :precondition (and (near ?p ?from) (not (= ?from ?r)))
    :effect (and (not (near ?p ?from)) (near ?p ?r)))
  (:action uncover
    :parameters (?p - person ?r - receptacle)
    :precondition (and (near ?p ?r) (lidded ?r) (not (ajar ?r)))
    :effect (ajar ?r))
  (:action grab
    :parameters (?p - person ?i - item ?r - receptacle)
    :precondition (and (near ?p ?r) (lies ?i ?r) (not (laden ?p)) (not (lamp ?i))
                       (or (not (lidded ?r)) (ajar ?r)))
    :effect (and (carries ?p ?i) (laden ?p) (not (lies ?i ?r))))
  (:action drop
    :parameters (?p - person ?i - item ?r - receptacle)
    :precondition (and (near ?p ?r) (carries ?p ?i))
    :effect (and (lies ?i ?r) (not (carries ?p ?i)) (not (laden ?p))))
  (:action warm
    :parameters (?p - person ?i - item ?r - receptacle)
    :precondition (and (near ?p ?r) (carries ?p ?i) (oven ?r))
    :effect (hot ?i))
  (:action light
    :parameters (?p - person ?i - item)
    :precondition (and (lamp ?i) (exists (?r - receptacle) (and (near ?p ?r) (lies ?i ?r))))
    :effect (lit ?i))
  (:action glance
    :parameters (?p - person)
    :precondition ()
    :effect (seen ?p)))
"""

LIST = "[{i.indefinite + ' ' + i.name | lies(i:item, r:receptacle)}]"
RULES = {
    "intro": [
        {
            "rhs": "-= Welcome to TextWorld, ALFRED! =-\n\nA cottage with "
            "[{r.name | stands(r:receptacle, p:person)}].\n\n#task#"
        }
    ],
    "task": [{"rhs": "Your task is to: GOAL."}],
    "here": [
        {"condition": "lidded(r:receptacle) & ajar(r:receptacle)", "rhs": f"Inside is {LIST}."},
        {"condition": "lidded(r:receptacle)", "rhs": "The {r.name} is closed."},
        {"rhs": f"On the {{r.name}} is {LIST}."},
    ],
    "list_empty": [{"rhs": "nothing"}],
    "list_separator": [{"rhs": ", "}],
    "list_last_separator": [{"rhs": ", and "}],
}
ACTIONS = {
    "walk": ("go to [{r.name | stands(r:receptacle, p:person)}]", "You arrive at {r.name}. #here#"),
    "uncover": ("open {r}", "You open the {r.name}. #here#"),
    "grab": ("take {i} from {r}", "You take the {i.name}."),
    "drop": ("move {i} to {r}", "You move the {i.name} to the {r.name}."),
    "warm": ("heat {i} with {r}", "You heat the {i.name}."),
    "light": ("use {i}", "The {i.name} is on."),
    "glance": ("look", "You look around."),
}


def grammar(goal):
    rules = json.dumps(RULES, indent=4).replace("GOAL", goal)
    text = f'grammar :: """\n{rules}\n""";\n'
    for name, (template, feedback) in ACTIONS.items():
        inner = json.dumps({f"{name}.feedback": [{"rhs": feedback}]}, indent=4)
        text += (
            f'\naction {name} {{\n    template :: "{template}";\n'
            f'    feedback :: "#{name}.feedback#";\n    grammar :: """\n{inner}\n""";\n}}\n'
        )
    return text


SHELF, TABLE, CHEST, STOVE = (
    f"{kind}_bar__plus_0{number}_dot_50"
    for number, kind in enumerate(("Shelf", "Table", "Chest", "Microwave"))
)
POT, PAN, LAMP, MUG, CUP = (
    f"{kind}_bar__minus_0{number}_dot_25"
    for number, kind in enumerate(("Teapot", "Teapot", "DeskLamp", "Mug", "Mug"))
)


def problem(goal, lies=((POT, SHELF), (PAN, CHEST), (LAMP, TABLE), (MUG, TABLE))):
    receptacles = "\n".join(f"    {name} - receptacle" for name in (SHELF, TABLE, CHEST, STOVE))
    items = "\n".join(f"    {name} - item" for name, _ in lies)
    placed = " ".join(f"(lies {item} {where})" for item, where in lies)
    placed += "".join(f" (stands {name} anna)" for name in (SHELF, TABLE, CHEST, STOVE))
    return f"""
(define (problem p) (:domain cottage)
  (:objects
    anna - person
{receptacles}
{items})
  (:init (near anna {TABLE}) (oven {STOVE}) (lidded {CHEST}) (lamp {LAMP}) {placed})
  (:goal {goal}))
"""


def game(path, goal, pddl, walkthrough, **more):
    return {
        "path": f"{path}/game.tw-pddl",
        "pddl_problem": problem(pddl, **more),
        "grammar": grammar(goal),
        "walkthrough": walkthrough,
        "solvable": True,
    }


HEAT = "pick_heat_then_place_in_recep"
PLACE = "pick_and_place_simple"
LIGHT = "look_at_obj_in_light"
GAMES = [
    game(
        f"valid_seen/{HEAT}-Teapot-None-Table-1/trial_A",
        "put a hot teapot on table",
        f"(exists (?i - item) (and (hot ?i) (lies ?i {TABLE})))",
        [
            "go to shelf 1",
            "take teapot 2 from shelf 1",
            "go to microwave 1",
            "heat teapot 2 with microwave 1",
            "go to table 1",
            "move teapot 2 to table 1",
        ],
    ),
    game(
        f"valid_seen/{HEAT}-Mug-None-Shelf-1/trial_B",
        "put a hot mug on shelf",
        f"(exists (?i - item) (and (hot ?i) (lies ?i {SHELF})))",
        [
            "take mug 1 from table 1",
            "go to microwave 1",
            "heat mug 1 with microwave 1",
            "go to shelf 1",
            "move mug 1 to shelf 1",
        ],
    ),
    game(
        f"valid_seen/{PLACE}-Teapot-None-Shelf-1/trial_C",
        "put a teapot on shelf",
        f"(lies {PAN} {SHELF})",
        [
            "go to chest 1",
            "open chest 1",
            "take teapot 1 from chest 1",
            "go to shelf 1",
            "move teapot 1 to shelf 1",
        ],
    ),
    game(
        f"valid_unseen/{PLACE}-Mug-None-Shelf-1/trial_D",
        "put a mug on shelf",
        f"(lies {MUG} {SHELF})",
        ["take mug 1 from table 1", "go to shelf 1", "move mug 1 to shelf 1"],
    ),
    game(
        f"valid_unseen/{PLACE}-Mug-None-Shelf-1/trial_E",
        "put a mug on shelf",
        f"(lies {CUP} {SHELF})",
        [
            "go to shelf 1",
            "go to table 1",
            "take mug 1 from table 1",
            "go to shelf 1",
            "move mug 1 to shelf 1",
        ],
        lies=((POT, SHELF), (LAMP, TABLE), (CUP, TABLE)),
    ),
    game(
        f"valid_unseen/{LIGHT}-Mug-None-DeskLamp-1/trial_F",
        "look at mug under the desklamp",
        f"(and (lit {LAMP}) (carries anna {MUG}))",
        ["use desklamp 1", "take mug 1 from table 1"],
    ),
]
IDS = {entry["path"].split("/")[2][-1]: "/".join(entry["path"].split("/")[1:3]) for entry in GAMES}
"""The ids by the last letter of the trial."""


def write_file(path, games=None):
    path.write_text(json.dumps({"domain": DOMAIN, "games": GAMES if games is None else games}))
    return path


def write_folder(path, games=None):
    for entry in GAMES if games is None else games:
        file = path / entry["path"]
        file.parent.mkdir(parents=True)
        parts = {name: value for name, value in entry.items() if name != "path"}
        file.write_text(json.dumps({"pddl_domain": DOMAIN, **parts}))
    return path


class StubHouse:
    """Wins a game when its walkthrough was walked in order, whatever came between."""

    def start(self, game):
        self._left = list(game.walkthrough)
        return self._seen(f"-= Welcome to TextWorld, ALFRED! =-\n\nA hut.\n\nDo: {game.goal}")

    def do(self, command):
        if self._left and command == self._left[0]:
            self._left.pop(0)
            return self._seen(f"You did it: {command}")
        return self._seen("You look." if command == "look" else "Nothing happens.")

    def _seen(self, text):
        return Seen(text, tuple(sorted([*self._left[:1], "look"])), not self._left)


class StubHouses:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    @contextmanager
    def lend(self):
        yield StubHouse()
