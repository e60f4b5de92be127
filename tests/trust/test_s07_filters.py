"""S7: a filter is data: 200 hostile keys and values are refused or match literally.

The truth table of every operator, depth and number of terms: `store/test_filters.py`.
"""

import itertools
import json

import pytest

from langchain_memrl import MemRLRetriever
from langchain_memrl.errors import InputError

EVERY_STORE = True
FREE = {"score_threshold": None}
QUOTES = ("'", '"', "`", "''", '\\"', "\\", "\\'", "\u2019", "\uff07")
TAILS = ("", " --", " #", "/*", ";", " OR 1=1", " OR '1'='1", ") OR (1=1", "; DROP TABLE memories;")
INJECTIONS = [f"a{quote}{tail}" for quote, tail in itertools.product(QUOTES, TAILS)]
PATHS = [
    *("$", "$.a", "$[0]", "$**", "a[0]", "a[*]", 'a"."b', "a.*", "..", "a..b", ".a", "a.", "#-1"),
    *("$.a.b", "->a", "->>a", "a->>'b'", "a#>>'{b}'", "a::text", "a @> '{}'", "{a,b}", "a?b"),
]
OPERATORS = [
    *("$where", "$regex", "$expr", "$function", "$not", "$nor", "$text", "$like", "$ilike", "$GT"),
    *("$eq ", "$", "$$eq", "eq", "$between", "__proto__", "$\u0065q\u200b"),
]
ODD = [
    *(
        "",
        " ",
        "\n",
        "\t",
        "a\x00b",
        "\ud800",
        "\u202e",
        "\u200b",
        "é",
        "\u0430",
        "%",
        "_%",
        "*",
        "?",
    ),
    *("a b", "a-b", "1a", "a" * 65, "a" * 1_000_000, "a\u2028b", "{0}"),
    *("{a}", "{{a}}", "%s", "${a}", "@a", "a@b", "a:b", ":a", "?1", "@1", "$1", "~", "../x", "a/b"),
]
KEYS = [*INJECTIONS, *PATHS, *ODD, None, 1, 1.5, True, ("a",), b"a", frozenset()]
VALUES = [text for text in (*INJECTIONS, *PATHS, *OPERATORS, *ODD) if "\x00" not in text]
VALUES = [text for text in VALUES if "\ud800" not in text and len(text) < 100_000]


@pytest.fixture
def hostile(open_bank):
    """A bank with a memory for every value, and for some plain ones."""
    bank = open_bank()
    texts = [*VALUES, "plain", "a"]
    bank.remember_many(
        [
            {"intent": f"task {n}", "lesson": "lesson", "metadata": {"a": text, "n": n}}
            for n, text in enumerate(texts)
        ]
    )
    return bank


@pytest.fixture
def state_of(tmp_path):
    """All rows of a bank, through its export."""

    def read(bank):
        bank.export_jsonl(tmp_path / "state.jsonl")
        lines = (tmp_path / "state.jsonl").read_text().rstrip("\n").split("\n")
        return [json.loads(line) for line in lines]

    return read


def test_there_are_enough_of_them():
    assert len({repr(key) for key in KEYS}) + len(set(OPERATORS)) >= 140
    assert len(KEYS) + len(VALUES) >= 200


def test_hostile_keys_are_refused_everywhere_and_nothing_changes(hostile, state_of):
    before = state_of(hostile)
    retriever = MemRLRetriever(memory=hostile, **FREE)
    let_through = []
    for key in KEYS:
        for filter in ({key: 1}, {key: {"$ne": 1}}, {"$or": [{"a": 1}, {key: {"$in": ["x"]}}]}):
            for call in (
                lambda f=filter: hostile.list(filter=f),
                lambda f=filter: hostile.recall("task 1", filter=f, **FREE),
                lambda f=filter: retriever.invoke("task 1", filter=f),
            ):
                try:
                    call()
                except InputError:
                    continue
                let_through.append(key)
    assert set(let_through) == set()
    assert state_of(hostile) == before
    assert hostile.verify().ok


def test_hostile_operators_are_refused(hostile, state_of):
    before = state_of(hostile)
    for name in (*OPERATORS, *INJECTIONS, *PATHS):
        for filter in (
            {"a": {name: 1}},
            {"a": {"$eq": "x", name: 1}},
            {"$and": [{"a": {name: 1}}]},
        ):
            with pytest.raises(InputError):
                hostile.list(filter=filter)
    assert state_of(hostile) == before


def test_hostile_values_match_themselves_and_nothing_else(hostile, state_of):
    before = state_of(hostile)
    places = {}
    for n, text in enumerate(VALUES):
        places.setdefault(text, []).append(f"task {n}")
    for text, intents in places.items():
        for filter in ({"a": text}, {"a": {"$in": [text]}}, {"$or": [{"a": text}, {"n": -1}]}):
            found = hostile.list(filter=filter, limit=None)
            assert sorted(one.intent for one in found) == sorted(intents), ascii(text)
        other = hostile.list(filter={"a": {"$ne": text}}, limit=None)
        assert len(other) == len(VALUES) + 2 - len(intents)
    assert state_of(hostile) == before


def test_hostile_values_choose_literally_in_a_recall(hostile):
    for text in VALUES[::7]:
        found = hostile.recall("task 1", filter={"a": text}, k=50, fetch_k=400, **FREE)
        assert {hit.memory.metadata["a"] for hit in found.memories} == {text}


@pytest.mark.parametrize("column", ["outcome", "source", "trust", "writer", "q_value"])
def test_hostile_values_of_our_own_fields_match_nothing(hostile, state_of, column):
    before = state_of(hostile)
    for text in INJECTIONS:
        for filter in ({column: text}, {column: {"$in": [text]}}, {column: {"$eq": text}}):
            assert hostile.list(filter=filter, limit=None) == []
    assert state_of(hostile) == before


def test_what_is_no_time_is_refused_where_a_time_is_expected(hostile, state_of):
    before = state_of(hostile)
    for text in INJECTIONS:
        for operator in ("$eq", "$gt", "$lte"):
            with pytest.raises(InputError, match="expected a datetime"):
                hostile.list(filter={"created_at": {operator: text}})
    assert state_of(hostile) == before


@pytest.mark.parametrize("text", ["%", "_", "lesso_", "l%n", "'", "--", "\\", "LIKE '%'", "*"])
def test_a_search_for_text_knows_no_wildcards(hostile, text):
    found = hostile.search_text(text, limit=1000)
    assert all(text in one.intent + one.lesson for one in found)


def test_nested_and_endless_filters_are_refused_without_trying(hostile):
    nested = {"a": 1}
    for _ in range(1000):
        nested = {"$and": [nested]}
    endless = {"$and": []}
    endless["$and"].append(endless)
    wide = {"$or": [{"a": n} for n in range(1000)]}
    for filter in (nested, endless, wide, {"a": {"$in": ["x"] * 1000}}, [], "a", {"$and": "a"}):
        with pytest.raises(InputError):
            hostile.list(filter=filter)
