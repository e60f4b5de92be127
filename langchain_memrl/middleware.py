"""`MemRLMiddleware`: the learning loop around LangChain's `create_agent` (extra `agents`)."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Literal, NotRequired

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.types import Command
from typing_extensions import TypedDict

from langchain_memrl.errors import ConfigError
from langchain_memrl.evaluators import NO_STREAM, Evaluator
from langchain_memrl.learner import Learner, State
from langchain_memrl.loop import LoopSteps
from langchain_memrl.loop.records import logger
from langchain_memrl.rendering import Render
from langchain_memrl.retriever import MemRLRetriever
from langchain_memrl.summarizers import Summarizer

try:
    from langchain.agents.middleware import (
        AgentMiddleware,
        AgentState,
        ExtendedModelResponse,
        ModelRequest,
        ModelResponse,
    )
    from langchain.agents.middleware.types import OmitFromInput, PrivateStateAttr
except ImportError as error:
    raise ImportError(
        'MemRLMiddleware needs langchain: pip install "langchain-memrl[agents]"'
    ) from error

__all__ = ["MemRLMiddleware"]

Update = dict[str, Any]


class MemRLMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Lets an agent learn from its runs: recall before it acts, reward and memory after it.

    Memories enter every prompt of a run, the same ones and before the task, and never the
    conversation itself. After the run the evaluator's reward moves the Q of what was shown, and
    the run is written as a memory, each once, also after a crash, a resume or time travel.

    Usage:
        ```python
        from langchain.agents import create_agent
        from langchain_memrl.middleware import MemRLMiddleware

        middleware = MemRLMiddleware(retriever, evaluator=tests_pass)
        agent = create_agent("openai:...", tools=[...], middleware=[middleware])
        result = agent.invoke({"messages": [("user", "Fix the flaky test")]})
        result["messages"][-1], result["memrl_episode_id"], result["memrl_reward"]
        ```

    A run that dies in the middle, by a model's error or the recursion limit, stays an open episode:
    `memory.reinforce(episode_id, reward=...)` closes it. Its id is the caller's
    (`config["metadata"]["memrl_episode_id"]`), or found in the thread's state under
    `memrl_episode_id` and in the event `memrl.retrieved`. A run that ends before a model was asked
    learns nothing.

    Put it first in the list: then no other middleware ends a run before its recall, and the
    evaluator sees what all others leave behind. One object may serve many agents, threads and
    users at once.

    Args:
        retriever: Recalls the memories; its bank is where the loop learns. With
            `namespace=FromConfig(...)` each request learns in its own namespace.
        evaluator: Judges a finished run; see `evaluators.py`. It gets the agent's whole state
            (`structured_response`, keys of your own) with `intent`, `trajectory` and `episode_id`.
            `"human"` waits for a person with `interrupt` and needs a checkpointer. None from it
            leaves the episode open.
        summarizer: Writes the lesson, for example `LLMSummarizer(model)`; by default the agent's
            answer is kept verbatim.
        learn: False freezes the bank: recall only.
        write: False moves Q but writes no memories: a fixed set of notes learns its ranking.
        intent: Finds the task text in the state; the last human message by default.
        render: `"fenced"`, `"turns"`, or a callable `(messages, memories) -> prompt` that gets the
            conversation up to the task.
        max_memory_tokens: Budget of the memories in one prompt.
        name: Begins the names of the nodes, of the state's keys and of the caller's key for the
            episode id. Give another one to a second middleware in the same agent, or in an agent
            that is called by this one.

    Raises:
        ConfigError: A setting is unusable.
    """

    def __init__(
        self,
        retriever: MemRLRetriever,
        *,
        evaluator: Evaluator | Literal["human"],
        summarizer: Summarizer | None = None,
        learn: bool = True,
        write: bool = True,
        intent: Callable[[Any], str] | None = None,
        render: Render = "fenced",
        max_memory_tokens: int = 1500,
        name: str = "memrl",
    ) -> None:
        super().__init__()
        if not isinstance(retriever, MemRLRetriever):
            raise ConfigError(
                f"retriever is a {type(retriever).__name__}; expected a MemRLRetriever"
            )
        if not isinstance(name, str) or not name.isidentifier():
            raise ConfigError(
                f"name is {name!r}; expected letters, digits and _, as in a variable's name"
            )
        self._learner = Learner(
            retriever.memory,
            evaluator=evaluator,
            summarizer=summarizer,
            intent=intent,
            render=render,
            max_memory_tokens=max_memory_tokens,
        )
        self._steps = LoopSteps(retriever, self._learner, learn=learn, write=write, name=name)
        self._learn, self._write = learn, write
        self._name = name
        self._run, self._asked = f"{name}_run", f"{name}_asked"
        self._episode_id, self._reward = f"{name}_episode_id", f"{name}_reward"
        self._learning: Runnable[Update, Update] = RunnableLambda(
            self._learn_from, self._alearn_from, name=f"{name}.learn"
        ).with_config(tags=[NO_STREAM])  # no token of a judge or summariser streams
        self.state_schema = self._schema()

    @property
    def name(self) -> str:
        """The name given to the constructor."""
        return self._name

    def _schema(self) -> Any:
        """The keys of the agent's state: an episode's id and reward for all, the rest for us."""
        keys = {
            self._episode_id: NotRequired[Annotated[str | None, OmitFromInput]],
            self._reward: NotRequired[Annotated[float | None, OmitFromInput]],
            self._run: NotRequired[Annotated[dict[str, Any] | None, PrivateStateAttr]],
            self._asked: NotRequired[Annotated[str | None, PrivateStateAttr]],
        }
        return TypedDict("MemRLState", keys)  # type: ignore[operator]

    # --- before the agent: recall, once for the whole run ---------------------------------------

    def before_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> Update:
        """Recall memories for the task and start its episode."""
        return self._started(state, self._steps.retrieve(state, get_config()))

    async def abefore_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> Update:
        """The same, awaited."""
        return self._started(state, await self._steps.aretrieve(state, get_config()))

    def _started(self, state: State, turn: Update) -> Update:
        messages = state["messages"]
        place = {"task_id": _last_human_id(messages), "last_id": messages[-1].id}
        return {
            self._episode_id: turn["episode_id"],
            self._reward: None,
            self._run: {**turn, **place},
            self._asked: None,
        }

    # --- around each model call: the memories stand before the task -----------------------------

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Ask the model with the memories in its prompt."""
        return self._noted(request, handler(self._with_memories(request)))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """The same, awaited."""
        return self._noted(request, await handler(self._with_memories(request)))

    def _with_memories(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """Everything before the task and after it stays as it is, in every call of a run."""
        state: State = request.state
        run = state.get(self._run)
        if not run:
            return request
        messages = request.messages
        end = _place_after(messages, run["task_id"]) or len(messages)
        prompt: list[Any] = self._learner.prompt(messages[:end], self._steps.shown(run))
        return request.override(messages=[*prompt, *messages[end:]])

    def _noted(
        self, request: ModelRequest[Any], response: ModelResponse[Any]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Remember that this run asked a model, and for which message."""
        state: State = request.state
        asked = _last_human_id(state["messages"])
        if not state.get(self._run) or state.get(self._asked) == asked:
            return response
        return ExtendedModelResponse(response, Command(update={self._asked: asked}))

    # --- after the agent: evaluate, reinforce, write --------------------------------------------

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> Update:
        """Judge the run, move Q, write the memory."""
        turn = self._finished(state)
        return self._ended(turn and self._learning.invoke(turn, get_config()))

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> Update:
        """The same, awaited."""
        turn = self._finished(state)
        return self._ended(turn and await self._learning.ainvoke(turn, get_config()))

    def _finished(self, state: State) -> Update | None:
        """The episode and what the agent did; None where no model was asked in this run."""
        run, messages = state.get(self._run), state["messages"]
        if not run or state.get(self._asked) != _last_human_id(messages):
            logger.info("%s: no model was asked in this run, nothing is learned", self._name)
            return None
        added = messages[_place_after(messages, run["last_id"]) :]
        return {**state, **run, **self._steps.acted(added)}

    def _learn_from(self, turn: Update) -> Update:
        turn = turn | self._steps.evaluate(turn)
        if self._learn:
            turn = turn | self._steps.update_q(turn)
            if self._write and turn["reward"] is not None:
                turn = turn | self._steps.summarize(turn)
                turn = turn | self._steps.write(turn)
        return turn

    async def _alearn_from(self, turn: Update) -> Update:
        turn = turn | await self._steps.aevaluate(turn)
        if self._learn:
            turn = turn | await self._steps.aupdate_q(turn)
            if self._write and turn["reward"] is not None:
                turn = turn | await self._steps.asummarize(turn)
                turn = turn | await self._steps.awrite(turn)
        return turn

    def _ended(self, turn: Update | None) -> Update:
        """The state at the end of a run: nothing is left for a later one."""
        return {
            self._episode_id: turn and turn["episode_id"],
            self._reward: turn and turn["reward"],
            self._run: None,
            self._asked: None,
        }


def _last_human_id(messages: Sequence[BaseMessage]) -> str:
    """The id of the last human message; empty where there is none."""
    return next((m.id or "" for m in reversed(messages) if isinstance(m, HumanMessage)), "")


def _place_after(messages: Sequence[BaseMessage], id: str | None) -> int:
    """The place behind the message with this id; 0 where it is gone."""
    places = (place for place, message in enumerate(messages, 1) if id and message.id == id)
    return next(places, 0)
