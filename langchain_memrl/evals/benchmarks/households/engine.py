"""Plays games on TextWorld's planning engine, in a process of its own.

Usage: `python -m langchain_memrl.evals.benchmarks.households.engine`. Each line of the standard
input is a request in JSON, each line of the standard output the reply to it: `{"start": ...}` with
the parts of a game begins it anew, `{"do": "look"}` carries out a command. It ends with its input.

A process of its own because the engine is a native library, and because its translator changes
`sys.argv` and `sys.stdout` of whoever calls it.
"""

import json
import os
import re
import sys
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from langchain_memrl.evals.benchmarks.downloads import digest
from langchain_memrl.evals.benchmarks.households.grammar import goal_of, without_goal
from langchain_memrl.evals.benchmarks.households.names import plain_names

KNOWN = 500
"""Games whose translation is kept, packed: some 60 kB each."""
KNOWN_TEXTS = 200
"""Texts of each of them that are kept."""
NOTHING = "Nothing happens."
"""What the engine says to a command that is not possible."""
GOAL_MARK = "THE GOAL"
PLAIN = re.compile(r"[^{}\[\]#|]*(?:\{\w+\}[^{}\[\]#|]*)*")
"""A template that has nothing in it but the names of parameters."""


@dataclass(frozen=True, slots=True)
class Translation:
    """A problem as the planner reads it, which takes a second to make and is always the same.

    Attributes:
        sas: The problem in the planner's own format, packed.
        scene: What `_scene_of` found, packed.
        parameters: The name and the kind of each parameter of each action.
        commands: The commands of all operators that were possible so far.
        texts: What was told lately, by the SHA-256 of all that it can depend on.
    """

    sas: bytes
    scene: bytes
    parameters: dict[str, list[tuple[str, str]]]
    commands: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)


class Scene(NamedTuple):
    """A state of a game, and what there is, by its id: what TextWorld makes texts from."""

    state: Any
    things: dict[str, Any]


class Engine:
    """One game at a time. Every start loads the planner's state anew: nothing is carried over."""

    def __init__(self) -> None:
        import fast_downward

        self._library = fast_downward.load_lib()
        self._known: OrderedDict[str, Translation] = OrderedDict()

    def start(self, domain: str, problem: str, grammar: str) -> dict[str, Any]:
        """Begin a game.

        Args:
            domain: What can be done, in PDDL.
            problem: What is there and what is asked for, in PDDL.
            grammar: How it is told, in TextWorld's own format.

        Returns:
            The opening text, the commands that are possible, and whether it is won.
        """
        self._known_so_far = self._translated(domain, problem, grammar)
        self._library.load_sas(zlib.decompress(self._known_so_far.sas))
        self._rules = _rules(domain, without_goal(grammar, GOAL_MARK))
        self._changes: dict[str, Any] = {}
        self._last_scene: Scene | None = None
        text = self._told("#intro#", "")
        return self._reply(text.replace(GOAL_MARK, goal_of(grammar)))

    def do(self, command: str) -> dict[str, Any]:
        """Carry out a command; what is not possible changes nothing."""
        operator = self._possible.get(command.strip())
        if operator is None:
            return self._reply(NOTHING)
        from textworld.envs.pddl.logic import Atom

        effects = (Atom * operator.nb_effect_atoms)()
        self._library.apply_operator(operator.id, effects)
        for effect in effects:
            self._changes.pop(atom := effect.name.partition(" ")[2], None)
            self._changes[atom] = effect
        self._last_scene = None
        action = self._rules.actions[operator.name.split()[0]]
        return self._reply(self._told(action.feedback_rule, operator.name))

    def _reply(self, text: str) -> dict[str, Any]:
        import fast_downward

        operators = (fast_downward.Operator * self._library.get_applicable_operators_count())()
        self._library.get_applicable_operators(operators)
        self._possible: dict[str, Any] = {}
        for operator in operators:
            self._possible.setdefault(self._command(operator.name), operator)
        won = bool(self._library.check_goal())
        return {"text": text, "commands": sorted(self._possible), "won": won}

    def _command(self, operator: str) -> str:
        """How an operator is asked for: that depends only on what its template names."""
        name, *arguments = operator.split()
        template = self._rules.actions[name].template
        words = set(re.findall(r"\w+", template))
        named = {
            parameter: argument
            for (parameter, _), argument in zip(
                self._known_so_far.parameters[name], arguments, strict=False
            )
            if parameter in words
        }
        key = " ".join([template, *named.values()])
        known = self._known_so_far.commands
        if key not in known:
            if PLAIN.fullmatch(template):
                things = self._scene().things
                known[key] = template.format(**{p: things[id].name for p, id in named.items()})
            else:
                known[key] = self._derive(template, operator)
        return known[key]

    def _told(self, rule: str, operator: str) -> str:
        """What a rule makes of an operator in this very state of the game."""
        known = self._known_so_far.texts
        state = sorted(effect.name for effect in self._changes.values())
        key = digest("\n".join([rule, operator, *state]))
        if key not in known:
            known[key] = self._derive(rule, operator)
            if len(known) > KNOWN_TEXTS:
                known.pop(next(iter(known)))
        return known[key]

    def _derive(self, rule: str, operator: str) -> str:
        """Have a text made by TextWorld."""
        from textworld.logic import Placeholder, Variable

        state, things = self._scene()
        name, *arguments = operator.split() or [""]
        # Behind its own parameters the planner keeps those that a condition quantifies over.
        mapping = {
            Placeholder(parameter, kind): Variable(argument, kind)
            for (parameter, kind), argument in zip(
                self._known_so_far.parameters.get(name, []), arguments, strict=False
            )
        }
        context = {
            "state": state,
            "facts": [],
            "variables": {key.name: things[value.name] for key, value in mapping.items()},
            "mapping": mapping,
            "entity_infos": things,
        }
        return str(self._rules.grammar.derive(rule, context))

    def _scene(self) -> Scene:
        """The state of the game, as TextWorld keeps it: what was undone is a fact of its own."""
        if self._last_scene is None:
            from textworld import logic

            scene = json.loads(zlib.decompress(self._known_so_far.scene))
            world = logic.GameLogic()
            for name, above in scene["types"].items():
                world.types.add(logic.Type(name, above))
            state = logic.State(world, _facts(scene))
            for effect in self._changes.values():
                fact = effect.get_fact(scene["kinds"])
                state.remove_fact(fact.negate())
                state.add_fact(fact)
            self._last_scene = Scene(state, _things(scene))
        return self._last_scene

    def _translated(self, *parts: str) -> Translation:
        """The translation of a game, made once."""
        import fast_downward

        key = digest("\n".join(parts))
        if key not in self._known:
            domain, problem, _ = parts
            task, sas = fast_downward.pddl2sas(domain, problem)
            self._library.load_sas(sas.encode())
            scene = json.dumps(_scene_of(task, self._true_atoms()))
            parameters = {
                action.name: [(p.name.strip("?"), p.type_name) for p in action.parameters]
                for action in task.actions
            }
            self._known[key] = Translation(
                zlib.compress(sas.encode()), zlib.compress(scene.encode()), parameters
            )
            if len(self._known) > KNOWN:
                self._known.popitem(last=False)
        return self._known[key]

    def _true_atoms(self) -> list[str]:
        """What the planner takes as true now, such as `Atom holdsany(agent1)`."""
        from textworld.envs.pddl.logic import Atom

        atoms = (Atom * self._library.get_state_size())()
        self._library.get_state(atoms)
        return [atom.name for atom in atoms if not atom.name.startswith("NegatedAtom")]


def _scene_of(task: Any, atoms: Sequence[str]) -> dict[str, Any]:
    """What has to be known of a problem to tell it in words: what is there and what holds."""
    from fast_downward.translate.pddl.conditions import Atom

    given = (fact for fact in task.init if isinstance(fact, Atom) and fact.predicate != "=")
    read = (atom.removeprefix("Atom ").removesuffix(")").partition("(") for atom in atoms)
    return {
        "kinds": {thing.name: thing.type_name for thing in task.objects},
        "types": {kind.name: kind.supertype_names for kind in reversed(task.types)},
        "facts": [
            *([fact.predicate, *fact.args] for fact in given),
            *([name, *filter(None, listed.split(", "))] for name, _, listed in read),
        ],
    }


def _facts(scene: dict[str, Any]) -> list[Any]:
    """What holds when a game begins."""
    from textworld.logic import Proposition, Variable

    kinds = scene["kinds"]
    return [
        Proposition(name, [Variable(id, kinds[id]) for id in arguments])
        for name, *arguments in scene["facts"]
    ]


def _things(scene: dict[str, Any]) -> dict[str, Any]:
    """What there is, by its id, with the names that ALFWorld gives it."""
    from textworld.generator.game import EntityInfo

    things = {}
    for id, name in plain_names({id for _, *ids in scene["facts"] for id in ids}).items():
        things[id] = EntityInfo(id, scene["kinds"][id])
        things[id].name, things[id].definite, things[id].indefinite = name, "the", "a"
    return things


@lru_cache(maxsize=8)
def _rules(domain: str, grammar: str) -> Any:
    """The grammar, parsed."""
    from textworld.envs.pddl.logic import GameLogic

    return GameLogic(domain=domain, grammar=grammar)


def serve(requests: Any, replies: Any) -> None:
    """Reply to each request until there are no more."""
    engine = Engine()
    for line in requests:
        request = json.loads(line)
        try:
            if "start" in request:
                reply = engine.start(*request["start"])
            else:
                reply = engine.do(request["do"])
        except Exception as error:  # told to whoever asked
            reply = {"error": f"{type(error).__name__}: {error}"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def _main() -> None:
    """Keep the replies apart from whatever the engine prints."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(sys.stdin, replies)


if __name__ == "__main__":
    _main()
