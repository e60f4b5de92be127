"""Runbook notes for support tickets: every note looks right, one in three is.

A team keeps three notes per kind of ticket, each naming a queue. They carry the same title, so
nothing in the text tells which one still holds; only sending a ticket there does. Queue names and
the right note are drawn by the seed, so a model can neither know nor guess them.
"""

import random
import re
from dataclasses import dataclass

from langchain_core.embeddings import Embeddings
from langchain_core.messages import HumanMessage, SystemMessage

from langchain_memrl.evals.asking import ask, word_embeddings
from langchain_memrl.evals.environment import Environment, Setup, Situation, Suite, Task, Trial

TOPICS: dict[str, tuple[str, ...]] = {
    "VPN connection drops": (
        "VPN connection drops when I work from home",
        "VPN connection drops during video calls",
        "VPN connection drops right after signing in",
        "My VPN connection drops every few minutes",
    ),
    "Office printer jams": (
        "Office printer jams on every page",
        "Office printer jams again since noon",
        "Office printer jams when printing on both sides",
        "The office printer jams with thick paper",
    ),
    "Wrong amount on an invoice": (
        "Wrong amount on the May invoice",
        "Wrong amount on an invoice for desks",
        "Wrong amount on an invoice: way too high",
        "Wrong amount on an invoice from last year",
    ),
    "Password reset needed": (
        "Password reset needed for the shared mail account",
        "Password reset needed after the holidays",
        "Password reset needed, the link has expired",
        "Password reset needed before noon",
    ),
    "Laptop battery not charging": (
        "Laptop battery not charging above ten percent",
        "Laptop battery not charging with the new cable",
        "My laptop battery is not charging at all",
        "Laptop battery not charging overnight",
    ),
    "Door badge rejected": (
        "Door badge rejected at the front entrance",
        "Door badge rejected in the lab",
        "Door badge rejected every evening",
        "Door badge rejected by the garage",
    ),
    "Parcel has not arrived": (
        "Parcel has not arrived after two weeks",
        "Parcel from Lisbon has not arrived",
        "The second parcel has not arrived",
        "My birthday parcel has not arrived",
    ),
    "Meeting room booked twice": (
        "Meeting room booked twice on Monday",
        "Meeting room booked twice by two teams",
        "Our big meeting room was booked twice",
        "Meeting room booked twice in the calendar",
    ),
}

QUEUES = (
    "Cedar",
    "Maple",
    "Aspen",
    "Birch",
    "Willow",
    "Rowan",
    "Linden",
    "Cypress",
    "Falcon",
    "Pelican",
    "Puffin",
    "Kestrel",
    "Curlew",
    "Egret",
    "Amber",
    "Indigo",
    "Violet",
    "Emerald",
    "Granite",
    "Jupiter",
    "Mercury",
    "Titan",
    "Atlas",
    "Gemini",
)

NOTES_PER_TOPIC = 3

INSTRUCTION = (
    "You route support tickets. A new ticket goes to the same queue as the last ticket that looks "
    "like it. Answer with the name of the queue only."
)


@dataclass(frozen=True, slots=True)
class Note:
    """One runbook note: tickets like `title` go to `queue`. `holds` is the hidden truth."""

    title: str
    queue: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Ticket:
    """One task: the text a model sees, and the queue that solves it."""

    id: str
    text: str
    queue: str


@dataclass(frozen=True, slots=True)
class Runbooks:
    """One world: notes in the order in which they were written, and tickets."""

    notes: tuple[Note, ...]
    tickets: tuple[Ticket, ...]


def make_runbooks(seed: int, tickets: int | None = None) -> Runbooks:
    """Draw a world.

    Args:
        seed: The same seed gives the same world.
        tickets: How many tickets, spread over the topics; all 32 by default.

    Returns:
        24 notes, a third of them right, in random order, and the tickets in random order.
    """
    rng = random.Random(seed)  # noqa: S311 - an experiment, not a secret
    queues = rng.sample(QUEUES, len(QUEUES))
    notes, rounds = [], []
    for place, (title, texts) in enumerate(TOPICS.items()):
        names = queues[NOTES_PER_TOPIC * place : NOTES_PER_TOPIC * (place + 1)]
        right = rng.choice(names)
        notes += [Note(title, name, name == right) for name in names]
        rounds.append([Ticket(f"{place}-{i}", text, right) for i, text in enumerate(texts)])
    chosen = [ticket for group in zip(*rounds, strict=True) for ticket in group][:tickets]
    rng.shuffle(notes)
    rng.shuffle(chosen)
    return Runbooks(tuple(notes), tuple(chosen))


def score(answer: str, queue: str) -> bool:
    """Whether the first line of an answer names the queue, and no other one."""
    lines = answer.strip().splitlines()
    words = set(re.findall(r"[a-z]+", lines[0].lower())) if lines else set()
    return words & {name.lower() for name in QUEUES} == {queue.lower()}


class RunbookTickets(Environment):
    """A model routes tickets with one note in its prompt, as an earlier question and answer.

    Nothing is written, so that nothing but the ranking of the notes differs between arms.

    Args:
        setup: The seed, the number of tickets and the model.
    """

    recall = {"k": 1}  # noqa: RUF012 - read only; a small model copies what stands nearest

    def __init__(self, setup: Setup) -> None:
        world = make_runbooks(setup.seed, setup.tasks)
        self._model = setup.model
        self._queues = {ticket.id: ticket.queue for ticket in world.tickets}
        self.tasks = [Task(ticket.id, ticket.text) for ticket in world.tickets]
        self.notes = [
            {
                "intent": note.title,
                "lesson": f"Queue: {note.queue}",
                "source": "runbook",
                "metadata": {"holds": note.holds},
            }
            for note in world.notes
        ]

    def act(self, situation: Situation) -> Trial:
        """Ask the model for the queue."""
        messages = [SystemMessage(INSTRUCTION), HumanMessage(situation.task.text)]
        reply = ask(self._model, messages, situation.memories, sample=situation.sample)
        return Trial(
            success=score(reply.text, self._queues[situation.task.id]),
            answer=reply.text,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
        )

    def embeddings(self) -> Embeddings:
        """Static word vectors that come along."""
        return word_embeddings()

    def oracle(self, situation: Situation) -> dict[str, bool]:
        """Only notes that hold."""
        return {"holds": True}


SUITE = Suite(
    "runbooks",
    RunbookTickets,
    asks_model=True,
    model_settings={"max_tokens": 12, "stop": ["\n"]},
    knows_truth=True,
    about={"": "tickets with three notes each, two of them stale"},
)
