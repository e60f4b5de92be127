"""What the config of a LangChain request says: its namespace and its episode."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig, ensure_config

from langchain_memrl.errors import InputError
from langchain_memrl.inputs import check_name

EPISODE_KEY = "memrl_episode_id"


@dataclass(frozen=True)
class FromConfig:
    """Takes the namespace from each request's config, never from the model.

    Attributes:
        key: Looked up in `config["configurable"]`, then in `config["metadata"]`.
    """

    key: str

    def resolve(self, config: RunnableConfig) -> str:
        """The namespace of one request.

        Raises:
            InputError: The request names none.
        """
        for part in ("configurable", "metadata"):
            values: Mapping[str, Any] = config.get(part) or {}  # type: ignore[assignment]
            if values.get(self.key) is not None:
                return check_name(self.key, values[self.key])
        raise InputError(
            f"the request names no namespace; expected "
            f'config={{"configurable": {{{self.key!r}: ...}}}}, or under "metadata", which '
            "retrievers of others pass on to those inside them"
        )


def request_config(config: RunnableConfig | None) -> RunnableConfig:
    """A request's config, with the metadata that its callbacks brought along.

    Some retrievers, such as those that compress or ask several questions, pass on nothing else.
    """
    full = ensure_config(config)
    inherited = getattr(full.get("callbacks"), "metadata", None) or {}
    full["metadata"] = {**inherited, **full["metadata"]}
    return full


def find_namespace(
    namespace: "str | FromConfig | None", default: str, config: RunnableConfig
) -> str:
    """The namespace that a request with this config may see.

    Raises:
        InputError: It has to name one, and does not.
    """
    if isinstance(namespace, FromConfig):
        return namespace.resolve(config)
    return default if namespace is None else namespace
