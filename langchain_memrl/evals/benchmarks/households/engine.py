"""Plays games on TextWorld's planning engine, in a process of its own.

Usage: `python -m langchain_memrl.evals.benchmarks.households.engine`. Each line of the standard
input is a request in JSON, each line of the standard output the reply to it: `{"start": ...}` with
the parts of a game begins it anew, `{"do": "look"}` carries out a command. It ends with its input.

A process of its own because the engine is a native library, and because its translator changes
`sys.argv` and `sys.stdout` of whoever calls it.
"""

import json
import os
import sys
import zlib
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from langchain_memrl.evals.benchmarks.households.grammar import goal_of, without_goal
from langchain_memrl.evals.benchmarks.households.names import plain_names

KNOWN = 500
"""Games whose translation is kept, packed: some 60 kB each."""
NOTHING = "Nothing happens."
"""What the engine says to a command that is not possible."""
GOAL_MARK = "THE GOAL"


@dataclass(frozen=True, slots=True)
class Translation:
    """A problem as the planner reads it, which takes a second to make and is always the same.

    Attributes:
        packed: What `_translate` found, as compressed JSON.
        commands: The command of each operator that was possible so far.
        texts: What was told so far, by the rule and by everything that it can depend on.
    """

    packed: bytes
    commands: dict[str, str] = field(default_factory=dict)
    texts: dict[tuple[str, frozenset[str]], str] = field(default_factory=dict)


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
        self._known_so_far = self._translated(domain, problem)
        self._parts = json.loads(zlib.decompress(self._known_so_far.packed))
        self._library.load_sas(self._parts["sas"].encode())
        self._rules = _rules(domain, without_goal(grammar, GOAL_MARK))
        self._first = self._atoms()
        self._changes: dict[str, Any] = {}
        self._scene: tuple[Any, dict[str, Any]] | None = None
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
        self._scene = None
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
        """How an operator is asked for. That depends on nothing that changes in a game."""
        known = self._known_so_far.commands
        if operator not in known:
            known[operator] = self._derive(
                self._rules.actions[operator.split()[0]].template, operator
            )
        return known[operator]

    def _told(self, rule: str, operator: str) -> str:
        """What a rule makes of an operator in this very state of the game."""
        known = self._known_so_far.texts
        state = frozenset(effect.name for effect in self._changes.values())
        key = (f"{rule} {operator}", state)
        if key not in known:
            known[key] = self._derive(rule, operator)
        return known[key]

    def _derive(self, rule: str, operator: str) -> str:
        """Have a text made by TextWorld."""
        from textworld.logic import Placeholder, Variable

        if self._scene is None:
            self._scene = self._state(), self._things()
        state, things = self._scene
        name, *arguments = operator.split() or [""]
        # Behind its own parameters the planner keeps those that a condition quantifies over.
        parameters = self._parts["parameters"].get(name, [])
        mapping = {
            Placeholder(parameter, kind): Variable(argument, kind)
            for (parameter, kind), argument in zip(parameters, arguments, strict=False)
        }
        context = {
            "state": state,
            "facts": [],
            "variables": {key.name: things[value.name] for key, value in mapping.items()},
            "mapping": mapping,
            "entity_infos": things,
        }
        return str(self._rules.grammar.derive(rule, context))

    def _things(self) -> dict[str, Any]:
        """What there is, by its id, with the names that ALFWorld gives it."""
        from textworld.generator.game import EntityInfo

        kinds = {v.name: v.type for fact in self._facts() for v in fact.arguments}
        things = {}
        for id, name in plain_names(kinds).items():
            things[id] = EntityInfo(id, kinds[id])
            things[id].name, things[id].definite, things[id].indefinite = name, "the", "a"
        return things

    def _facts(self) -> list[Any]:
        """What holds when a game begins."""
        from textworld.logic import Proposition, Variable

        kinds = self._parts["kinds"]
        given = [
            Proposition(name, [Variable(id, kinds[id]) for id in arguments])
            for name, *arguments in self._parts["facts"]
        ]
        return given + [atom.get_fact(kinds) for atom in self._first]

    def _state(self) -> Any:
        """What holds now, as TextWorld keeps it: what was undone is a fact of its own."""
        from textworld import logic

        world = logic.GameLogic()
        for name, above in self._parts["types"].items():
            world.types.add(logic.Type(name, above))
        state = logic.State(world, self._facts())
        for effect in self._changes.values():
            fact = effect.get_fact(self._parts["kinds"])
            state.remove_fact(fact.negate())
            state.add_fact(fact)
        return state

    def _atoms(self) -> list[Any]:
        """What the planner takes as true now."""
        from textworld.envs.pddl.logic import Atom

        atoms = (Atom * self._library.get_state_size())()
        self._library.get_state(atoms)
        return [atom for atom in atoms if not atom.name.startswith("NegatedAtom")]

    def _translated(self, domain: str, problem: str) -> Translation:
        if problem not in self._known:
            self._known[problem] = Translation(_translate(domain, problem))
            if len(self._known) > KNOWN:
                self._known.popitem(last=False)
        return self._known[problem]


def _translate(domain: str, problem: str) -> bytes:
    """What the engine needs of a problem, as compressed JSON."""
    import fast_downward
    from fast_downward.translate.pddl.conditions import Atom

    task, sas = fast_downward.pddl2sas(domain, problem)
    atoms = (fact for fact in task.init if isinstance(fact, Atom) and fact.predicate != "=")
    parts = {
        "sas": sas,
        "kinds": {thing.name: thing.type_name for thing in task.objects},
        "types": {kind.name: kind.supertype_names for kind in reversed(task.types)},
        "facts": [[fact.predicate, *fact.args] for fact in atoms],
        "parameters": {
            action.name: [[p.name.strip("?"), p.type_name] for p in action.parameters]
            for action in task.actions
        },
    }
    return zlib.compress(json.dumps(parts).encode())


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
