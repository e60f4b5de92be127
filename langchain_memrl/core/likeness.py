"""Which texts say nearly the same: the Jaccard similarity of their word triples, and a few guards.

Two lessons are alike where one adds nothing to the other for whoever reads both. What may differ is
case, white space, punctuation, filler words and the number of an episode. What may not differ is
any other number or deciding word ("not", "before"), however long the texts are.
"""

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

ALIKE = 0.9
"""Smallest Jaccard similarity of two texts that are alike.

One other word in a text of n words changes at most 3 of its n - 2 triples: with 15 words that
leaves (13 - 3) / (13 + 3) = .63, with 59 words (57 - 3) / (57 + 3) = .9.
"""
WORDS_PER_CHANGE = 59
"""So many words for each that may be another one, also at the ends, where it changes one triple."""
LONGEST = 8_000
"""Characters; of a longer text only an equal one is alike."""

FILLERS = frozenset(
    ("also", "always", "and", "just", "now", "please", "simply", "so", "the", "then")
)
DECIDING = frozenset(
    (
        *("after", "all", "any", "before", "but", "cannot", "except", "false", "if", "instead"),
        *("never", "no", "none", "not", "off", "on", "only", "or", "true", "unless", "until"),
        "without",
    )
)
MEANINGFUL = frozenset("%&/@\\")
"""Punctuation that says something, as signs of other kinds do; the rest is layout."""
LAYOUT = frozenset({"Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sk"})
APOSTROPHES = {0x2018: "'", 0x2019: "'"}

COUNT = r"\s*(?:no\.?|number|id)?\s*[#:_-]?\s*"
LABELS = r"(?:episode|attempt|trial|task|ticket|job|session|lesson|example|run|try|round|note)"
EPISODE_NUMBERS = re.compile(
    rf"\b(?:episode|attempt|trial){COUNT}\d+\b"  # episode 17
    rf"|^\W*{LABELS}{COUNT}[\w-]*\d[\w-]*\s*[:.)\]](?=\s)"  # Ticket #17: at the beginning
    rf"|[(\[]{LABELS}{COUNT}[\w-]*\d[\w-]*[)\]](?=\W*$)"  # (run 17) at the end
    r"|^\W*\d+[.:)\]](?=\s)",  # 17. at the beginning
)
WORD = re.compile(
    r"(?<!\w)[-+]?\.?\d+(?:[.,]\d+)*\w*"  # a number with its sign, fraction and unit
    r"|[^\W\d_]+(?:#|\+\+)(?!\w)"  # C#, C++
    r"|\w+(?:'\w+)*"
    r"|[!<>=~]=+"  # !=, <=
    r"|(?<![\w!-])[!-]+[\w=]+"  # !ready, -f, !=
    r"|[^\w\s]"
)
NUMBER = re.compile(r"\d")
PIECE = 12
PIECES = 6
"""Texts where none of six pieces of 12 characters of one occurs in the other are not looked at any
closer: that is what most pairs are, and it costs next to nothing."""


class Likeness(NamedTuple):
    """What is compared of a text.

    Attributes:
        words: Its words in order; equal words are alike, however few.
        deciding: Its numbers and deciding words, sorted.
        triples: Its word triples; empty where only an equal text is alike.
    """

    words: tuple[str, ...]
    deciding: tuple[str, ...]
    triples: frozenset[tuple[str, ...]]


def words_of(text: str) -> list[str]:
    """The words of a text that count: no fillers, no punctuation, no numbers of episodes."""
    plain = unicodedata.normalize("NFKC", text).translate(APOSTROPHES).casefold()
    if NUMBER.search(plain):
        plain = EPISODE_NUMBERS.sub(" ", plain)
    return [word for word in WORD.findall(plain) if word not in FILLERS and not _is_layout(word)]


def _is_layout(word: str) -> bool:
    """Whether a word is a punctuation mark that says nothing."""
    return len(word) == 1 and word not in MEANINGFUL and unicodedata.category(word) in LAYOUT


@functools.lru_cache(maxsize=512)
def likeness(text: str) -> Likeness:
    """What is compared of a text; of texts that were compared lately it is still known."""
    words = words_of(text) or [_plain(text)]
    triples = zip(words, words[1:], words[2:], strict=False) if len(text) <= LONGEST else ()
    deciding = (word for word in words if word in DECIDING or not word.isalpha())
    return Likeness(tuple(words), tuple(sorted(deciding)), frozenset(triples))


def alike(one: Likeness, other: Likeness) -> bool:
    """Whether two texts are near-identical.

    The Jaccard similarity of their word triples, shared ones by all, is at least `ALIKE`, no more
    than one word in 59 is another one, and their numbers and deciding words are the same.
    """
    if one.words == other.words:
        return True
    if one.deciding != other.deciding or not (one.triples and other.triples):
        return False
    small, large = sorted((len(one.triples), len(other.triples)))
    if small < ALIKE * large:
        return False
    shared = len(one.triples & other.triples)
    if shared < ALIKE * (small + large - shared):
        return False
    mine, theirs = Counter(one.words), Counter(other.words)
    changed = max((mine - theirs).total(), (theirs - mine).total())
    return changed * WORDS_PER_CHANGE <= max(len(one.words), len(other.words))


def leaders(texts: Sequence[str]) -> list[bool]:
    """Of each text, in order, whether it is the first of its kind: like no leader before it."""
    kinds: list[str] = []
    first: list[bool] = []
    for text in texts:
        known = (kind for kind in kinds if _may_be_alike(kind, text))
        first.append(not any(alike(likeness(kind), likeness(text)) for kind in known))
        if first[-1]:
            kinds.append(text)
    return first


def _may_be_alike(one: str, other: str) -> bool:
    """Whether two texts share a piece and are of much the same length; short ones always may."""
    small, large = (one, other) if len(one) <= len(other) else (other, one)
    if len(large) > 2 * len(small) + 100:
        return False
    text, pieces = _plain(large), _plain(small)
    step = len(pieces) // PIECES
    if step < PIECE // 2:
        return True
    return any(pieces[at : at + PIECE] in text for at in range(step // 2, len(pieces), step))


@functools.lru_cache(maxsize=512)
def _plain(text: str) -> str:
    """A text without capitals and layout."""
    return " ".join(text.casefold().split())
