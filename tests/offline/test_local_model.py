import sys
import urllib.error
import urllib.request

import pytest

from langchain_memrl.offline import LocalModelServer, chat_model
from langchain_memrl.offline.model_file import LocalModelError

SHOTS = [
    ("system", "Answer with the queue only."),
    ("user", "Ticket: my router is dead"),
    ("assistant", "Zorvex"),
    ("user", "Ticket: the router does not start"),
]


@pytest.fixture(scope="module")
def server():
    with LocalModelServer() as running:
        yield running


@pytest.fixture(scope="module")
def model(server):
    return chat_model(server, max_tokens=8)


def test_the_real_model_copies_from_an_earlier_turn(model):
    answer = model.invoke(SHOTS)
    assert answer.text.strip().startswith("Zorvex")
    assert answer.usage_metadata["output_tokens"] > 0


async def test_async_and_streamed_answers_equal_the_plain_one(model):
    plain = model.invoke(SHOTS).text
    assert (await model.ainvoke(SHOTS)).text == plain
    assert "".join(chunk.text for chunk in model.stream(SHOTS)) == plain


def test_a_proxy_in_the_environment_does_not_cut_off_the_loopback(server, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert chat_model(server, max_tokens=2).invoke(SHOTS).text


def test_the_server_ends_with_its_block():
    with LocalModelServer(threads=1) as running:
        address = f"{running.base_url}/models"
        with urllib.request.urlopen(address) as reply:
            assert running.model in reply.read().decode()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address)
    with pytest.raises(LocalModelError, match="not running"):
        _ = running.base_url


def test_a_file_that_is_no_model_gives_a_clear_error(tmp_path):
    rubbish = tmp_path / "rubbish.gguf"
    rubbish.write_bytes(b"no model")
    with pytest.raises(LocalModelError, match="could not load"), LocalModelServer(rubbish):
        pass


def test_a_missing_xllamacpp_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ImportError, match=r"langchain-memrl\[demo\]"), LocalModelServer():
        pass
