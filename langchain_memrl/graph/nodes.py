"""The steps of the loop. Each may run more than once; every effect happens once.

`retrieve` fixes the episode id; `update_q` and `write` go through the ledger of the bank. Nothing
has an effect before `interrupt`.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.errors import GraphBubbleUp
from langgraph.types import interrupt

from langchain_memrl.config import LearningConfig
from langchain_memrl.errors import (
    MemoryNotFoundError,
    RewardConflictError,
    RewardError,
    WriteConflictError,
)
from langchain_memrl.evaluators import NO_STREAM, human_verdict, settle
from langchain_memrl.graph.agent import Agent, with_ids
from langchain_memrl.graph.episodes import (
    attempt_of,
    derive_episode_id,
    emit,
    episode_of,
    held_of,
    memory_of,
    question_of,
    warn_without_checkpointer,
    why_raw,
)
from langchain_memrl.graph.state import MemRLState
from langchain_memrl.learner import Learner, trajectory_text
from langchain_memrl.rendering import fit
from langchain_memrl.retriever import MemRLRetriever
from langchain_memrl.types import Episode, Memory, Recall, Reinforcement, ShownMemory, Verdict

Update = dict[str, Any]


class Nodes:
    """The six steps over one retriever, one agent and one learner."""

    def __init__(
        self,
        agent: Agent,
        retriever: MemRLRetriever,
        learner: Learner,
        *,
        learn: bool,
        write: bool,
    ) -> None:
        self._agent = agent
        self._retriever = retriever
        self._learner = learner
        self._memory = retriever.memory
        self._learn, self._write = learn, write

    def runnables(self) -> dict[str, Runnable[MemRLState, Update]]:
        """The steps by name, each sync and async; no token of a judge or summariser streams."""
        evaluate = RunnableLambda(self.evaluate, self.aevaluate, name="evaluate")
        if self._learner.evaluator == "human":
            evaluate = RunnableLambda(self.ask_human, name="evaluate")
        summarize = RunnableLambda(self.summarize, self.asummarize, name="summarize")
        return {
            "retrieve": RunnableLambda(self.retrieve, self.aretrieve, name="retrieve"),
            "generate": RunnableLambda(self.generate, self.agenerate, name="generate"),
            "evaluate": evaluate.with_config(tags=[NO_STREAM]),
            "update_q": RunnableLambda(self.update_q, self.aupdate_q, name="update_q"),
            "summarize": summarize.with_config(tags=[NO_STREAM]),
            "write": RunnableLambda(self.write, self.awrite, name="write"),
        }

    # --- retrieve: recall, render, record exactly what reaches the prompt -----------------------

    def retrieve(self, state: MemRLState, config: RunnableConfig) -> Update:
        """Recall memories for the task and start its episode."""
        task, arguments = self._request(state, config)
        recall = self._memory.recall(task, record=False, **arguments)
        update, shown = self._exposed(recall)
        if self._learn:
            self._memory.record(recall, shown)
        return update

    async def aretrieve(self, state: MemRLState, config: RunnableConfig) -> Update:
        """The same, awaited."""
        task, arguments = self._request(state, config)
        recall = await self._memory.arecall(task, record=False, **arguments)
        update, shown = self._exposed(recall)
        if self._learn:
            await self._memory.arecord(recall, shown)
        return update

    def _request(self, state: MemRLState, config: RunnableConfig) -> tuple[str, dict[str, Any]]:
        task = self._learner.task(state)
        arguments = self._retriever.recall_arguments(config)
        if arguments["episode_id"] is None:
            arguments["episode_id"] = derive_episode_id(state, task)
        return task, arguments

    def _exposed(self, recall: Recall) -> tuple[Update, list[str]]:
        """What fits into the prompt, and a state without anything of an earlier turn."""
        memories, cuts = fit(recall, self._learner.max_memory_tokens)
        shown = [memory.id for memory in memories]
        emit(
            "retrieved",
            recall.episode_id,
            ids=shown,
            similarity_max=recall.similarity_max,
            explored=recall.explored,
            cut=[cut._asdict() for cut in cuts],
        )
        update = {
            "episode_id": recall.episode_id,
            "namespace": recall.namespace,
            "intent": recall.intent,
            "memories": [asdict(memory) for memory in memories],
            "reward": None,
            "outcome": "unknown",
            "trajectory": "",
            "answer": "",
            "lesson": None,
            "memory_id": None,
        }
        return update, shown

    # --- generate: the agent acts, with the memories in its prompt ------------------------------

    def generate(self, state: MemRLState, config: RunnableConfig) -> Update:
        """Let the agent act."""
        return self._acted(state, self._agent.invoke(self._prompt(state), config))

    async def agenerate(self, state: MemRLState, config: RunnableConfig) -> Update:
        """The same, awaited."""
        return self._acted(state, await self._agent.ainvoke(self._prompt(state), config))

    def _prompt(self, state: MemRLState) -> list[BaseMessage]:
        memories = [ShownMemory(**values) for values in state["memories"]]
        conversation = state["messages"]
        prompt = self._learner.prompt(conversation, memories)
        return with_ids(prompt, conversation, state["episode_id"])

    def _acted(self, state: MemRLState, added: Sequence[BaseMessage]) -> Update:
        answers = [message for message in added if isinstance(message, AIMessage)]
        emit("generated", state["episode_id"], messages=len(added))
        return {
            "messages": list(added),
            "trajectory": trajectory_text(added),
            "answer": str(answers[-1].text) if answers else "",
        }

    # --- evaluate: no effect, so it may run again -----------------------------------------------

    def evaluate(self, state: MemRLState) -> Update:
        """Judge the answer."""
        return self._judged(state, self._learner.judge(state))

    async def aevaluate(self, state: MemRLState) -> Update:
        """The same, awaited."""
        return self._judged(state, await self._learner.ajudge(state))

    def ask_human(self, state: MemRLState) -> Update:
        """Wait for a person's reward; an unusable reply is asked for again, with the reason."""
        question = question_of(state)
        warn_without_checkpointer()
        while True:
            reply = interrupt(question)
            try:
                verdict = settle(human_verdict(reply), self._learner.learning())
            except RewardError as error:
                question = {**question, "error": str(error)}
            else:
                return self._judged(state, verdict)

    def _judged(self, state: MemRLState, verdict: Verdict) -> Update:
        emit(
            "evaluated",
            state["episode_id"],
            reward=verdict.reward,
            outcome=verdict.outcome,
            reason=verdict.reason,
        )
        return {"reward": verdict.reward, "outcome": verdict.outcome}

    # --- update_q: reward what was shown, once; without a reward hold the answer ----------------

    def update_q(self, state: MemRLState) -> Update:
        """Move Q of what was shown, or keep the episode open."""
        episode_id, scope = state["episode_id"], Update(namespace=state["namespace"])
        try:
            if state["reward"] is not None:
                reward = state["reward"]
                return self._credited(self._memory.reinforce(episode_id, reward=reward, **scope))
            if self._write:
                self._memory.hold(episode_id, **held_of(state), **scope)
            held = True
        except (RewardConflictError, WriteConflictError):
            held = False
        episode = self._memory.episode(episode_id, **scope)
        return self._kept(held, episode, self._learner.learning())

    async def aupdate_q(self, state: MemRLState) -> Update:
        """The same, awaited."""
        episode_id, scope = state["episode_id"], Update(namespace=state["namespace"])
        try:
            if state["reward"] is not None:
                reward = state["reward"]
                result = await self._memory.areinforce(episode_id, reward=reward, **scope)
                return self._credited(result)
            if self._write:
                await self._memory.ahold(episode_id, **held_of(state), **scope)
            held = True
        except (RewardConflictError, WriteConflictError):
            held = False
        episode = await self._memory.aepisode(episode_id, **scope)
        return self._kept(held, episode, await self._learner.alearning())

    def _credited(self, result: Reinforcement) -> Update:
        emit(
            "q_updated",
            result.episode_id,
            reward=result.reward,
            applied=result.applied,
            credits=[asdict(credit) for credit in result.credits],
            skipped=list(result.skipped),
        )
        if result.memory_id is not None and not result.applied:
            emit("already_learned", result.episode_id, reward=result.reward)
        return {"memory_id": result.memory_id}

    def _kept(self, held: bool, episode: Episode, learning: LearningConfig) -> Update:
        """The answer waits for its reward, or what an earlier run of this episode got stands."""
        if held and episode.reward is None:
            emit("held", episode.episode_id)
            return {"reward": None}
        return {**self._stands(episode), "outcome": learning.outcome(episode.reward)}

    def _stands(self, episode: Episode) -> Update:
        """The first reward and the first memory of an episode stand."""
        emit("already_learned", episode.episode_id, reward=episode.reward)
        return {"reward": episode.reward, "memory_id": episode.memory_id}

    # --- summarize: a lesson, or None; a failing summariser loses nothing -----------------------

    def summarize(self, state: MemRLState) -> Update:
        """Have the lesson written, unless the episode has its memory already."""
        if state["memory_id"]:
            return {}
        try:
            return self._summarized(state, self._learner.lesson(attempt_of(state)))
        except GraphBubbleUp:
            raise
        except Exception as error:  # whatever it was, the episode is kept, raw and marked
            return self._summarized(state, None, error)

    async def asummarize(self, state: MemRLState) -> Update:
        """The same, awaited."""
        if state["memory_id"]:
            return {}
        try:
            return self._summarized(state, await self._learner.alesson(attempt_of(state)))
        except GraphBubbleUp:
            raise
        except Exception as error:  # whatever it was, the episode is kept, raw and marked
            return self._summarized(state, None, error)

    def _summarized(
        self, state: MemRLState, lesson: str | None, error: Exception | None = None
    ) -> Update:
        reason = None if error is None else why_raw(error, state["episode_id"])
        emit("summarized", state["episode_id"], raw=lesson is None, error=reason)
        return {"lesson": lesson}

    # --- write: one memory per episode, success and failure alike -------------------------------

    def write(self, state: MemRLState) -> Update:
        """Write the episode's memory."""
        if state["memory_id"]:
            return {}
        try:
            return self._written(self._memory.remember(**memory_of(state)))
        except (WriteConflictError, MemoryNotFoundError):
            return self._stands(self._memory.episode(**episode_of(state)))

    async def awrite(self, state: MemRLState) -> Update:
        """The same, awaited."""
        if state["memory_id"]:
            return {}
        try:
            return self._written(await self._memory.aremember(**memory_of(state)))
        except (WriteConflictError, MemoryNotFoundError):
            return self._stands(await self._memory.aepisode(**episode_of(state)))

    def _written(self, memory: Memory) -> Update:
        emit("written", memory.episode_id, memory_id=memory.id, outcome=memory.outcome)
        return {"memory_id": memory.id}
