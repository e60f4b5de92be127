"""Whether an answer is right: by rule where a rule can tell, else by a judge."""

import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import HumanMessage

from langchain_memrl.errors import MemRLError
from langchain_memrl.evals.asking import Reply, say
from langchain_memrl.evals.benchmarks.exams.items import Item

ANSWER = re.compile(r"^[\s*_#>]*(?:final\s+)?answer[\s*_]*[:=][\s*_]*(.+)$", re.I | re.M)
LETTER = re.compile(r"^[(\[{]?([A-Z])[)\]}]?(?:[.:,)\s]|$)")
WRAPPED = re.compile(r"^(?:\$+(.*?)\$+|\\\((.*?)\\\)|\\boxed\{(.*)\}|\*+(.*?)\*+|`+(.*?)`+)$", re.S)
VERDICT = re.compile(r"verdict[\s*_]*[:=][\s*_]*(right|wrong)\b", re.I)


class JudgeError(MemRLError):
    """A judge gave no readable verdict. That says nothing about the answer."""


def read_answer(reply: str) -> str:
    """The last line `Answer: ...` of a reply; empty where there is none."""
    found = ANSWER.findall(re.split(r"</think>", reply)[-1])
    return found[-1].strip() if found else ""


def by_rule(item: Item, answer: str) -> bool | None:
    """What a rule says of an answer; None where it cannot tell, as two texts may mean the same."""
    if item.chosen:
        right, letter = LETTER.match(item.answer), LETTER.match(normalised(answer, fold=False))
        return right[1] == letter[1] if right and letter else None
    return same(answer, item.answer) or None


def same(answer: str, right: str) -> bool:
    """Whether two answers are equal but for case, blanks, marks and how a number is written."""
    left, other = normalised(answer), normalised(right)
    if left == other and left:
        return True
    numbers = [_number(left), _number(other)]
    return None not in numbers and math.isclose(numbers[0] or 0, numbers[1] or 0, rel_tol=1e-9)


def normalised(answer: str, *, fold: bool = True) -> str:
    """An answer without what does not count."""
    text = unicodedata.normalize("NFKC", answer).strip().rstrip(".;").strip()
    while match := WRAPPED.match(text):
        text = next(part for part in match.groups() if part is not None).strip()
    text = " ".join(text.split())
    return text.casefold() if fold else text


def ask_judge(model: Any, prompts: Mapping[str, str], item: Item, reply: str) -> tuple[bool, Reply]:
    """Whether a judge finds that a reply comes to the right answer.

    Raises:
        JudgeError: It does not say, in a way that can be read. Its words are not repeated.
    """
    asked = prompts["JUDGE"].format(question=item.question, right=item.answer, reply=reply)
    said = say(model, [HumanMessage(asked)])
    found = VERDICT.findall(said.text)
    if not found:
        raise JudgeError("the judge gave no readable verdict: no line Verdict: right or wrong")
    return found[-1].lower() == "right", said


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", "").replace(" ", ""))
    except ValueError:
        return None
