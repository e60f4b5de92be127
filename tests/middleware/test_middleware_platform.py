"""The example for the LangGraph platform under `langgraph dev`, which fails runs that block."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from langchain_memrl import EpisodicMemory
from langchain_memrl.offline import HashingEmbeddings

SETTINGS = "langgraph.json"
EXAMPLE = Path(__file__).parents[2] / "notebooks" / "platform"
ASK = {"messages": [{"role": "user", "content": "reset the router"}]}
ANSWER = "Hold the button for ten seconds."

# A second graph beside the example's, to see that the server notices who blocks its event loop.
BLOCKER = """
import time
from langgraph.graph import START, MessagesState, StateGraph


async def block(state):
    time.sleep(0.1)


graph = StateGraph(MessagesState).add_node("block", block).add_edge(START, "block").compile()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A copy of the example: the server writes beside it."""
    place = tmp_path_factory.mktemp("platform") / "example"
    shutil.copytree(EXAMPLE, place, ignore=lambda _, names: set(names) - {"agent.py", SETTINGS})
    settings = json.loads((place / SETTINGS).read_text())
    settings["graphs"]["blocker"] = "./blocker.py:graph"
    (place / SETTINGS).write_text(json.dumps(settings))
    (place / "blocker.py").write_text(BLOCKER)
    return place


@pytest.fixture(scope="module")
def url(folder):
    """The address of a development server that reaches nothing but this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    nowhere = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
    command = ["langgraph_cli", "dev", "--no-browser", "--no-reload", "--port", str(port)]
    environment = {
        **{name: value for name, value in os.environ.items() if "API_KEY" not in name},
        **nowhere,
        "NO_PROXY": "127.0.0.1,localhost",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait(server, address, folder / "log")
        yield address
    finally:
        server.terminate()
        server.wait(30)


def _wait(server, address, log):
    for _ in range(400):
        try:
            if httpx.get(f"{address}/ok", trust_env=False).is_success:
                return
        except httpx.HTTPError:
            pass
        if server.poll() is not None:
            break
        time.sleep(0.5)
    pytest.fail(f"the server did not start: {log.read_text()[-3000:]}")


@pytest.fixture
def client(url):
    from langgraph_sdk import get_sync_client

    return get_sync_client(url=url)


def given(id):
    return {"metadata": {"memrl_episode_id": id}}


def test_a_run_learns_and_a_thread_goes_on(client, folder):
    thread = client.threads.create()["thread_id"]
    for turn, id in enumerate(("sync-1", "sync-2"), 1):
        result = client.runs.wait(thread, "agent", input=ASK, config=given(id))
        assert (result["memrl_episode_id"], result["memrl_reward"]) == (id, 1.0)
        assert [message["type"] for message in result["messages"]] == ["human", "ai"] * turn
        assert result["messages"][-1]["content"] == ANSWER
    assert client.threads.get_state(thread)["values"]["memrl_episode_id"] == "sync-2"
    with EpisodicMemory.open(folder / "memories", embeddings=HashingEmbeddings()) as bank:
        assert bank.episode("sync-1").reward == bank.episode("sync-2").reward == 1.0
        assert bank.episode("sync-2").memory_ids == (bank.episode("sync-1").memory_id,)


async def test_the_awaited_client_sees_the_same_and_many_runs_share_the_bank(url, folder):
    from langgraph_sdk import get_client

    client = get_client(url=url)
    ids = [f"async-{number}" for number in range(6)]
    results = await asyncio.gather(
        *(client.runs.wait(None, "agent", input=ASK, config=given(id)) for id in ids)
    )
    assert [result["memrl_episode_id"] for result in results] == ids
    assert [result["memrl_reward"] for result in results] == [1.0] * 6
    with EpisodicMemory.open(folder / "memories", embeddings=HashingEmbeddings()) as bank:
        assert len({bank.episode(id).memory_id for id in ids}) == 6


def test_a_stream_has_our_events_and_the_agents_tokens_only(client):
    parts = list(client.runs.stream(None, "agent", input=ASK, stream_mode=["custom", "messages"]))
    kinds = [part.data["type"] for part in parts if part.event == "custom"]
    assert kinds[0] == "memrl.retrieved"
    assert kinds[-1] == "memrl.written"
    said = [part.data[0] for part in parts if part.event.startswith("messages/partial")]
    assert said[-1]["content"] == ANSWER


def test_the_server_fails_a_run_that_blocks_its_event_loop(client):
    result = client.runs.wait(None, "blocker", input=ASK, raise_error=False)
    assert result["__error__"]["error"] == "BlockingError"
