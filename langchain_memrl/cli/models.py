"""Which chat model a command asks: the small one on this machine, or an endpoint."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from langchain_memrl.errors import ConfigError

MISSING = 'the small model needs more packages: pip install "langchain-memrl[demo]"'


@contextmanager
def chat_model(
    base_url: str | None, model: str | None, settings: Mapping[str, Any]
) -> Iterator[tuple[Any, str]]:
    """The chat model and its name; the local server runs as long as the block.

    Args:
        base_url: An OpenAI-compatible endpoint; None for the small model.
        model: The model to ask for there.
        settings: `max_tokens`, and `stop`, which only the small model needs.

    Raises:
        ConfigError: One of the two is missing, or a package is.
    """
    if (base_url is None) != (model is None):
        raise ConfigError("--base-url and --model belong together; give both or neither")
    if base_url is None:
        try:
            from langchain_memrl.offline import LocalModelServer, chat_model

            with LocalModelServer() as server:
                yield chat_model(server, **settings), server.model
        except ImportError as error:
            raise ConfigError(MISSING) from error
        return
    from langchain_openai import ChatOpenAI

    key = os.environ.get("OPENAI_API_KEY", "unused")
    yield (
        ChatOpenAI(
            base_url=base_url,
            model=model or "",
            api_key=key,  # type: ignore[arg-type]
            temperature=0,
            max_completion_tokens=settings.get("max_tokens"),
        ),
        model or "",
    )
