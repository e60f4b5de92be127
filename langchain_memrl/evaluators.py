"""How an answer is judged: answer -> `Verdict`.

An evaluator is any callable, sync or async, that takes the state of the graph or the agent and
returns a reward in the bank's range, a bool, None ("no signal yet") or a `Verdict`. The state has
`messages` (the whole conversation, the agent's answer last), `intent`, `trajectory` and
`episode_id`.

```python
def tests_pass(state) -> bool:
    return run_tests(state["messages"][-1].text).ok
```

The library never runs what a model wrote. An evaluator that does should use a sandbox.
"""

import inspect
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from langchain_memrl import prompts
from langchain_memrl.config import LearningConfig
from langchain_memrl.errors import RewardError, VerdictError
from langchain_memrl.fencing import fence_of
from langchain_memrl.inputs import told
from langchain_memrl.types import Outcome, Verdict

State = Mapping[str, Any]
Judgement = Verdict | float | bool | None
Evaluator = Callable[[Any], Judgement | Awaitable[Judgement]]
Reference = str | Callable[[Any], str]

NO_STREAM = "nostream"
"""LangGraph leaves model calls with this tag out of its message stream."""


def answer_text(state: State) -> str:
    """The text of the agent's last message; empty where there is none."""
    messages = state.get("messages") or []
    return str(messages[-1].text) if messages and isinstance(messages[-1], AIMessage) else ""


def _expected(reference: Reference, state: State) -> str:
    return reference(state) if callable(reference) else reference


def exact_match(reference: Reference) -> Callable[[State], Verdict]:
    """Success if the answer equals the reference, apart from outer white space.

    Args:
        reference: The right answer, or a callable that finds it from the state.
    """

    def evaluate(state: State) -> Verdict:
        found, expected = answer_text(state).strip(), _expected(reference, state).strip()
        same = found == expected
        return Verdict(same, reason="equal" if same else "not equal to the reference")

    return evaluate


def contains(reference: Reference, *, ignore_case: bool = True) -> Callable[[State], Verdict]:
    """Success if the reference occurs in the answer.

    Args:
        reference: The text to find, or a callable that finds it from the state. Not blank.
        ignore_case: Whether upper and lower case count as equal.
    """

    def evaluate(state: State) -> Verdict:
        found, expected = answer_text(state), _expected(reference, state).strip()
        if not expected:
            raise VerdictError("contains() got a blank reference; every answer would contain it")
        if ignore_case:
            found, expected = found.casefold(), expected.casefold()
        hit = expected in found
        return Verdict(hit, reason="found" if hit else "the reference is not in the answer")

    return evaluate


class Grade(BaseModel):
    """The judge's reply."""

    reason: str = Field(description="One or two sentences: why this score.")
    score: float = Field(ge=0, le=1, description="0 not at all, 1 completely.")


class LLMJudge:
    """A chat model that grades the answer from 0 to 1, by structured output.

    Task and answer are quoted, inside a fence that their authors cannot know. The score is mapped
    onto the bank's reward range. A reply that cannot be read raises `VerdictError`: a broken judge
    is no failure of the task. Its tokens never appear in the graph's message stream.

    Args:
        model: Any chat model with structured output.
        rubric: What a perfect answer does.
        reference: A right answer to compare with, or a callable that finds it from the state.
    """

    def __init__(
        self,
        model: BaseChatModel,
        *,
        rubric: str = prompts.JUDGE_RUBRIC,
        reference: Reference | None = None,
    ) -> None:
        self._judge = model.with_structured_output(Grade, include_raw=True)
        self._rubric = rubric
        self._reference = reference
        self._key = secrets.token_bytes(32)

    def __call__(self, state: State) -> Verdict:
        """Judge one answer."""
        return self._verdict(self._judge.invoke(self._prompt(state), {"tags": [NO_STREAM]}))

    async def acall(self, state: State) -> Verdict:
        """Judge one answer, awaited."""
        return self._verdict(await self._judge.ainvoke(self._prompt(state), {"tags": [NO_STREAM]}))

    def _prompt(self, state: State) -> list[BaseMessage]:
        task, answer = state.get("intent", ""), answer_text(state)
        record = prompts.JUDGE_RECORD.format(task=task, answer=answer)
        fence = fence_of("record", record, self._key)
        intro = prompts.JUDGE_INTRO.format(rubric=self._rubric, fence=fence)
        text = f"{intro}\n{fence}\n{record}\n{fence}"
        if self._reference is not None:
            reference = _expected(self._reference, state)
            text += prompts.JUDGE_REFERENCE.format(reference=reference)
        return [SystemMessage(prompts.JUDGE_SYSTEM), HumanMessage(text)]

    @staticmethod
    def _verdict(reply: Any) -> Verdict:
        grade = reply["parsed"]
        if not isinstance(grade, Grade):
            raise VerdictError(
                f"the judge's reply could not be read ({_problem(reply)}); "
                "expected a score from 0 to 1 and a reason: use a model with structured output"
            ) from reply["parsing_error"]
        return Verdict(grade.score, reason=grade.reason, scale="unit")


def _problem(reply: Mapping[str, Any]) -> str:
    """Why a structured reply has no grade, without a word of it."""
    error = reply["parsing_error"]
    return "no call of the grading tool" if error is None else type(error).__name__


def from_openevals(
    evaluator: Callable[..., Any],
    *,
    reference: Reference | None = None,
    scale: Literal["reward", "unit"] = "unit",
) -> Evaluator:
    """Use an openevals evaluator: `evaluator(inputs=, outputs=, reference_outputs=)`.

    Args:
        evaluator: Sync or async; returns `{"key", "score", "comment"}` or a list of one.
        reference: Passed as `reference_outputs`; may be found from the state.
        scale: `"unit"` maps scores from 0 to 1 onto the reward range; bools map either way.
    """

    def arguments(state: State) -> dict[str, Any]:
        values = {"inputs": state.get("intent", ""), "outputs": answer_text(state)}
        if reference is not None:
            values["reference_outputs"] = _expected(reference, state)
        return values

    async def awaited(result: Awaitable[Any]) -> Verdict:
        return _scored(await result, scale)

    def judge(state: State) -> Verdict | Awaitable[Verdict]:
        result = evaluator(**arguments(state))
        return awaited(result) if inspect.isawaitable(result) else _scored(result, scale)

    return judge


def reward_from(
    result: Any, learning: LearningConfig, *, scale: Literal["reward", "unit"] = "unit"
) -> float | None:
    """The reward that somebody else's score means, for a later `reinforce`.

    ```python
    memory.reinforce(episode_id, reward=reward_from(feedback, memory.learning), revise=True)
    ```

    Args:
        result: LangSmith feedback or an `EvaluationResult`, an openevals result (or a list of one),
            anything else with a `score`, or a `Verdict`.
        learning: The bank's settings; they name the reward range.
        scale: `"unit"` maps scores from 0 to 1 onto the reward range; bools map either way.

    Returns:
        The reward; None where the score is None: no signal.

    Raises:
        VerdictError: There is no score.
        RewardError, RewardTypeError: The score is unusable.
    """
    verdict = result if isinstance(result, Verdict) else _scored(result, scale)
    reward: Any = settle(verdict, learning).reward
    return None if reward is None else float(reward)


def _scored(result: Any, scale: Literal["reward", "unit"]) -> Verdict:
    """The score of one result, as a mapping or as an object."""
    one = result[0] if isinstance(result, list) and len(result) == 1 else result
    fields = one if isinstance(one, Mapping) else getattr(one, "__dict__", {})
    if "score" not in fields:
        raise VerdictError(f"got {type(result).__name__}; expected one result with a score")
    return Verdict(fields["score"], reason=str(fields.get("comment") or ""), scale=scale)


def settle(judgement: Any, learning: LearningConfig) -> Verdict:
    """An evaluator's return value with the reward in the bank's range and the outcome decided.

    A bool means the configured success or failure reward; None means no signal yet.

    Raises:
        RewardError, RewardTypeError: The evaluator returned something else.
    """
    verdict = judgement if isinstance(judgement, Verdict) else Verdict(judgement)
    if verdict.outcome not in (None, *get_args(Outcome)):
        expected = f"expected one of {get_args(Outcome)}"
        raise RewardError(f"outcome is {told(verdict.outcome)}; {expected}")
    if verdict.scale not in ("reward", "unit"):
        raise RewardError(f'scale is {told(verdict.scale)}; expected "reward" or "unit"')
    value = verdict.reward
    if value is None:
        reward = None
    elif type(value).__name__ in ("bool", "bool_"):
        reward = learning.success_reward if value else learning.failure_reward
    elif verdict.scale == "unit":
        low, high = learning.reward_range
        share = LearningConfig(reward_range=(0.0, 1.0)).reward(value)
        reward = min(max(low * (1 - share) + high * share, low), high)
    else:
        reward = learning.reward(value)
    return Verdict(reward, verdict.outcome or learning.outcome(reward), verdict.reason)


def human_verdict(reply: Any) -> Verdict:
    """What a person answered to the interrupt: a number, a bool, None, or a dict with `reward`.

    Raises:
        RewardError: A dict without `reward` or with other keys than reward, outcome, reason.
    """
    if not isinstance(reply, Mapping):
        return Verdict(reply)
    unknown = set(reply) - {"reward", "outcome", "reason"}
    if unknown or "reward" not in reply:
        raise RewardError(
            f"the reply has keys {sorted(map(str, reply))}; expected reward, and optionally "
            "outcome and reason"
        )
    outcome: Outcome | None = reply.get("outcome")
    return Verdict(reply["reward"], outcome, str(reply.get("reason") or ""))
