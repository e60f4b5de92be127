"""Texts without their secrets: what `redact` returns is embedded, summarised and stored instead."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_memrl.errors import ConfigError, InputError
from langchain_memrl.inputs import is_blank

Redact = Callable[[str], str]
"""Takes a text and returns it without what must not be kept; the same for the same text."""

REQUIRED = ("intent", "lesson")
TEXTS = (*REQUIRED, "trajectory", "answer")


class Redactor:
    """Applies the caller's `redact` to everything that is a text; what is not passes as it is.

    Args:
        redact: The caller's function; None leaves every text as it is.

    Raises:
        ConfigError: It cannot be called.
    """

    def __init__(self, redact: Redact | None = None) -> None:
        if redact is not None and not callable(redact):
            raise ConfigError(
                f"redact is a {type(redact).__name__}; expected a callable that takes a text and "
                "returns it redacted, or None"
            )
        self._redact = redact

    @property
    def is_given(self) -> bool:
        """Whether there is anything to apply."""
        return self._redact is not None

    def text(self, name: str, value: Any) -> Any:
        """One text, redacted.

        Raises:
            InputError: What `redact` returned is no str, or it left nothing visible of a text that
                cannot be stored without.
        """
        if self._redact is None or not isinstance(value, str) or is_blank(value):
            return value
        found = self._redact(value)
        if not isinstance(found, str):
            raise InputError(
                f"redact returned a {type(found).__name__} for {name}; expected a str: the text "
                "without what must not be kept"
            )
        if name in REQUIRED and is_blank(found):
            raise InputError(
                f"redact left nothing visible of {name}; expected a text that still says what it "
                "is about, with a mark such as [email] in the place of what must not be kept"
            )
        return found

    def texts(self, name: str, values: Any) -> Any:
        """Several texts; anything but a sequence of them is left to whoever checks it."""
        if self._redact is None or isinstance(values, str) or not isinstance(values, Sequence):
            return values
        return [self.text(name, value) for value in values]

    def draft(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of `remember`, of `hold` or of `update`."""
        if self._redact is None:
            return dict(fields)
        named = {name: self.text(name, value) for name, value in fields.items() if name in TEXTS}
        if "metadata" in fields:
            named["metadata"] = self.metadata(fields["metadata"])
        return {**fields, **named}

    def metadata(self, value: Any) -> Any:
        """JSON values with every text in them redacted, keys too.

        Raises:
            InputError: Two keys became the same, so that one value would be lost.
        """
        if isinstance(value, Mapping):
            found = {
                self.text("a key of metadata", key): self.metadata(item)
                for key, item in value.items()
            }
            if len(found) < len(value):
                raise InputError(
                    "redact made two keys of metadata the same; keep what is secret in the values"
                )
            return found
        if isinstance(value, list):
            return [self.metadata(item) for item in value]
        return self.text("metadata", value)
