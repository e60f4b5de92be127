"""What the tests of the middleware share: agents over scripted models, and their prompts."""

import inspect

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from langchain_memrl.middleware import MemRLMiddleware
from langchain_memrl.offline import ScriptedChatModel

ANSWER = "Hold the button."
SAME = {"metadata": {"memrl_episode_id": "job-42"}}


@tool
def ping(host: str) -> str:
    """Ask a host whether it is there."""
    return f"{host} is there"


def calling(name="ping", said="Let me see.", **arguments):
    """A model's message that calls a tool."""
    call = {"name": name, "args": arguments or {"host": "router"}, "id": f"call-{name}"}
    return AIMessage(said, tool_calls=[call])


def scripted(*responses):
    """A model that says these in turn, again and again; by default one answer."""
    return ScriptedChatModel(responses=responses or [ANSWER], cycle=True)


def memrl(retriever, **options):
    """The middleware, with an evaluator that is content."""
    return MemRLMiddleware(retriever, **{"evaluator": lambda state: 1.0, **options})


def agent_of(retriever, model=None, *, before=(), after=(), tools=(ping,), agent=None, **options):
    """An agent with the middleware between others; `agent` goes to `create_agent`."""
    middleware = [*before, memrl(retriever, **options), *after]
    return create_agent(model or scripted(), list(tools), middleware=middleware, **(agent or {}))


def texts(prompt):
    """A prompt as pairs of a role and a text."""
    return [(message.type, message.text) for message in prompt]


def is_memory(message):
    """Whether a message of a prompt quotes memories."""
    return message.text.startswith("Notes from earlier tasks")


def written(bank):
    """The memories that agents wrote, the newest first."""
    return bank.list(filter={"source": "agent"})


class Beside(AgentMiddleware):
    """Another middleware, made of functions of the state: `Beside(before_agent=lambda state: ...)`.

    `around(request, ask)` stands around a model call; it may ask with another request, several
    times or not at all.
    """

    def __init__(self, name="beside", *, around=lambda request, ask: ask(request), **hooks):
        super().__init__()
        self._name, self._around = name, around
        for hook, function in hooks.items():
            setattr(self, f"_{hook}", function)

    @property
    def name(self):
        return self._name

    def _before_agent(self, state):
        return None

    def _before_model(self, state):
        return None

    def _after_model(self, state):
        return None

    @hook_config(can_jump_to=["end", "model"])
    def before_agent(self, state, runtime):
        return self._before_agent(state)

    @hook_config(can_jump_to=["end"])
    def before_model(self, state, runtime):
        return self._before_model(state)

    @hook_config(can_jump_to=["model", "end"])
    def after_model(self, state, runtime):
        return self._after_model(state)

    def wrap_model_call(self, request, handler):
        return self._around(request, handler)

    async def awrap_model_call(self, request, handler):
        result = self._around(request, handler)
        return await result if inspect.isawaitable(result) else result
