"""A real small language model on this machine, behind llama.cpp's OpenAI-compatible server."""

import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

from langchain_memrl.offline.model_file import LocalModelError, fetch_model

MODEL_NAME = "smollm2-135m-instruct"


class LocalModelServer:
    """Serves SmolLM2-135M-Instruct on loopback for as long as the `with` block lasts.

    llama.cpp runs inside this process (package `xllamacpp`): one slot, about 200 MB. Any client of
    the OpenAI protocol can use it; requests of several clients wait for each other. With
    temperature 0 the same prompt gets the same answer.

    Args:
        model_file: a GGUF file; by default the one of `fetch_model`, fetched when missing.
        context: longest prompt plus answer, in tokens.
        threads: computing threads; by default one for every two cores. llama.cpp's threads wait for
            each other at every layer, so one more than the machine has free makes it many times
            slower.

    Attributes:
        base_url: address for OpenAI clients, ending in `/v1`.
        model: the name to ask for.

    Raises:
        ImportError: on entry, when the package `xllamacpp` is missing.
        LocalModelError: on entry, when the model cannot be fetched or started.

    Example:
        ```python
        with LocalModelServer() as server:
            print(chat_model(server, max_tokens=20).invoke("Hello!").text)
        ```
    """

    model = MODEL_NAME

    def __init__(
        self,
        model_file: Path | None = None,
        *,
        context: int = 2048,
        threads: int | None = None,
    ) -> None:
        """Only note the settings; nothing starts before the `with` block."""
        self._model_file = model_file
        self._context = context
        self._threads = threads or max(1, (os.cpu_count() or 1) // 2)
        self._server: Any = None

    @property
    def base_url(self) -> str:
        """The address for OpenAI clients; an error outside the `with` block."""
        if self._server is None:
            raise LocalModelError(
                "The local model is not running: use `with LocalModelServer() as server:`."
            )
        return f"{self._server.listening_address}/v1"

    def __enter__(self) -> Self:
        """Fetch the model file if needed, load it and listen on a free loopback port."""
        xllamacpp = _import_llama()
        path = self._model_file or fetch_model()
        try:
            self._server = xllamacpp.Server(self._parameters(xllamacpp, path))
        except RuntimeError as error:
            raise LocalModelError(
                f"llama.cpp could not load {path} ({error}). Is it a GGUF file, and is there "
                "memory for it?"
            ) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the server and free the model."""
        self._server = None  # the last reference: llama.cpp closes its port and joins its threads

    def _parameters(self, xllamacpp: Any, path: Path) -> Any:
        settings = xllamacpp.CommonParams()
        settings.model.path = str(path)
        settings.model_alias = {self.model}
        settings.hostnames = ["127.0.0.1"]
        settings.port = 0
        settings.n_ctx = self._context
        settings.n_parallel = 1
        settings.n_gpu_layers = 0
        for cores in (settings.cpuparams, settings.cpuparams_batch):
            cores.n_threads = self._threads
            cores.poll = 0  # waiting threads sleep: three times faster on a machine with other work
        settings.cache_ram_mib = 0  # by default up to 8 GiB of old prompts
        settings.verbosity = 0
        settings.ui = False
        return settings


def _import_llama() -> Any:
    try:
        import xllamacpp
    except ImportError as error:
        raise ImportError(
            'The local model needs the package xllamacpp: pip install "langchain-memrl[demo]".'
        ) from error
    return xllamacpp


def chat_model(server: LocalModelServer, **settings: Any) -> BaseChatModel:
    """Return a `ChatOpenAI` that talks to a running `LocalModelServer`.

    Temperature 0 and no retries unless `settings` say otherwise. Proxy settings of the environment
    are ignored: the server is on this machine.

    Args:
        server: a server inside its `with` block.
        settings: further arguments of `ChatOpenAI`, such as `max_tokens` or `stop`.

    Raises:
        LocalModelError: the server is not running.
    """
    import httpx
    from langchain_openai import ChatOpenAI

    defaults: dict[str, Any] = {"temperature": 0.0, "max_retries": 0}
    return ChatOpenAI(
        base_url=server.base_url,
        model=server.model,
        api_key=SecretStr("unused"),
        http_client=httpx.Client(trust_env=False),
        http_async_client=httpx.AsyncClient(trust_env=False),
        **(defaults | settings),
    )
