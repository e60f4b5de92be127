"""Filters: one truth table on SQLite and PostgreSQL; refused or bound; before the top-k."""

import math
import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from behind import Behind
from fakes import FakeEmbeddings, at_cosine
from hypothesis import given
from hypothesis import strategies as st

from langchain_memrl import EpisodicMemory
from langchain_memrl.errors import InputError
from langchain_memrl.store.filters import compile_filter

MISSING = object()


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def backend(request):
    """Where the banks of a test are."""
    return request.param


@pytest.fixture(scope="module")
def new_bank(backend, request):
    """Opens banks that stay for the whole module."""
    opened = []

    def open_(embeddings):
        place = ":memory:"
        if backend == "postgres":
            place = request.getfixturevalue("server").new_location()
        opened.append((EpisodicMemory.open(place, embeddings=embeddings), place))
        return opened[-1][0]

    yield open_
    for memory, place in opened:
        memory.close()
        if place != ":memory:":
            request.getfixturevalue("server").drop(place)


@pytest.fixture
def rows_of(folder):
    """Everything that the bank in `folder` holds, its tables too."""
    return Behind(folder).dump


# --- a small table, by hand -------------------------------------------------------------------

ITEMS = {
    "three": {"score": 3},
    "three point zero": {"score": 3.0},
    "four": {"score": 4},
    "text": {"score": "3"},
    "null": {"score": None},
    "missing": {},
    "true": {"score": True},
    "list": {"score": [3]},
    "nested": {"score": {"b": 3}},
}
NUMBERS = {"three", "three point zero", "four"}
THREES = {"three", "three point zero"}
EVERY = set(ITEMS)

TABLE = [
    ({"score": 3}, THREES),
    ({"score": {"$eq": 3.0}}, THREES),
    ({"score": "3"}, {"text"}),
    ({"score": None}, {"null"}),
    ({"score": True}, {"true"}),
    ({"score": False}, set()),
    ({"score": 1}, set()),
    ({"score": {"$ne": 3}}, EVERY - THREES),
    ({"score": {"$ne": "3"}}, EVERY - {"text"}),
    ({"score": {"$ne": None}}, EVERY - {"null"}),
    ({"score": {"$ne": True}}, EVERY - {"true"}),
    ({"score": {"$gt": 3}}, {"four"}),
    ({"score": {"$gte": 3}}, NUMBERS),
    ({"score": {"$lt": 4}}, THREES),
    ({"score": {"$lte": 2}}, set()),
    ({"score": {"$gt": 3, "$lt": 5}}, {"four"}),
    ({"score": {"$gte": "3"}}, {"text"}),
    ({"score": {"$gt": None}}, set()),
    ({"score": {"$lte": None}}, set()),
    ({"score": {"$gte": True}}, set()),
    ({"score": {"$in": [3, None]}}, THREES | {"null"}),
    ({"score": {"$in": ["3", True]}}, {"text", "true"}),
    ({"score": {"$in": []}}, set()),
    ({"score": {"$nin": [3, "3"]}}, EVERY - THREES - {"text"}),
    ({"score": {"$nin": []}}, EVERY),
    ({"score": {"$exists": True}}, EVERY - {"missing"}),
    ({"score": {"$exists": False}}, {"missing"}),
    ({"score.b": 3}, {"nested"}),
    ({"score.b": {"$exists": True}}, {"nested"}),
    ({"score.b": {"$ne": 3}}, EVERY - {"nested"}),
    ({"score.c": {"$exists": False}}, EVERY),
    ({"$or": [{"score": "3"}, {"score": {"$gt": 3}}]}, {"text", "four"}),
    ({"$and": [{"score": {"$gte": 3}}, {"score": {"$ne": 4}}]}, THREES),
    ({"$or": [{"score": 4}, {"$and": [{"score": 3}, {"score.b": 3}]}]}, {"four"}),
    ({"score": {"$gte": 3}, "name": "four"}, {"four"}),
    ({}, EVERY),
    (None, EVERY),
]


@pytest.fixture(scope="module")
def table(new_bank):
    memory = new_bank(FakeEmbeddings())
    memory.remember_many(
        [
            {"intent": name, "lesson": name, "metadata": {"name": name, **metadata}}
            for name, metadata in ITEMS.items()
        ]
    )
    return memory


@pytest.mark.parametrize(("filter", "expected"), TABLE, ids=lambda value: str(value)[:60])
def test_the_truth_table(table, filter, expected):
    assert {found.intent for found in table.list(filter=filter)} == expected


@pytest.mark.parametrize(("filter", "expected"), TABLE, ids=lambda value: str(value)[:60])
def test_recall_lets_through_what_list_shows(table, filter, expected):
    recall = table.recall("four", filter=filter, k=20, fetch_k=20, score_threshold=None)
    assert {hit.memory.intent for hit in recall.memories} == expected


# --- any filter, against plain Python ---------------------------------------------------------


def look_up(metadata, key):
    value = metadata
    for segment in key.split("."):
        if not isinstance(value, dict) or segment not in value:
            return MISSING
        value = value[segment]
    return value


def is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def same_kind(value, wanted):
    return (is_number(value) and is_number(wanted)) or (
        isinstance(value, str) and isinstance(wanted, str)
    )


def equal(value, wanted):
    if wanted is None or isinstance(wanted, bool):
        return value is wanted
    return same_kind(value, wanted) and value == wanted


def holds(value, operator, wanted):
    match operator:
        case "$eq":
            return equal(value, wanted)
        case "$ne":
            return not equal(value, wanted)
        case "$in":
            return any(equal(value, one) for one in wanted)
        case "$nin":
            return not any(equal(value, one) for one in wanted)
        case "$exists":
            return (value is not MISSING) == wanted
    compare = {"$gt": "__gt__", "$gte": "__ge__", "$lt": "__lt__", "$lte": "__le__"}[operator]
    if not same_kind(value, wanted):
        return False
    left, right = (value, wanted) if isinstance(value, str) else (float(value), float(wanted))
    return getattr(left, compare)(right)


def passes(metadata, filter):
    for key, condition in filter.items():
        if key == "$and":
            fits = all(passes(metadata, part) for part in condition)
        elif key == "$or":
            fits = any(passes(metadata, part) for part in condition)
        else:
            value = look_up(metadata, key)
            terms = condition if isinstance(condition, dict) else {"$eq": condition}
            fits = all(holds(value, operator, wanted) for operator, wanted in terms.items())
        if not fits:
            return False
    return True


ODD = [
    *(0, 1, 3, -1, 3.0, 0.5, -2.5, 1e300, 2**53 - 1, True, False, None),
    *("", "3", "a", "A", "b", "é", "e\u0301", "日本", "😀", "'", '"', "%", "_", "null", "true"),
]
STORED = [
    *({"a": value} for value in [*ODD, [], [3], {}, {"b": 3}, [{"b": 3}]]),
    *({"a": {"b": value}} for value in ODD),
    *({"a": value, "c": other} for value in ODD[:6] for other in (3, "3", None)),
    *({}, {"c": 1}, {"A": 3}, {"a.b": 3}, {"a": {"b": {"c": 3}}}),
]


@pytest.fixture(scope="module")
def stored(new_bank):
    memory = new_bank(FakeEmbeddings())
    memory.remember_many(
        [
            {"intent": f"item {n}", "lesson": "lesson", "metadata": metadata}
            for n, metadata in enumerate(STORED)
        ]
    )
    return memory


values = st.sampled_from(ODD)
conditions = st.one_of(
    values,
    st.dictionaries(
        st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]), values, min_size=1
    ),
    st.dictionaries(st.sampled_from(["$in", "$nin"]), st.lists(values, max_size=4), min_size=1),
    st.builds(lambda flag: {"$exists": flag}, st.booleans()),
)
flat = st.dictionaries(
    st.sampled_from(["a", "a.b", "c", "A", "a.b.c", "d"]), conditions, min_size=1, max_size=2
)
filters = st.recursive(
    flat,
    lambda inner: st.builds(
        lambda word, parts: {word: parts},
        st.sampled_from(["$and", "$or"]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=4,
)


@given(filters)
def test_any_filter_lets_through_what_plain_python_lets_through(stored, filter):
    expected = {f"item {n}" for n, metadata in enumerate(STORED) if passes(metadata, filter)}
    assert {found.intent for found in stored.list(limit=None, filter=filter)} == expected


# --- the columns every memory has -------------------------------------------------------------


def test_outcome_source_q_value_and_created_at_can_be_filtered(bank):
    good = bank.remember("task one", "lesson", outcome="success", source="runbook")
    bad = bank.remember("task two", "lesson", outcome="failure")
    bank.reinforce("e", reward=-1, ids=[bad.id])  # Q = -.3

    def ids(filter):
        return {found.id for found in bank.list(filter=filter)}

    assert ids({"outcome": "success"}) == {good.id}
    assert ids({"outcome": {"$ne": "success"}}) == {bad.id}
    assert ids({"source": {"$in": ["runbook", "other"]}}) == {good.id}
    assert ids({"q_value": {"$lt": 0}}) == {bad.id}
    assert ids({"q_value": 0}) == {good.id}
    assert ids({"q_value": "0"}) == ids({"outcome": 3}) == ids({"source": None}) == set()
    assert ids({"created_at": {"$gte": bad.created_at}}) == {bad.id}
    assert ids({"created_at": good.created_at}) == {good.id}
    later = datetime.now(UTC) + timedelta(hours=1)
    assert ids({"created_at": {"$lt": later}}) == {good.id, bad.id}
    assert ids({"outcome": {"$exists": True}}) == {good.id, bad.id}
    assert ids({"outcome": {"$exists": False}}) == set()


def test_a_time_is_compared_as_a_moment_in_whatever_zone(bank):

    found = bank.remember("task", "lesson")
    elsewhere = found.created_at.astimezone(ZoneInfo("Asia/Tokyo"))
    assert [hit.id for hit in bank.list(filter={"created_at": elsewhere})] == [found.id]
    with pytest.raises(InputError, match="without a time zone"):
        bank.list(filter={"created_at": found.created_at.replace(tzinfo=None)})


# --- before the top-k -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crowded(new_bank):
    """A thousand intents of one kind at cosine .95 to .99, six of another kind at .90 and .80."""
    near = {f"near {n}": at_cosine(0.95 + 0.04 * n / 1000) for n in range(1000)}
    far = {"far": at_cosine(0.9), **{f"farther {n}": at_cosine(0.8) for n in range(5)}}
    memory = new_bank(FakeEmbeddings(vectors={"task": at_cosine(1.0), **near, **far}))
    kinds = {name: name.split()[0] for name in (*near, *far)}
    memory.remember_many(
        [
            {"intent": name, "lesson": "lesson", "metadata": {"kind": kind}}
            for name, kind in kinds.items()
        ]
    )
    return memory


def test_a_filter_is_applied_before_the_nearest_intents_are_taken(crowded):
    recall = crowded.recall("task", k=1, fetch_k=1, filter={"kind": "far"}, score_threshold=None)
    assert [hit.memory.intent for hit in recall.memories] == ["far"]
    assert recall.memories[0].similarity == 0.9


def test_all_five_matches_placed_last_are_found(crowded):
    recall = crowded.recall("task", k=5, filter={"kind": "farther"}, score_threshold=None)
    assert {hit.memory.intent for hit in recall.memories} == {f"farther {n}" for n in range(5)}


def test_a_filter_chooses_among_the_memories_of_one_intent(bank):
    for outcome in ("success", "failure", "success"):
        bank.remember("same task", f"{outcome} lesson", outcome=outcome)
    recall = bank.recall("same task", filter={"outcome": "failure"})
    assert [hit.memory.lesson for hit in recall.memories] == ["failure lesson"]


# --- refused ----------------------------------------------------------------------------------

HOSTILE_KEYS = [
    *("", " ", "a b", "a-b", "1a", "a.", ".a", "a..b", "a[0]", "a'", 'a"', "a;--", "a)", "é"),
    *("$.a", "$", "$where", "$regex", "$not", "a\x00", "a\n", "a" * 65, "a." + "b" * 65, "%", "*"),
    *("m.q", "1=1", "a OR 1=1", "a' OR '1'='1", '"; DROP TABLE memories; --', "a\u200b", "\u0430"),
    *(None, 3, True, ("a",), b"a"),
]


@pytest.fixture
def two(open_bank):
    memory = open_bank()
    memory.remember("one", "lesson", metadata={"a": 1})
    memory.remember("two", "lesson", metadata={"a": 2})
    return memory


@pytest.mark.parametrize("key", HOSTILE_KEYS, ids=repr)
def test_a_hostile_key_is_refused_and_nothing_changes(two, rows_of, key):
    before = rows_of()
    if key == "m.q":
        assert two.list(filter={key: 0}) == []  # a path into metadata, never a column
    else:
        for filter in ({key: 1}, {key: {"$gt": 1}}, {"$or": [{"a": 1}, {key: 1}]}):
            with pytest.raises(InputError):
                two.list(filter=filter)
            with pytest.raises(InputError):
                two.recall("one", filter=filter)
    assert rows_of() == before


HOSTILE_VALUES = [
    *("' OR 1=1 --", '"; DROP TABLE memories; --', "%", "_", "*", "\\", "$.a", "{{7*7}}", "\n"),
    *("a'b", "a\u2028b", "../..", "null", "x" * 100_000, "[1]", '{"b": 1}'),
]


def test_a_hostile_value_matches_only_itself(open_bank, rows_of):
    bank = open_bank()
    for number, value in enumerate(HOSTILE_VALUES):
        bank.remember(f"item {number}", "lesson", metadata={"a": value})
    before = rows_of()
    for number, value in enumerate(HOSTILE_VALUES):
        assert [hit.intent for hit in bank.list(filter={"a": value})] == [f"item {number}"]
        assert [hit.intent for hit in bank.list(filter={"a": {"$in": [value]}})] == [
            f"item {number}"
        ]
        assert len(bank.list(filter={"a": {"$ne": value}})) == len(HOSTILE_VALUES) - 1
    assert rows_of() == before


BAD_VALUES = [
    *(math.nan, math.inf, -math.inf, 2**63, -(2**63) - 1, "a\x00b", "\ud800", b"a", 1j),
    *([1], (1,), {1}, object()),
]


@pytest.mark.parametrize("value", BAD_VALUES, ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize("operator", ["$eq", "$ne", "$gt", "$lte", "$in", "$nin"])
def test_an_unusable_value_is_refused(two, operator, value):
    wanted = [value] if operator in ("$in", "$nin") else value
    with pytest.raises(InputError):
        two.list(filter={"a": {operator: wanted}})


@pytest.mark.parametrize(
    "filter",
    [
        *({"a": {"$regex": "x"}}, {"a": {"b": 1}}, {"a": {}}, {"a": {1: 1}}, {"a": {"$gt ": 1}}),
        *({"a": {"$EQ": 1}}, {"a": {"$in": 3}}, {"a": {"$in": "abc"}}, {"a": {"$nin": {"b": 1}}}),
        *({"a": {"$exists": 1}}, {"a": {"$exists": None}}, {"$and": []}, {"$or": {"a": 1}}),
        *({"$and": [1]}, {"$or": [{}]}, {"$or": "ab"}, {"$not": {"a": 1}}, [], "a", 3, True),
        *([{"a": 1}], {"a": {"$and": [{"b": 1}]}}),
    ],
    ids=repr,
)
def test_a_filter_of_another_form_is_refused_although_nothing_is_searched(open_bank, filter):
    empty = open_bank(":memory:")
    for call in (lambda: empty.list(filter=filter), lambda: empty.recall("task", filter=filter)):
        with pytest.raises(InputError):
            call()


def nested(depth, word="$and"):
    filter = {"a": 1}
    for _ in range(depth - 1):
        filter = {word: [filter]}
    return filter


def test_five_levels_are_allowed_and_a_thousand_are_refused_without_recursing(two):
    assert len(two.list(filter=nested(5))) == 1
    for depth in (6, 7, 1000):
        with pytest.raises(InputError, match="deeper than 5"):
            compile_filter(nested(depth))
    loop = {}
    loop["$or"] = [loop]
    with pytest.raises(InputError, match="deeper than 5"):
        compile_filter(loop)


def test_a_hundred_terms_are_allowed_and_a_hundred_and_one_refused(two):
    assert len(two.list(filter={"$or": [{"a": n} for n in range(100)]})) == 2
    with pytest.raises(InputError, match="more than 100 terms"):
        two.list(filter={"$or": [{"a": n} for n in range(101)]})
    assert len(two.list(filter={"a": {"$in": list(range(100))}})) == 2
    with pytest.raises(InputError, match="more than 100 values"):
        two.list(filter={"a": {"$in": list(range(101))}})


def test_the_largest_filter_takes_no_time_to_speak_of(two):
    start = time.process_time()
    long = ".".join(["a" * 64] * 5)
    terms = [{long: {"$nin": [f"{n} {m}" for m in range(100)]}} for n in range(100)]
    assert len(two.list(filter={"$and": terms})) == 2
    assert len(two.recall("one", filter={"$and": terms}, score_threshold=None).ids) == 2
    columns = [{"source": {"$nin": [f"{n} {m}" for m in range(100)]}} for n in range(100)]
    assert len(two.list(filter={"$and": columns})) == 2
    assert time.process_time() - start < 3
