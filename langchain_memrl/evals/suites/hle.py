"""Humanity's Last Exam, from the user's own file; nothing of an item is written down.

Items with an image are left out, which the report says.
An answer is right if a rule says so: the letter of a choice, or the same text or number. Where no
rule can tell, a judge decides: the model itself, or another one that `MEMRL_JUDGE_MODEL` names. A
judge that fails, or says nothing readable, leaves the try without a result.

The exam is gated and asks not to be spread, so banks are in memory and records hold ids, verdicts
and counts: no question, no answer, no reply, no words of an error. The model and the judge see the
questions, of course; take ones that do not keep them.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from langchain_memrl.config import PRESETS
from langchain_memrl.errors import ConfigError, MemRLError
from langchain_memrl.evals.benchmarks.agents import MODEL, SCRIPTED, Agent, check_agent
from langchain_memrl.evals.benchmarks.benchmark import (
    BATCH,
    EPOCHS,
    MEMORY_TOKENS,
    Benchmark,
    about_agent,
    choose_agent,
    drawn,
    own_prompts,
    prompts_digest,
    unprepared,
)
from langchain_memrl.evals.benchmarks.exams.attempt import ExamAttempt
from langchain_memrl.evals.benchmarks.exams.conversing import ConversingInExam
from langchain_memrl.evals.benchmarks.exams.grading import JudgeError, ask_judge, by_rule
from langchain_memrl.evals.benchmarks.exams.items import WHERE, Item, Items, load_items
from langchain_memrl.evals.benchmarks.exams.prompts import PLACES, PROMPTS
from langchain_memrl.evals.benchmarks.exams.script import MEANINGLESS, ExamScript
from langchain_memrl.evals.environment import (
    Environment,
    Setup,
    Situation,
    Suite,
    Task,
    Trial,
    Typical,
)
from langchain_memrl.rendering import count_tokens

PRESET = PRESETS["hle"]
JUDGE_MODEL, JUDGE_URL = "MEMRL_JUDGE_MODEL", "MEMRL_JUDGE_BASE_URL"
"""Environment variables: another model that judges, and where its OpenAI-like server is."""
REPLY_TOKENS = 1000
"""Typical length of a reply."""
SECONDS = {"scripted": 0.001, "model": 30.0}
"""Typical, per try."""
SILENT = "what it said is not kept, as it might repeat a question"


class Exam(Benchmark[ExamAttempt]):
    """The questions.

    Args:
        setup: The seed and the number of questions, a draw from all of them.
        items: All of them.
        agent: Who answers.
        judge: A model that judges; None: only rules do.
        prompts: The texts of `exams.prompts`.
    """

    def __init__(
        self,
        setup: Setup,
        items: Sequence[Item],
        agent: Agent[ExamAttempt],
        judge: Any,
        prompts: Mapping[str, str],
    ) -> None:
        self._known = {item.id: item for item in drawn(items, setup)}
        self._judge = judge
        self._prompts = prompts
        super().__init__(
            [Task(one.id, one.question) for one in self._known.values()], agent, PRESET
        )

    @contextmanager
    def attempt(self, situation: Situation) -> Iterator[ExamAttempt]:
        """A try: one reply."""
        item = self._known[situation.task.id]
        yield ExamAttempt(instruction=item.question, steps=1, item=item)

    def solved(self, attempt: ExamAttempt) -> bool:
        """Whether the answer is right, by a rule or by the judge."""
        found = by_rule(attempt.item, attempt.answer or "")
        if found is not None or self._judge is None or not attempt.reply.strip():
            return found is True
        right, said = ask_judge(self._judge, self._prompts, attempt.item, attempt.reply)
        attempt.prompt_tokens += said.prompt_tokens
        attempt.completion_tokens += said.completion_tokens
        attempt.calls += 1
        return right

    def act(self, situation: Situation) -> Trial:
        """Try a question once, and tell nothing of it but whether it was solved.

        Raises:
            MemRLError: The model or the judge failed.
        """
        try:
            return replace(super().act(situation), answer="")
        except JudgeError:
            raise
        except Exception as error:
            kind = type(error).__name__
        raise MemRLError(f"{kind}; {SILENT}")


@contextmanager
def prepare(setup: Setup) -> Iterator[Suite]:
    """Read the items, and give the suite."""
    agent = check_agent(setup.agent)
    if agent != MODEL and SCRIPTED[agent].learns:
        raise ConfigError(MEANINGLESS.format(agent=agent))
    if setup.steps is not None or setup.dsn or setup.root is not None:
        raise ConfigError("hle takes no --steps, --dsn or --root: an agent has one reply")
    data = load_items(setup.data)
    prompts = own_prompts(setup.prompts, PROMPTS, PLACES)
    other = _other_judge() if agent == MODEL else None

    def make(chosen: Setup) -> Environment:
        who = choose_agent(agent, chosen, ExamScript(), ConversingInExam(chosen.model, prompts))
        judge = (other or chosen.model) if agent == MODEL else None
        return Exam(chosen, data.items, who, judge, prompts)

    about = about_agent(agent)
    yield replace(
        SUITE,
        make=make,
        settings={
            "agent": agent,
            "data": dict(data.hashes),
            "embeddings": "wordllama",
            "judge": _judge_name(agent),
            "pictured": data.pictured,
            "prompts": prompts_digest(prompts),
            "steps": 1,
        },
        typical=_typical(agent, data.items, prompts),
        **{**about, "note": ". ".join(filter(None, [about["note"], _left_out(data)]))},
    )


def _left_out(data: Items) -> str:
    if not data.pictured:
        return ""
    every = data.pictured + len(data.items)
    return f"{data.pictured} of {every} items have an image and are left out"


def _judge_name(agent: str) -> str:
    return "none" if agent != MODEL else os.environ.get(JUDGE_MODEL, "the model itself")


def _other_judge() -> Any:
    """The model that judges, where it is not the one that answers."""
    name = os.environ.get(JUDGE_MODEL, "")
    if not name:
        return None
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model=name, base_url=os.environ.get(JUDGE_URL) or None, temperature=0.0)


def _typical(agent: str, items: Sequence[Item], prompts: Mapping[str, str]) -> Typical:
    """What a try costs: the question with the memories, a judge, and a lesson."""
    if agent != MODEL:
        return Typical(0, 0, SECONDS["scripted"])
    asked = sum(count_tokens(item.question) for item in items) // len(items)
    opening = count_tokens("".join(prompts.values())) + asked
    sent = opening + PRESET.k * MEMORY_TOKENS + 2 * (asked + REPLY_TOKENS)
    return Typical(sent, REPLY_TOKENS + 2 * MEMORY_TOKENS, SECONDS["model"])


SUITE = Suite(
    "hle",
    unprepared(WHERE),
    epochs=EPOCHS,
    batch=BATCH,
    in_memory=True,
    asks_model=True,
    model_settings={"max_tokens": 4096},
    needs_data=WHERE,
    prepare=prepare,
    about={"": "expert questions (Humanity's Last Exam)"},
)
