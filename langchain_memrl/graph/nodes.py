"""The six steps of the loop as nodes; the agent acts in `generate`."""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from langchain_memrl.evaluators import NO_STREAM
from langchain_memrl.graph.agent import Agent, with_ids
from langchain_memrl.graph.state import MemRLState
from langchain_memrl.learner import Learner
from langchain_memrl.loop import LoopSteps
from langchain_memrl.loop.records import emit
from langchain_memrl.loop.steps import Update
from langchain_memrl.retriever import MemRLRetriever


class Nodes(LoopSteps):
    """The shared steps, and one agent that acts."""

    def __init__(
        self,
        agent: Agent,
        retriever: MemRLRetriever,
        learner: Learner,
        *,
        learn: bool,
        write: bool,
    ) -> None:
        super().__init__(retriever, learner, learn=learn, write=write)
        self._agent = agent

    def runnables(self) -> dict[str, Runnable[MemRLState, Update]]:
        """The steps by name, each sync and async; no token of a judge or summariser streams."""
        evaluate = RunnableLambda(self.evaluate, self.aevaluate, name="evaluate")
        summarize = RunnableLambda(self.summarize, self.asummarize, name="summarize")
        return {
            "retrieve": RunnableLambda(self.retrieve, self.aretrieve, name="retrieve"),
            "generate": RunnableLambda(self.generate, self.agenerate, name="generate"),
            "evaluate": evaluate.with_config(tags=[NO_STREAM]),
            "update_q": RunnableLambda(self.update_q, self.aupdate_q, name="update_q"),
            "summarize": summarize.with_config(tags=[NO_STREAM]),
            "write": RunnableLambda(self.write, self.awrite, name="write"),
        }

    def generate(self, state: MemRLState, config: RunnableConfig) -> Update:
        """Let the agent act, with the memories in its prompt."""
        return self._generated(state, self._agent.invoke(self._prompt(state), config))

    async def agenerate(self, state: MemRLState, config: RunnableConfig) -> Update:
        """The same, awaited."""
        return self._generated(state, await self._agent.ainvoke(self._prompt(state), config))

    def _prompt(self, state: MemRLState) -> list[BaseMessage]:
        conversation = state["messages"]
        prompt = self._learner.prompt(conversation, self.shown(state))
        return with_ids(prompt, conversation, state["episode_id"])

    def _generated(self, state: MemRLState, added: Sequence[BaseMessage]) -> Update:
        emit("generated", state["episode_id"], messages=len(added))
        return {"messages": list(added), **self.acted(added)}
