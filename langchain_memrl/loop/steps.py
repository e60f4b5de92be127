"""What happens around an agent that acts. Each step may run more than once; every effect once.

`retrieve` fixes the episode id; `update_q` and `write` go through the ledger of the bank. Nothing
has an effect before `interrupt`.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.types import interrupt

from langchain_memrl.config import LearningConfig
from langchain_memrl.errors import (
    ConfigError,
    MemoryNotFoundError,
    RewardConflictError,
    RewardError,
    WriteConflictError,
)
from langchain_memrl.evaluators import human_verdict, settle
from langchain_memrl.learner import Learner, State, answer_of, trajectory_text
from langchain_memrl.loop.records import (
    attempt_of,
    derive_episode_id,
    emit,
    episode_of,
    held_of,
    memory_of,
    question_of,
    turn_of,
    warn_without_checkpointer,
    why_raw,
)
from langchain_memrl.rendering import fit
from langchain_memrl.retriever import MemRLRetriever
from langchain_memrl.types import Episode, Memory, Recall, Reinforcement, ShownMemory, Verdict

logger = logging.getLogger("langchain_memrl")

Update = dict[str, Any]


class LoopSteps:
    """All steps but the agent's own, over one retriever and one learner.

    A step takes the state and returns what changes in it: plain JSON values under `episode_id`,
    `namespace`, `intent`, `memories`, `trajectory`, `answer`, `reward`, `outcome`, `lesson` and
    `memory_id`.

    Args:
        retriever: Recalls the memories; its bank is where the loop learns.
        learner: The settings, and the steps that touch no memory.
        learn: False freezes the bank.
        write: False moves Q but writes no memories.
        name: Tells loops apart that run beside each other. A caller gives an episode id as
            `config["metadata"]["<name>_episode_id"]`, and on whose behalf it asks as
            `"<name>_writer"`.
    """

    def __init__(
        self,
        retriever: MemRLRetriever,
        learner: Learner,
        *,
        learn: bool,
        write: bool,
        name: str = "memrl",
    ) -> None:
        if learn and write and not retriever.memory.embedder.is_given:
            raise ConfigError(
                "the bank was opened without embeddings, so no memory can be written; open it with "
                "embeddings=..., or give write=False"
            )
        self._retriever = retriever
        self._learner = learner
        self._memory = retriever.memory
        self._writer = retriever.memory.already_redacted()  # these steps redact what they write
        self._learn, self._write = learn, write
        self._name = name

    # --- retrieve: recall, render, record exactly what reaches the prompt -----------------------

    def retrieve(self, state: State, config: RunnableConfig) -> Update:
        """Recall memories for the task and start its episode."""
        task, episode_id = self._request(state, config)
        recall = self._retriever.recall(task, config, record=False, episode_id=episode_id)
        update, shown = self._exposed(recall)
        if self._learn:
            self._memory.record(recall, shown)
        return update

    async def aretrieve(self, state: State, config: RunnableConfig) -> Update:
        """The same, awaited."""
        task, episode_id = self._request(state, config)
        recall = await self._retriever.arecall(task, config, record=False, episode_id=episode_id)
        update, shown = self._exposed(recall)
        if self._learn:
            await self._memory.arecord(recall, shown)
        return update

    def _request(self, state: State, config: RunnableConfig) -> tuple[str, str]:
        """The task, and the episode that its caller names, or that follows from where it runs."""
        task = self._learner.task(state)
        episode_id = (config.get("metadata") or {}).get(f"{self._name}_episode_id")
        if episode_id is None:
            episode_id = derive_episode_id(state.get("messages") or [], task, self._name)
        return task, episode_id

    def _exposed(self, recall: Recall) -> tuple[Update, list[str]]:
        """What fits into the prompt, and a state without anything of an earlier turn."""
        memories, cuts = fit(recall, self._learner.max_memory_tokens)
        shown = [memory.id for memory in memories]
        logger.debug("episode %s shows %d memories", recall.episode_id, len(shown))
        emit(
            "retrieved",
            recall.episode_id,
            ids=shown,
            similarity_max=recall.similarity_max,
            explored=recall.explored,
            cut=[cut._asdict() for cut in cuts],
        )
        return turn_of(recall, memories), shown

    # --- while the agent acts -------------------------------------------------------------------

    @staticmethod
    def shown(state: State) -> list[ShownMemory]:
        """What `retrieve` chose for the prompt, best first."""
        return [ShownMemory(**values) for values in state["memories"]]

    @staticmethod
    def acted(added: Sequence[BaseMessage]) -> Update:
        """The trajectory and the answer in what the agent added to the conversation."""
        return {"trajectory": trajectory_text(added), "answer": answer_of(added)}

    # --- evaluate: no effect, so it may run again -----------------------------------------------

    def evaluate(self, state: State) -> Update:
        """Judge the answer, or wait for a person's reward."""
        if self._learner.evaluator == "human":
            return self._ask_human(state)
        return self._judged(state, self._learner.judge(state))

    async def aevaluate(self, state: State) -> Update:
        """The same, awaited."""
        if self._learner.evaluator == "human":
            return await asyncio.to_thread(self._ask_human, state)
        return self._judged(state, await self._learner.ajudge(state))

    def _ask_human(self, state: State) -> Update:
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

    def _judged(self, state: State, verdict: Verdict) -> Update:
        emit(
            "evaluated",
            state["episode_id"],
            reward=verdict.reward,
            outcome=verdict.outcome,
            reason=verdict.reason,
        )
        return {"reward": verdict.reward, "outcome": verdict.outcome}

    # --- update_q: reward what was shown, once; without a reward hold the answer ----------------

    def update_q(self, state: State) -> Update:
        """Move Q of what was shown, or keep the episode open."""
        episode_id, scope = state["episode_id"], Update(namespace=state["namespace"])
        try:
            if state["reward"] is not None:
                reward = state["reward"]
                return self._credited(self._memory.reinforce(episode_id, reward=reward, **scope))
            if self._write:
                kept = held_of(self._learner.redacted(state), self._name)
                self._writer.hold(episode_id, **kept, **scope)
            held = True
        except (RewardConflictError, WriteConflictError):
            held = False
        episode = self._memory.episode(episode_id, **scope)
        return self._kept(held, episode, self._learner.learning())

    async def aupdate_q(self, state: State) -> Update:
        """The same, awaited."""
        episode_id, scope = state["episode_id"], Update(namespace=state["namespace"])
        try:
            if state["reward"] is not None:
                reward = state["reward"]
                result = await self._memory.areinforce(episode_id, reward=reward, **scope)
                return self._credited(result)
            if self._write:
                kept = held_of(await self._learner.aredacted(state), self._name)
                await self._writer.ahold(episode_id, **kept, **scope)
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

    def summarize(self, state: State) -> Update:
        """Have the lesson written, unless the episode has its memory already."""
        if state["memory_id"]:
            return {}
        attempt = attempt_of(self._learner.redacted(state))
        try:
            lesson = self._learner.lesson(attempt)
        except GraphBubbleUp:
            raise
        except Exception as error:  # whatever it was, the episode is kept, raw and marked
            return self._summarized(state, None, error)
        return self._summarized(state, self._learner.redacted_lesson(lesson, attempt))

    async def asummarize(self, state: State) -> Update:
        """The same, awaited."""
        if state["memory_id"]:
            return {}
        attempt = attempt_of(await self._learner.aredacted(state))
        try:
            lesson = await self._learner.alesson(attempt)
        except GraphBubbleUp:
            raise
        except Exception as error:  # whatever it was, the episode is kept, raw and marked
            return self._summarized(state, None, error)
        return self._summarized(state, await self._learner.aredacted_lesson(lesson, attempt))

    def _summarized(
        self, state: State, lesson: str | None, error: Exception | None = None
    ) -> Update:
        redactor = self._memory.redactor
        reason = None if error is None else why_raw(error, state["episode_id"], redactor)
        emit("summarized", state["episode_id"], raw=lesson is None, error=reason)
        return {"lesson": lesson}

    # --- write: one memory per episode, success and failure alike -------------------------------

    def write(self, state: State) -> Update:
        """Write the episode's memory."""
        if state["memory_id"]:
            return {}
        try:
            draft = memory_of(self._learner.redacted(state), self._name)
            return self._written(self._writer.remember(**draft))
        except (WriteConflictError, MemoryNotFoundError):
            return self._stands(self._memory.episode(**episode_of(state)))

    async def awrite(self, state: State) -> Update:
        """The same, awaited."""
        if state["memory_id"]:
            return {}
        try:
            draft = memory_of(await self._learner.aredacted(state), self._name)
            return self._written(await self._writer.aremember(**draft))
        except (WriteConflictError, MemoryNotFoundError):
            return self._stands(await self._memory.aepisode(**episode_of(state)))

    def _written(self, memory: Memory) -> Update:
        emit("written", memory.episode_id, memory_id=memory.id, outcome=memory.outcome)
        return {"memory_id": memory.id}
