"""Finding the program in what a model replied."""

import ast
import re

FENCED = re.compile(r"```[ \t]*(?:python|py|python3)?[ \t]*\n(.*?)(?:\n[ \t]*```|\Z)", re.S | re.I)
OPENS = re.compile(r"(?:import|from|def|class|async def|@)\b|@")
MOST_LINES = 400
"""Longer replies are not searched for a program outside of a fence."""


def read_program(reply: str, function: str) -> str:
    """The program in a reply; empty where there is none.

    The longest block in a fence that defines the function; without one the longest stretch of
    lines that is a program and defines it; then the same without the function, so that its tests
    say what is missing.

    Args:
        reply: What the model said, thoughts and explanations included.
        function: What the function is called.
    """
    thought = re.split(r"</think>", reply)[-1]
    blocks = [block for block in FENCED.findall(thought) if _parses(block)]
    defining = [block for block in blocks if defines(block, function)]
    stretch = "" if defining else _longest_stretch(thought.splitlines(), function)
    found = max(defining, key=len, default="") or stretch or max(blocks, key=len, default="")
    return found.strip("\n")


def defines(program: str, function: str) -> bool:
    """Whether a program defines a function at its top."""
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function
        for node in ast.parse(program).body
    )


def _longest_stretch(lines: list[str], function: str) -> str:
    """The longest program among the lines that defines the function, cut off replies included."""
    head = next((i for i, line in enumerate(lines) if line.startswith(f"def {function}(")), None)
    if head is None or len(lines) > MOST_LINES:
        return ""
    starts = [i for i in range(head + 1) if i == head or OPENS.match(lines[i])]
    for start in starts:
        end = len(lines)
        while end > head:
            text = "\n".join(lines[start:end])
            wrong = _wrong_line(text)
            if wrong is None:
                return text if defines(text, function) else ""
            end = min(end - 1, start + wrong - 1) if wrong > 1 else head
    return ""


def _wrong_line(text: str) -> int | None:
    """The line, from 1, where a text stops being a program; None where it is one."""
    try:
        ast.parse(text)
    except SyntaxError as error:
        return error.lineno or 1
    except (ValueError, RecursionError, MemoryError):
        return 1
    return None


def _parses(text: str) -> bool:
    try:
        return bool(ast.parse(text).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
