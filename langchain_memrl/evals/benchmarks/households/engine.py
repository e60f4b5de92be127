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
from collections.abc import Mapping
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
    """

    packed: bytes
    commands: dict[str, str] = field(default_factory=dict)


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
        from textworld import logic
        from textworld.generator.game import EntityInfo

        self._translation = self._translated(domain, problem)
        parts = json.loads(zlib.decompress(self._translation.packed))
        self._library.load_sas(parts["sas"].encode())
        self._kinds: dict[str, str] = parts["kinds"]
        self._parameters: dict[str, list[list[str]]] = parts["parameters"]
        self._rules, goal = _rules(domain, without_goal(grammar, GOAL_MARK)), goal_of(grammar)
        world = logic.GameLogic()
        for name, above in parts["types"].items():
            world.types.add(logic.Type(name, above))
        self._state = logic.State(world)
        for name, *arguments in parts["facts"]:
            variables = [logic.Variable(id, self._kinds[id]) for id in arguments]
            self._state.add_fact(logic.Proposition(name, variables))
        self._state.add_facts(self._derived())
        variables = {v.name: v.type for fact in self._state.facts for v in fact.arguments}
        self._things = {}
        for id, name in plain_names(variables).items():
            thing = EntityInfo(id, variables[id])
            thing.name, thing.definite, thing.indefinite = name, "the", "a"
            self._things[id] = thing
        text = self._derive("#intro#", {}).replace(GOAL_MARK, goal)
        return self._reply(text)

    def do(self, command: str) -> dict[str, Any]:
        """Carry out a command; what is not possible changes nothing."""
        operator = self._possible.get(command.strip())
        if operator is None:
            return self._reply(NOTHING)
        from textworld.envs.pddl.logic import Atom

        effects = (Atom * operator.nb_effect_atoms)()
        self._library.apply_operator(operator.id, effects)
        for effect in effects:
            fact = effect.get_fact(self._kinds)
            self._state.remove_fact(fact.negate())
            self._state.add_fact(fact)
        action = self._rules.actions[operator.name.split()[0]]
        return self._reply(self._derive(action.feedback_rule, self._mapping(operator.name)))

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
        known = self._translation.commands
        if operator not in known:
            template = self._rules.actions[operator.split()[0]].template
            known[operator] = self._derive(template, self._mapping(operator))
        return known[operator]

    def _mapping(self, operator: str) -> dict[Any, Any]:
        from textworld.logic import Placeholder, Variable

        name, *arguments = operator.split()
        return {
            Placeholder(parameter, kind): Variable(argument, kind)
            for (parameter, kind), argument in zip(self._parameters[name], arguments, strict=True)
        }

    def _derive(self, rule: str, mapping: Mapping[Any, Any]) -> str:
        context = {
            "state": self._state,
            "facts": [],
            "variables": {key.name: self._things[value.name] for key, value in mapping.items()},
            "mapping": dict(mapping),
            "entity_infos": self._things,
        }
        return str(self._rules.grammar.derive(rule, context))

    def _derived(self) -> list[Any]:
        """The facts that the planner keeps."""
        from textworld.envs.pddl.logic import Atom

        atoms = (Atom * self._library.get_state_size())()
        self._library.get_state(atoms)
        facts = (atom.get_fact(self._kinds) for atom in atoms)
        return [fact for fact in facts if not fact.is_negation]

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
