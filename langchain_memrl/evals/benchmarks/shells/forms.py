"""The forms of a script's commands: what remains without the names and values of its task.

`chmod -R 755 /srv` and `chmod -R g+w "$dir"` have one form, `chmod -R`. What a script is split
into are its parts: commands joined by pipes, and loops and conditions as a whole.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

INNER = r"[$<>]\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
"""A command that is put in a word's place; two levels of parentheses deep."""
QUOTED = rf"'[^']*'|\"(?:\\.|{INNER}|[^\"\\])*\"|`[^`]*`"
TOKEN = re.compile(
    rf"(?P<space>[ \t\r]+|\\\n|(?<![^\s;])\#[^\n]*)"
    rf"|(?P<redirect>\d*(?:[<>]&[\d-]?|&>>?|>>|>\||<<<|<<-?|[<>](?!\()))"
    rf"|(?P<joint>&&|\|\||;;|\||;|&|\n)"
    rf"|(?P<bracket>[()])"
    rf"|(?P<word>(?:{INNER}|{QUOTED}|\\.|[^\s'\"`\\;&|<>()])+)"
    rf"|(?P<other>.)",
    re.DOTALL,
)
OPENING = frozenset(("if", "for", "while", "until", "case", "{"))
CLOSING = frozenset(("fi", "done", "esac", "}"))
PREFIXES = frozenset((*OPENING, "then", "do", "else", "elif", "!", "time")) - {"for", "case"}
"""Words after which a command begins."""
ENDS = ("&&", "||", ";", "&", "\n")
"""What ends a part."""
ASSIGNMENT = re.compile(r"\w+\+?=")
OPTION = re.compile(r"--?[A-Za-z][\w-]*|-(?=\d)")
WRITING = re.compile(r"1?(>>?)$")


class Part(NamedTuple):
    """A part of a script.

    Attributes:
        text: As it stands there.
        joint: What joins the next part to it.
        forms: The forms of its commands.
    """

    text: str
    joint: str
    forms: frozenset[str]


def parts_of(script: str) -> list[Part]:
    """The parts of a script, in order."""
    found: list[Part] = []
    start, depth, beginning = 0, 0, True
    for match in TOKEN.finditer(script):
        kind, text = match.lastgroup, match[0]
        if kind == "bracket" or (kind == "word" and beginning):
            depth += (text == "(" or text in OPENING) - (text == ")" or text in CLOSING)
        if kind == "joint" and depth <= 0 and text in ENDS:
            found.append(_part(script[start : match.start()], text))
            start = match.end()
        if kind != "space":
            beginning = kind in ("joint", "bracket") or (beginning and text in PREFIXES)
    found.append(_part(script[start:], ""))
    return [part for part in found if part.text]


def write(parts: list[Part]) -> str:
    """A script of these parts."""
    text = "".join(f"{part.text} {part.joint} " for part in parts)
    return re.sub(r"\s*(?:&&|\|\|)?\s*$", "", text)


def forms_of(script: str) -> set[str]:
    """The forms of all commands of a script."""
    return set(_forms(script))


def _part(text: str, joint: str) -> Part:
    return Part(text.strip(), joint, frozenset(_forms(text)))


def _forms(script: str) -> Iterator[str]:
    """A form for each command, those that are put in place of their output included."""
    words: list[str] = []
    beginning, target = True, ""
    for match in TOKEN.finditer(script):
        kind, text = match.lastgroup, match[0]
        if kind in ("joint", "bracket"):
            yield from _ended(words)
            words, beginning, target = [], True, ""
        elif kind == "redirect":
            writing = WRITING.match(text)
            target = writing[1] if writing else "elsewhere" if text[-1] in "<>&|" else ""
        elif kind == "word":
            yield from _within(text)
            if target:
                words += [target] if target in (">", ">>") and text != "/dev/null" else []
                target = ""
            elif not beginning or not (text in PREFIXES or ASSIGNMENT.match(text)):
                beginning = False
                words.append(text)
    yield from _ended(words)


def _within(word: str) -> Iterator[str]:
    if not word.startswith("'"):
        for inner in re.findall(INNER, word):
            yield from _forms(inner[2:-1])


def _ended(words: list[str]) -> Iterator[str]:
    """The form of one command."""
    if words and words[0] not in CLOSING:
        name = "a file" if "/" in words[0] or "$" in words[0] else words[0]
        options = (found[0] for word in words[1:] if (found := OPTION.match(word)))
        writes = (word for word in words[1:] if word in (">", ">>"))
        yield " ".join([name, *sorted(set(options)), *sorted(set(writes))])
