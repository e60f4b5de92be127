"""An agent that learns, for the LangGraph platform: `langgraph dev` in this folder.

`MODEL=openai:...` names a chat model and MEMRL_DSN a bank; without a model, one that always says
the same makes the example start without a key. The platform brings the checkpointer.
"""

import asyncio
import functools
import os

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core.tools import tool

from langchain_memrl import EpisodicMemory, MemRLRetriever, contains
from langchain_memrl.middleware import MemRLMiddleware
from langchain_memrl.offline import HashingEmbeddings, ScriptedChatModel


@tool
def ping(host: str) -> str:
    """Ask a host whether it is there."""
    return f"{host} is there"


@functools.cache
def agent():
    """The agent, made once: all requests of this process share its bank."""
    memory = EpisodicMemory.open(
        os.environ.get("MEMRL_DSN", "./memories"), embeddings=HashingEmbeddings()
    )
    name = os.environ.get("MODEL")
    model = (
        init_chat_model(name)
        if name
        else ScriptedChatModel(responses=["Hold the button for ten seconds."], cycle=True)
    )
    middleware = MemRLMiddleware(MemRLRetriever(memory=memory), evaluator=contains("button"))
    return create_agent(model, [ping], middleware=[middleware])


async def make_agent():
    """What the platform calls for each request; opening the bank does not block its event loop."""
    return await asyncio.to_thread(agent)
