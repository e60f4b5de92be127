"""What is accepted from outside: texts, names, metadata."""

import math

import pytest

from langchain_memrl.errors import InputError
from langchain_memrl.inputs import TEXT_LIMIT, check_metadata, check_name, check_text, is_blank

BLANK = [
    "",
    " ",
    "\t\n\r",
    "\u00a0\u2003\u3000",
    "\u200b\u200d\ufeff",
    "\u2028",
    "\x1b\x07",
    "\xad",
]
VISIBLE = ["a", " a ", "0", ".", "é", "日本", "😀", "שלום", "\u200ba", "e\u0301", "٣"]
VISIBLE += ["\ue000", "\U0001fae9"]  # private use, and an emoji that is newer than Python 3.11


@pytest.mark.parametrize("text", BLANK, ids=ascii)
def test_a_text_without_a_visible_character_is_blank(text):
    assert is_blank(text)
    with pytest.raises(InputError, match=r"^lesson is blank"):
        check_text("lesson", text)
    if "\x00" not in text:
        assert check_text("lesson", text, blank=True) == text


@pytest.mark.parametrize("text", VISIBLE, ids=ascii)
def test_a_visible_text_comes_back_as_it_is(text):
    assert check_text("lesson", text) == text


def test_one_mebibyte_is_accepted_and_one_byte_more_refused():
    assert TEXT_LIMIT == 1024 * 1024
    assert check_text("lesson", "a" * TEXT_LIMIT)
    with pytest.raises(InputError, match=r"^lesson has 1048577 bytes; at most 1048576"):
        check_text("lesson", "a" * (TEXT_LIMIT + 1))


def test_the_limit_counts_bytes_of_utf_8():
    assert check_text("lesson", "é" * (TEXT_LIMIT // 2))
    with pytest.raises(InputError, match="bytes"):
        check_text("lesson", "é" * (TEXT_LIMIT // 2) + "a")


def test_a_nul_and_a_lone_surrogate_are_refused_by_their_place():
    with pytest.raises(InputError, match="NUL at character 2"):
        check_text("lesson", "ab\x00c")
    with pytest.raises(InputError, match="lone surrogate at character 1"):
        check_text("lesson", "a\ud83dc")


@pytest.mark.parametrize("value", [None, 3, b"text", ["a"], math.nan])
def test_only_a_str_is_a_text(value):
    with pytest.raises(InputError, match="expected a str"):
        check_text("lesson", value)


@pytest.mark.parametrize("name", ["a", "or", "a b", "A/a", "../x", "日本", "a" * 255])
def test_a_name_is_any_visible_text_of_at_most_255_bytes(name):
    assert check_name("namespace", name) == name


@pytest.mark.parametrize("name", ["", " ", "a" * 256, "日" * 86, "a\x00", "\udc00", None, 3])
def test_other_names_are_refused(name):
    with pytest.raises(InputError, match=r"^namespace"):
        check_name("namespace", name)


GOOD = [
    {},
    {"a": 1, "b": 2.5, "c": "x", "d": True, "e": None, "f": [1, [2]], "g": {"h": {}}},
    {"": 1, "a b": 2, "lc": 1, "$gt": 3, "日本": "😀", "a.b": "'; DROP TABLE memories"},
    {"escaped": r"\u0000", "\\u0000": "\\\\u0000"},
    {"big": 2**62, "exponent": 1e300, "minus": -0.5, "empty": "", "blank": " "},
]


@pytest.mark.parametrize("metadata", GOOD, ids=repr)
def test_plain_json_comes_back_as_a_copy(metadata):
    copy = check_metadata(metadata)
    assert copy == metadata
    assert copy is not metadata


def test_a_change_made_later_does_not_reach_the_copy():
    metadata = {"tags": ["a"]}
    copy = check_metadata(metadata)
    metadata["tags"].append("b")
    assert copy == {"tags": ["a"]}


def test_no_metadata_is_an_empty_dict():
    assert check_metadata(None) == {}


def loop():
    value = {}
    value["self"] = value
    return value


BAD = [
    *({"a": math.nan}, {"a": math.inf}, {"a": [-math.inf]}, {"a": {1, 2}}, {"a": b"x"}),
    *({"a": object()}, {1: "a"}, {None: 1}, {"a": (1, 2)}, {"a": {2: 1}}, {"a": "\x00"}),
    *(
        {"a": "\ud800"},
        {"\x00": 1},
        {"a": "\\\x00"},
        {"a": "\\u0000\x00"},
        {"a": "x" * TEXT_LIMIT},
        [],
        "a",
        3,
        loop(),
    ),
]


@pytest.mark.parametrize("metadata", BAD, ids=lambda value: ascii(value)[:30])
def test_metadata_that_would_not_come_back_is_refused(metadata):
    with pytest.raises(InputError, match=r"^metadata"):
        check_metadata(metadata)
