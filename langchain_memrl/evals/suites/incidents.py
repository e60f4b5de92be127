"""Incidents in two steps: who runs the broken thing, then how to restart what they run.

For each part of a web shop the runbook holds two notes on who runs it and, for each service they
name, two notes on how to restart it. One of each pair is stale. The answer of the first step
selects the note for the second, and both have to be right. Three of the six notes are shown, and
all of them get the reward: credit has to be found among several memories.
"""

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.messages import HumanMessage, SystemMessage

from langchain_memrl.evals.asking import Reply, ask, word_embeddings
from langchain_memrl.evals.environment import Environment, Setup, Situation, Suite, Task, Trial
from langchain_memrl.types import ScoredMemory

PARTS = (
    "Checkout page",
    "Photo upload",
    "Newsletter sign-up",
    "Store map",
    "Gift card balance",
    "Customer chat",
    "Delivery calendar",
    "Product search",
)
SYMPTOMS = ("is very slow", "shows an error", "does not load")
SERVICES = (
    *("Falcon", "Pelican", "Puffin", "Kestrel", "Curlew", "Egret", "Heron", "Osprey"),
    *("Cedar", "Maple", "Aspen", "Birch", "Willow", "Rowan", "Linden", "Cypress"),
)
ORDERS = ("cycle", "bounce", "rekick", "flush", "rotate", "thaw")

INSTRUCTION = "You handle incidents. Answer like the last note that looks like the question."


class Incidents(Environment):
    """A model answers two questions per incident, each with one of the recalled notes.

    Args:
        setup: The seed, the number of incidents and the model.
    """

    recall: Mapping[str, Any] = {"k": 3}

    def __init__(self, setup: Setup) -> None:
        rng = random.Random(setup.seed)  # noqa: S311 - an experiment, not a secret
        services = rng.sample(SERVICES, len(SERVICES))
        self._model = setup.model
        self._right: dict[str, str] = {}
        notes: list[Mapping[str, Any]] = []
        for place, part in enumerate(PARTS):
            pair = services[2 * place : 2 * place + 2]
            runs_it = rng.choice(pair)
            for service in pair:
                owner = f"Service: {service}"
                notes.append(_note(f"{part}: who runs it?", owner, "", holds=service == runs_it))
                commands = [f"fleet {order} {service.lower()}" for order in rng.sample(ORDERS, 2)]
                works = rng.choice(commands)
                if service == runs_it:
                    self._right[part] = works
                notes += [
                    _note(
                        f"{part}: how to restart {service}?",
                        f"Command: {command}",
                        service,
                        holds=service == runs_it and command == works,
                    )
                    for command in commands
                ]
        rng.shuffle(notes)
        self.notes = notes
        tasks = [
            Task(f"{place}-{number}", f"{part} {symptom}")
            for number, symptom in enumerate(SYMPTOMS)
            for place, part in enumerate(PARTS)
        ][: setup.tasks]
        self.tasks = rng.sample(tasks, len(tasks))

    def act(self, situation: Situation) -> Trial:
        """Ask who runs it, then how to restart that."""
        text = situation.task.text
        owners = [note for note in situation.memories if not note.memory.metadata["service"]]
        first = self._ask(f"{text}: who runs it?", owners[:1], situation)
        service = _named(first.text)
        commands = [
            note
            for note in situation.memories
            if service and note.memory.metadata["service"] == service
        ]
        second = self._ask(f"{text}: how to restart {service or 'it'}?", commands[:1], situation)
        return Trial(
            success=score(second.text, self._right[self._part(text)]),
            answer=f"{first.text} / {second.text}",
            prompt_tokens=first.prompt_tokens + second.prompt_tokens,
            completion_tokens=first.completion_tokens + second.completion_tokens,
            calls=2,
        )

    def embeddings(self) -> Embeddings:
        """Static word vectors that come along."""
        return word_embeddings()

    def oracle(self, situation: Situation) -> dict[str, bool]:
        """The right owner and the command that works."""
        return {"holds": True}

    def _ask(self, text: str, notes: Sequence[ScoredMemory], situation: Situation) -> Reply:
        messages = [SystemMessage(INSTRUCTION), HumanMessage(text)]
        return ask(self._model, messages, notes, sample=situation.sample)

    def _part(self, text: str) -> str:
        return next(part for part in PARTS if text.startswith(part))


def score(answer: str, command: str) -> bool:
    """Whether the first line of an answer holds the command, and no other order."""
    lines = answer.strip().lower().splitlines()
    words = re.findall(r"[a-z]+", lines[0]) if lines else []
    return command in " ".join(words) and len(set(words) & set(ORDERS)) == 1


def _note(intent: str, lesson: str, service: str, *, holds: bool) -> Mapping[str, Any]:
    return {
        "intent": intent,
        "lesson": lesson,
        "source": "runbook",
        "metadata": {"service": service, "holds": holds},
    }


def _named(answer: str) -> str:
    """The only service that the first line of an answer names; empty where it is not one."""
    lines = answer.strip().splitlines()
    words = set(re.findall(r"[A-Za-z]+", lines[0].title())) if lines else set()
    found = words & set(SERVICES)
    return found.pop() if len(found) == 1 else ""


SUITE = Suite(
    "incidents",
    Incidents,
    epochs=6,
    asks_model=True,
    model_settings={"max_tokens": 16, "stop": ["\n"]},
    knows_truth=True,
    settings={"steps": 2},
    about={"": "two steps: look, then act"},
)
