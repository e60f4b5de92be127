"""Whether a task is solved, by pure comparison."""

import ast
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_memrl.evals.benchmarks.databases.tasks import Row

TOLERANCE = 1e-6
"""Relative and absolute, as the benchmark's."""
LONGEST_ANSWER = 100_000
SELECT = re.compile(r"\s*select\s+(?:distinct\s+)?(.*?)\s+from\b", re.IGNORECASE | re.DOTALL)
ORDER = re.compile(
    r"\border\s+by\s+(.*?)\s*(?:\blimit\b|\boffset\b|$)(?!.*\border\s+by\b)",
    re.IGNORECASE | re.DOTALL,
)
DECIMAL = re.compile(r"Decimal\(\s*['\"]?(-?[\d.]+)['\"]?\s*\)")
ELEMENT = re.compile(r"\s*(?:'(.*?)'|\"(.*?)\"|([^,]*?))\s*(?:,|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Order:
    """What a query says about the order of its rows.

    Attributes:
        fixed: Whether it has an ORDER BY of its own, not only in a part in parentheses.
        keys: The columns of the answer that it sorts by; None where it sorts by something that is
            not in the answer. Rows with equal keys may come in any order.
    """

    fixed: bool = False
    keys: tuple[int, ...] | None = None


def order_of(sql: str) -> Order:
    """Read the order off a query."""
    outer = _outer(sql)
    clause = ORDER.search(outer)
    if clause is None:
        return Order()
    head = SELECT.match(outer)
    columns = _parts(sql, outer, head.start(1), head.end(1)) if head else []
    names = [_names(column) for column in columns]
    keys = []
    for item in _parts(sql, outer, *clause.span(1)):
        item = re.sub(r"\s+(asc|desc)\s*$", "", item, flags=re.IGNORECASE)
        wanted = _names(item)
        places = (
            range(int(item) - 1, len(names))
            if item.isdecimal()
            else (place for place, known in enumerate(names) if known & wanted)
        )
        found = next(iter(places), None)
        if found is None:
            return Order(fixed=True)
        keys.append(found)
    return Order(True, tuple(keys))


def same_rows(got: Sequence[Row], expected: Sequence[Row], order: Order) -> bool:
    """Whether rows are the expected ones, as often as expected.

    MariaDB and MySQL return the groups of a GROUP BY, and rows with equal keys of an ORDER BY, in
    different orders, so the order counts as far as the query fixes it.

    Args:
        got: The rows of an answer.
        expected: The right ones.
        order: What the query of the right ones fixes.
    """
    if len(got) != len(expected) or any(map(_other_length, got, expected)):
        return False
    if order.fixed and order.keys is None:
        return all(map(_same_row, got, expected))
    for key in order.keys or ():
        if not all(
            _same(mine[key], theirs[key]) for mine, theirs in zip(got, expected, strict=True)
        ):
            return False
    rest = list(expected)
    for row in got:
        place = next((i for i, other in enumerate(rest) if _same_row(row, other)), None)
        if place is None:
            return False
        del rest[place]
    return True


def read_rows(answer: str) -> tuple[Row, ...] | None:
    """The rows in an answer such as `[('North', 1200.0), ('South', 3)]`; None: not readable.

    A row may be a tuple or a list, `Decimal('1.5')` is a number, and one row or one value may stand
    without brackets.
    """
    text = DECIMAL.sub(r"\1", answer[:LONGEST_ANSWER].strip().strip("`").strip())
    if not text:
        return None
    try:
        return _rows(ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        pass
    bodies = re.findall(r"\(([^()]*)\)", text)
    if not bodies and text.startswith("["):
        bodies = re.findall(r"\[([^\[\]]*)\]", text)
    return tuple(map(_elements, bodies or [text]))


def show_rows(rows: Sequence[Row]) -> str:
    """Rows as text that `read_rows` reads."""
    return "[" + ", ".join(map(repr, rows)) + "]"


def _outer(sql: str) -> str:
    """The query with blanks instead of texts and of what is in parentheses; places stay."""
    depth, outer = 0, []
    blanked = re.sub(r"'(?:[^']|'')*'", lambda text: "'" + " " * (len(text[0]) - 2) + "'", sql)
    for char in blanked:
        depth -= char == ")"
        outer.append(char if depth == 0 else " ")
        depth += char == "("
    return "".join(outer).rstrip("; \n")


def _parts(sql: str, outer: str, start: int, end: int) -> list[str]:
    """What is between the commas of a stretch of the query."""
    commas = [place for place in range(start, end) if outer[place] == ","]
    edges = zip([start, *(place + 1 for place in commas)], [*commas, end], strict=True)
    return [sql[left:right].strip() for left, right in edges]


def _names(column: str) -> set[str]:
    """What a column of the answer can be called: its text, its alias, its name without a table."""
    plain = re.sub(r"[`\s]+", " ", column).strip().lower()
    text, _, alias = plain.rpartition(" as ")
    text = text or plain
    short = re.sub(r"^\w+\.(?=\w+$)", "", text)
    return {name for name in (text, alias if text != plain else "", short) if name}


def _other_length(got: Row, expected: Row) -> bool:
    return len(got) != len(expected)


def _same_row(got: Row, expected: Row) -> bool:
    return len(got) == len(expected) and all(map(_same, got, expected))


def _same(got: Any, expected: Any) -> bool:
    if expected is None:
        return got is None or str(got).strip().upper() in ("NULL", "NONE")
    if isinstance(expected, str):
        return str(got) == expected
    try:
        number = float(got)
    except (TypeError, ValueError):
        return False
    return math.isclose(number, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def _rows(value: Any) -> tuple[Row, ...]:
    """Python values as rows."""
    if not isinstance(value, tuple | list):
        return ((value,),)
    if all(isinstance(row, tuple | list) for row in value):
        return tuple(map(tuple, value))
    return (tuple(value),)


def _elements(body: str) -> Row:
    """The values of a row whose quotes are not those of Python."""
    found, place = [], 0
    while place < len(body):
        match = ELEMENT.match(body, place)
        if match is None or match.end() == place:
            break
        found.append(next((part for part in match.groups() if part is not None), ""))
        place = match.end()
    return tuple(found)
