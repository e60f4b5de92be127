"""The forms of a statement's clauses: what remains without the names and values of its task.

`WHERE rating >= 4` and `WHERE price < 10` have one form, `where name ? value`. A list of names is
one `name`, whatever its length.
"""

import re
from typing import NamedTuple

TOKEN = re.compile(r"'(?:[^']|'')*'|\d+(?:\.\d+)?|`[^`]+`|[A-Za-z_]\w*|<=|>=|<>|!=|\S")
HEADS = ("select", "insert", "update", "delete", "set", "from", "where", "group", "having", "order")
CLAUSES = frozenset((*HEADS, "values", "limit", "offset"))
KEPT = frozenset(
    (
        *CLAUSES,
        *("by", "asc", "desc", "and", "or", "not", "in", "between", "like", "is", "null", "as"),
        *("distinct", "avg", "sum", "max", "min", "count", "exists", "into", "case", "when", "on"),
        *("then", "else", "end", "join", "any", "all", "round", "coalesce", "union", "with"),
    )
)
COMPARISONS = frozenset(("=", "<", ">", "<=", ">=", "<>", "!="))
LISTS = re.compile(r"(name|value)(?: , (?:name|value))+")
ALIAS = re.compile(r" as name|(?<=from name) name\b|(?<=\)) name\b")
OWNER = re.compile(r"name \. (?=name)")


class Clause(NamedTuple):
    """A part of a statement.

    Attributes:
        text: As it stands there.
        form: Without names and values.
    """

    text: str
    form: str

    @property
    def opens(self) -> bool:
        """Whether a statement can begin with it."""
        return self.form.split(" ")[0] in ("select", "insert", "update", "delete", "with")


def clauses_of(sql: str) -> list[Clause]:
    """The clauses of a statement, in order; what is in parentheses belongs to its clause."""
    text = sql.rstrip("; \n")
    starts, depth = [], 0
    for match in TOKEN.finditer(text):
        depth += (match[0] == "(") - (match[0] == ")")
        if depth == 0 and match[0].lower() in CLAUSES and match[0].lower() != "from":
            starts.append(match.start())
    if not starts or starts[0] > 0:
        starts.insert(0, 0)
    ends = [*starts[1:], len(text)]
    parts = [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]
    return [Clause(part, _form(part)) for part in parts if part]


def _form(clause: str) -> str:
    words = " ".join(map(_word, TOKEN.findall(clause)))
    return LISTS.sub(r"\1", ALIAS.sub("", OWNER.sub("", words)))


def _word(token: str) -> str:
    word = token.lower()
    if word in KEPT:
        return word
    if word in COMPARISONS:
        return "?"
    if word[0] == "'" or word[0].isdigit():
        return "value"
    return "name" if word[0].isalpha() or word[0] in "_`" else word
