"""One try at a task: what it may still do, what it came to, what it cost, and all that as text."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

KEPT = 400
"""Characters of what an environment showed that a memory keeps."""


class StepLimitError(Exception):
    """An agent wanted one step more than it has."""


@dataclass(slots=True, kw_only=True)
class Attempt(ABC):
    """One try, while it lasts and afterwards.

    Attributes:
        instruction: What is asked.
        steps: The most steps.
        taken: The steps so far.
        answer: What was committed in the end; None: nothing.
        unread: A reply that no step could be read from.
        correction: What somebody said afterwards.
        prompt_tokens: Tokens sent to a model, over all calls.
        completion_tokens: Tokens received.
        calls: Calls of a model.
    """

    instruction: str
    steps: int
    taken: int = 0
    answer: str | None = None
    unread: str = ""
    correction: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0

    def step(self) -> None:
        """Take a step.

        Raises:
            StepLimitError: There is none left.
        """
        if self.taken >= self.steps:
            raise StepLimitError
        self.taken += 1

    def commit(self, answer: str) -> None:
        """Commit an answer; that is the last step.

        Raises:
            StepLimitError: There is no step left.
        """
        self.step()
        self.answer = answer

    def as_text(self) -> str:
        """What a memory keeps of it: what was done, how it ended, what was said afterwards."""
        answer = "none" if self.answer is None else cut(self.answer, KEPT)
        unread = f"No action could be read in: {cut(self.unread, KEPT)}" if self.unread else ""
        return "\n".join(filter(None, [self.done(), unread, f"Answer: {answer}", self.correction]))

    @abstractmethod
    def done(self) -> str:
        """What was done, in lines."""


def cut(text: str, limit: int) -> str:
    """The beginning of a text, and how much is missing."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]} [... {len(text) - limit} characters more]"
