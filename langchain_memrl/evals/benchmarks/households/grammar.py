"""The text of a game: where its goal stands, and that nothing else than text comes out of it.

TextWorld evaluates what stands in braces in a game's grammar as Python. A download is no place to
run code from, so only what ALFWorld's own grammar needs gets through: names, their attributes,
texts, `+` and `or`.
"""

import re

from langchain_memrl.errors import InputError

GOAL = re.compile(r"(?<=Your task is to: )[^\"\\{}\[\]#|<>;]+?(?=\.?\s*\")")
PART = r"(?:[a-z]\w*(?:\.[a-z]\w*)?|'[^'{}\\]*')"
AFTER_BRACE = re.compile(
    rf"{PART}(?: (?:\+|or) {PART})*\s*[|}}]"  # an expression
    r"|#[\w.(), ]+#\s*[|}]"  # another rule
    r"|\s*\"[\w.(), -]+\"\s*:"  # a JSON object
    r"|\s*(?:template|feedback|grammar)\s*::"  # an action
)


def goal_of(grammar: str) -> str:
    """What a game asks for, such as `put a clean mug in desk`.

    Raises:
        InputError: The grammar states no goal, or more than one.
    """
    found = GOAL.findall(grammar)
    if len(found) != 1:
        raise InputError(f"its grammar states {len(found)} goals; expected one")
    return str(found[0])


def without_goal(grammar: str, mark: str) -> str:
    """The grammar with a mark in place of the goal; all games have that in common."""
    return GOAL.sub(mark, grammar)


def check_grammar(grammar: str) -> None:
    """Refuse a grammar with anything to evaluate that is more than putting texts together.

    Raises:
        InputError: There is such a thing.
    """
    for brace in re.finditer(r"\{", grammar):
        if AFTER_BRACE.match(grammar, brace.end()) is None:
            found = grammar[brace.start() : brace.start() + 60].split("\n")[0]
            raise InputError(
                f"its grammar holds {found!r}, which TextWorld would run as a program; only "
                "names, their attributes, texts, + and or are let through"
            )
    if "\\u" in grammar:
        raise InputError("its grammar holds escaped characters (\\u...), which may hide a program")
