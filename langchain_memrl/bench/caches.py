"""Which tokens of a prompt a provider's prefix cache would have served."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage, message_to_dict
from langchain_core.messages.utils import count_tokens_approximately

from langchain_memrl.graph.agent import MEMORY_ID


class Served(NamedTuple):
    """Tokens of prompts, by where they came from.

    Attributes:
        own: Those of the conversation itself.
        own_served: How many of them a cache had.
        memories: Those that the memory added.
        memories_served: How many of them a cache had.
    """

    own: int = 0
    own_served: int = 0
    memories: int = 0
    memories_served: int = 0

    @property
    def share(self) -> float:
        """Served, in percent of all."""
        return 100 * (self.own_served + self.memories_served) / (self.own + self.memories)

    @property
    def own_share(self) -> float:
        """Served, in percent of what the prompts would hold without the memory."""
        return 100 * self.own_served / self.own


class PrefixCache:
    """A message is served where it and all before it are, byte for byte, the start of a prompt.

    Tokens are counted by `count_tokens_approximately`: four characters each, three per message. A
    message that only begins alike does not count as served.
    """

    def __init__(self) -> None:
        self._seen: set[tuple[str, ...]] = set()

    def ask(self, prompt: Sequence[BaseMessage]) -> Served:
        """What of this prompt is served; from now on all of it is known."""
        sent = tuple(wire(message) for message in prompt)
        starts = [sent[: place + 1] for place in range(len(sent))]
        known = [start in self._seen for start in starts]
        self._seen.update(starts)
        tokens = [count_tokens_approximately([message]) for message in prompt]
        ours = [is_memory(message) for message in prompt]
        parts = list(zip(tokens, known, ours, strict=True))
        return Served(
            sum(count for count, _, memory in parts if not memory),
            sum(count for count, hit, memory in parts if hit and not memory),
            sum(count for count, _, memory in parts if memory),
            sum(count for count, hit, memory in parts if hit and memory),
        )


def served(prompts: Sequence[Sequence[BaseMessage]]) -> Served:
    """What a cache that never forgets serves of prompts that are sent one after the other."""
    cache = PrefixCache()
    found = [cache.ask(prompt) for prompt in prompts]
    return Served(*map(sum, zip(*found, strict=True)))


def wire(message: BaseMessage) -> str:
    """What of a message a provider sees: everything but its id here."""
    plain: dict[str, Any] = message_to_dict(message)
    kept = {name: plain["data"].get(name) for name in ("content", "tool_calls", "tool_call_id")}
    return json.dumps([plain["type"], kept], ensure_ascii=False, sort_keys=True)


def is_memory(message: BaseMessage) -> bool:
    """Whether a message stands in a prompt only to show memories."""
    return message.id is not None and message.id.startswith(MEMORY_ID)
