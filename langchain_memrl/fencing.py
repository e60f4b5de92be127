"""Quoting texts that nobody has to trust: between two lines that their authors cannot know."""

import hashlib
import hmac

TAG = 24
"""Hexadecimal digits, that is 96 bits."""


def fence_of(what: str, body: str, key: bytes) -> str:
    """The line that stands before and after a quoted text.

    It is a keyed hash of the text: its author cannot know it, so the text cannot contain it, and
    the same text gives the same line, which keeps prompt caches warm and seeded runs the same.

    Args:
        what: What is quoted, in one word.
        body: The text.
        key: A random key that no author knows.
    """
    tag = hmac.new(key, body.encode(), hashlib.sha256).hexdigest()[:TAG]
    return f"=== {what} {tag} ==="


def quote(what: str, body: str, key: bytes, intro: str) -> str:
    """An introduction, then the text between its fences.

    Args:
        what: What is quoted, in one word.
        body: The text; it enters unchanged.
        key: A random key that no author knows.
        intro: A sentence with `{fence}` where it names the line.
    """
    fence = fence_of(what, body, key)
    return f"{intro.format(fence=fence)}\n{fence}\n{body}\n{fence}"
