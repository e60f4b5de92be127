"""One try at a question: the reply, and what the grade was."""

from dataclasses import dataclass

from langchain_memrl.evals.benchmarks.attempts import Attempt, cut
from langchain_memrl.evals.benchmarks.exams.items import Item

REPLY_KEPT = 4000
"""Characters of a reply that a memory keeps."""


@dataclass(slots=True, kw_only=True)
class ExamAttempt(Attempt):
    """One try. Its answer is what the reply's last line says.

    Attributes:
        item: The question.
        reply: The whole reply.
    """

    item: Item
    reply: str = ""

    def done(self) -> str:
        """The reply."""
        return cut(self.reply, REPLY_KEPT)

    def as_text(self) -> str:
        """What a memory keeps of it, in memory only: the reply."""
        return self.done()
