"""The forms of commands: what remains without the numbers and the names of this game's things."""

import re

THING = re.compile(r"\b[a-z]\w* \d+\b")
TOOLS = ("microwave", "fridge", "sinkbasin", "bathtubbasin", "desklamp", "floorlamp")
"""Things that a command is about because of what they can do."""


def form_of(command: str) -> str:
    """`heat THING with microwave` for `heat apple 1 with microwave 1`.

    A tool keeps its name: to heat with a microwave and to clean with a basin are learned apart, as
    are going to a fridge and going to a table.
    """
    return THING.sub(_shown, command)


def _shown(thing: re.Match[str]) -> str:
    kind = thing[0].rpartition(" ")[0]
    return kind if kind in TOOLS else "THING"
