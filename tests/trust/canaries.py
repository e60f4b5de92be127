"""A secret in every text that a loop sees, and where it must not turn up."""

import re
from pathlib import Path

from langchain_core.messages import AIMessage

CANARY = "sk-CANARY-7f3a9e"
MARK = "[key]"
SECRET = re.compile(r"sk-CANARY-\w+")


def redact(text):
    """Puts a mark in the place of the secret."""
    return SECRET.sub(MARK, text)


def counted(text):
    """A redactor that shows how often a text went through it."""
    return f"{redact(text)}\u2020"


def secret(words):
    """Words with the secret in them."""
    return f"{words} {CANARY}"


def files_with(folder, canary=CANARY):
    """Every file in a folder that holds the secret, in any of three forms."""
    forms = (canary.encode(), canary.encode("utf-16-le"), canary.encode().hex().encode())
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    return [path for path in files if any(form in path.read_bytes() for form in forms)]


def tool_call(name="look"):
    """A model's message that hands the secret to a tool."""
    call = {"name": name, "args": {"key": CANARY}, "id": "call-1"}
    return AIMessage(secret("I look"), tool_calls=[call])


def causes(error):
    """An error and everything it was raised from."""
    while error is not None:
        yield error
        hidden = error.__suppress_context__
        error = error.__cause__ or (None if hidden else error.__context__)
