"""What is accepted from outside: texts, names, metadata. Checked before any effect."""

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from langchain_memrl.errors import InputError

TEXT_LIMIT = 1024 * 1024
NAME_LIMIT = 255
COUNT_LIMIT = 2**53
WORD_LIMIT = 20
ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
INVISIBLE = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf", "Cs"})
"""Unicode categories of spaces, controls, formats and surrogates. A character this Python does not
know yet, such as a new emoji, is taken to be visible."""


def is_blank(text: str) -> bool:
    """Whether nothing in a text would be visible: spaces, controls, zero-width characters."""
    return all(unicodedata.category(char) in INVISIBLE for char in text)


def told(value: Any) -> str:
    """A wrong value as an error may repeat it: numbers and single words, but nobody's text."""
    if isinstance(value, str):
        short = len(value) <= WORD_LIMIT and (value.isidentifier() or not value)
        return repr(value) if short else f"a str of {len(value)} characters"
    plain = value is None or isinstance(value, bool | int | float)
    return repr(value) if plain else f"a {type(value).__name__}"


def check_text(name: str, text: Any, *, blank: bool = False, limit: int = TEXT_LIMIT) -> str:
    """Return a text that every backend stores unchanged.

    Args:
        name: The argument's name, for the error.
        text: What the caller gave.
        blank: Whether a blank text is allowed.
        limit: The largest size, in bytes of UTF-8.

    Raises:
        InputError: Not a str, blank, too long, or with a NUL or a lone surrogate inside.
    """
    if not isinstance(text, str):
        raise InputError(f"{name} is a {type(text).__name__}; expected a str")
    if not blank and is_blank(text):
        raise InputError(f"{name} is blank; expected a text with visible characters")
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name} has a lone surrogate at character {error.start}; "
            "expected valid Unicode (decode bytes with errors='replace' first)"
        ) from None
    if "\x00" in text:
        raise InputError(
            f"{name} has a NUL at character {text.index(chr(0))}; not every store can keep it: "
            "remove it first"
        )
    if size > limit:
        raise InputError(f"{name} has {size} bytes; at most {limit} are accepted: shorten it first")
    return text


def check_name(name: str, value: Any) -> str:
    """Return a namespace, episode id or source: a visible text of at most 255 bytes.

    Raises:
        InputError: See `check_text`.
    """
    return check_text(name, value, limit=NAME_LIMIT)


def check_count(name: str, value: Any, *, least: int = 0) -> int:
    """Return a whole number of at least `least`.

    Raises:
        InputError: Anything else.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < COUNT_LIMIT:
        raise InputError(
            f"{name} is {told(value)}; expected a whole number of at least {least}, below 2**53"
        )
    return value


def check_metadata(value: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a private copy of user metadata, as plain JSON values.

    Raises:
        InputError: Not a mapping with str keys, or a value that JSON cannot carry unchanged.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"metadata is a {type(value).__name__}; expected a dict")
    try:
        text = json.dumps(dict(value), allow_nan=False, ensure_ascii=False)
        copy: dict[str, Any] = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"metadata cannot be stored ({error}); expected str, finite numbers, bool, None, "
            "and lists or dicts of these"
        ) from None
    check_text("metadata", text)
    if copy != value or ESCAPED_NUL.search(text):
        raise InputError(
            "metadata would not come back unchanged; expected str keys and plain JSON values"
        )
    return copy
