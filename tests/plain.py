"""What a value is made of, all the way down."""

from langchain_core.messages import BaseMessage

JSON_TYPES = (str, int, float, bool, type(None))


def foreign(value, *, messages=False, path="value"):
    """Paths of everything inside `value` that is not one of JSON's own Python types, exactly.

    With `messages`, LangChain's messages may occur; their contents are looked at too.
    """
    if type(value) is dict:
        found = [f"{path} has key {key!r}" for key in value if type(key) is not str]
        for key, item in value.items():
            found += foreign(item, messages=messages, path=f"{path}[{key!r}]")
        return found
    if type(value) is list:
        parts = (
            foreign(item, messages=messages, path=f"{path}[{place}]")
            for place, item in enumerate(value)
        )
        return [problem for part in parts for problem in part]
    if messages and isinstance(value, BaseMessage):
        return foreign(dict(value), messages=True, path=f"{path}:{value.type}")
    return [] if type(value) in JSON_TYPES else [f"{path} is a {type(value).__name__}"]
