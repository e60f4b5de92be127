"""How recalled memories enter a prompt: as data, within a token budget.

Stored text is quoted unchanged. It never becomes an instruction, a role or a template.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately

from langchain_memrl import prompts
from langchain_memrl.errors import ConfigError
from langchain_memrl.fencing import quote
from langchain_memrl.types import Recall, ScoredMemory, ShownMemory

RenderFunction = Callable[[list[BaseMessage], list[ShownMemory]], list[BaseMessage]]
"""Takes the conversation (the task last) and the memories, best first; returns the prompt."""

Render = Literal["fenced", "turns"] | RenderFunction

CHARACTERS_PER_TOKEN = 4
WORTH_SHOWING = 80
"""Characters; a shorter piece of a trajectory tells nothing."""


class Cut(NamedTuple):
    """What the budget left out of one memory: `part` is "memory", "lesson" or "trajectory"."""

    id: str
    part: str
    characters: int


def count_tokens(text: str) -> int:
    """Roughly how many tokens a text costs."""
    return count_tokens_approximately([HumanMessage(text)]) if text else 0


def fit(recall: Recall, max_tokens: int) -> tuple[list[ShownMemory], list[Cut]]:
    """Choose what of the recalled memories fits into a prompt, best first.

    Lessons come first: no lesson is cut or left out while a trajectory is shown. Where one does not
    fit, the best such lesson is shortened into what remains. Otherwise the rest of the budget goes
    to the trajectories, best memory first. A memory of which nothing fits is not shown, and so not
    rewarded.

    Args:
        recall: The recall.
        max_tokens: The budget, in tokens (counted approximately).

    Returns:
        The memories as shown, best first, and everything that was cut.
    """
    memories = [as_shown(scored) for scored in recall.memories]
    lessons, left = _fit_lessons(memories, max_tokens)
    shown: list[ShownMemory] = []
    cuts: list[Cut] = []
    for memory in memories:
        lesson, lost = lessons.get(memory.id, ("", 0))
        trajectory, missing = "", len(memory.trajectory)
        if memory.id in lessons:
            trajectory, missing = _shorten(memory.trajectory, left)
        if not lesson and not trajectory:
            cuts.append(Cut(memory.id, "memory", len(memory.experience)))
            continue
        left -= count_tokens(trajectory)
        shown.append(replace(memory, lesson=lesson, trajectory=trajectory, left_out=missing))
        parts = (("lesson", lost), ("trajectory", missing))
        cuts += [Cut(memory.id, part, characters) for part, characters in parts if characters]
    return shown, cuts


def _fit_lessons(
    memories: Sequence[ShownMemory], left: int
) -> tuple[dict[str, tuple[str, int]], int]:
    """What is shown of each lesson, how much of it is missing, and the tokens that are left."""
    lessons: dict[str, tuple[str, int]] = {}
    lost: ShownMemory | None = None
    for memory in memories:
        cost = count_tokens(memory.intent) + count_tokens(memory.lesson)
        if cost <= left:
            lessons[memory.id] = (memory.lesson, 0)
            left -= cost
        elif memory.lesson:
            lost = lost or memory
    if lost is None:
        return lessons, left
    lesson, missing = _shorten(lost.lesson, left - count_tokens(lost.intent))
    if lesson:
        lessons[lost.id] = (lesson, missing)
    return lessons, 0


def as_shown(scored: ScoredMemory) -> ShownMemory:
    """What a prompt is told of a recalled memory."""
    memory = scored.memory
    return ShownMemory(
        id=memory.id,
        intent=memory.intent,
        lesson=memory.lesson,
        trajectory=memory.trajectory,
        outcome=memory.outcome,
        similarity=scored.similarity,
        q_value=memory.q_value,
    )


def _shorten(text: str, tokens: int) -> tuple[str, int]:
    """The head of a text and how many characters are missing; the gap is marked."""
    if count_tokens(text) <= tokens:
        return text, 0
    room = (tokens - count_tokens_approximately([HumanMessage("")])) * CHARACTERS_PER_TOKEN
    head = room - len(prompts.CUT_NOTE.format(count=len(text))) - 1
    if head < WORTH_SHOWING:
        return "", len(text)
    lost = len(text) - head
    return f"{text[:head]}\n{prompts.CUT_NOTE.format(count=lost)}", lost


# --- into messages ------------------------------------------------------------------------------


def to_prompt(
    messages: Sequence[BaseMessage],
    memories: Sequence[ShownMemory],
    render: Render,
    fence_key: bytes,
) -> list[BaseMessage]:
    """The prompt: the conversation with the memories in it. Without memories nothing is added.

    Args:
        messages: The conversation, the task last.
        memories: What fits, best first.
        render: `"fenced"`, `"turns"` or a callable.
        fence_key: The bank's random key.

    Returns:
        New messages; those of the conversation are not changed.
    """
    conversation = list(messages)
    if not memories:
        return conversation
    if callable(render):
        return list(render(conversation, list(memories)))
    added: Sequence[BaseMessage] = (
        [fenced(memories, fence_key)] if render == "fenced" else turns(memories)
    )
    place = _task_place(conversation)
    return [*conversation[:place], *added, *conversation[place:]]


def check_render(render: Render) -> Render:
    """Return a usable `render`.

    Raises:
        ConfigError: Neither `"fenced"`, `"turns"` nor a callable.
    """
    if render not in ("fenced", "turns") and not callable(render):
        raise ConfigError(f'render is {render!r}; expected "fenced", "turns" or a callable')
    return render


def _task_place(conversation: Sequence[BaseMessage]) -> int:
    """Where the task stands: the last human message, or the end."""
    places = [i for i, message in enumerate(conversation) if isinstance(message, HumanMessage)]
    return places[-1] if places else len(conversation)


def fenced(memories: Sequence[ShownMemory], fence_key: bytes) -> HumanMessage:
    """One message that quotes the memories inside a fence that their authors cannot know."""
    groups = (
        (prompts.SUCCESS_HEADING, "success"),
        (prompts.FAILURE_HEADING, "failure"),
        (prompts.UNKNOWN_HEADING, "unknown"),
    )
    blocks = []
    for heading, outcome in groups:
        notes = [_note(memory) for memory in memories if memory.outcome == outcome]
        if notes:
            blocks.append("\n\n".join([heading, *notes]))
    body = "\n\n".join(blocks)
    return HumanMessage(quote("memories", body, fence_key, prompts.MEMORIES_INTRO))


def _note(memory: ShownMemory) -> str:
    return f"Task: {memory.intent}\n{memory.experience}"


def turns(memories: Sequence[ShownMemory]) -> list[BaseMessage]:
    """The memories as earlier questions and answers, the best one last, next to the task.

    Small models follow the nearest example. A failed answer is followed by saying so.
    """
    conversation: list[BaseMessage] = []
    for memory in reversed(memories):
        conversation.append(HumanMessage(memory.intent))
        if memory.outcome != "failure":
            conversation.append(AIMessage(memory.experience))
            continue
        answer, reflection = memory.trajectory, memory.lesson
        if memory.left_out and not answer:
            answer = prompts.CUT_NOTE.format(count=memory.left_out)
        if not answer:
            answer, reflection = reflection, ""
        verdict = f"{prompts.FAILED_ANSWER} {reflection}".strip()
        conversation += [
            AIMessage(answer),
            HumanMessage(verdict),
            AIMessage(prompts.ACKNOWLEDGED),
        ]
    return conversation
