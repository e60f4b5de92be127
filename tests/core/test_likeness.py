"""Two lessons are alike where one adds nothing to the other for whoever reads both."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_memrl.core.likeness import ALIKE, LONGEST, alike, leaders, likeness, words_of

LESSON = "Hold the reset button of the router for 10 s, and wait for its green light."
LONG = " ".join(f"step{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(100))


def are_alike(one, other):
    """Both ways, and by the first of their kind too."""
    both = alike(likeness(one), likeness(other))
    assert both == alike(likeness(other), likeness(one))
    return both


SAME = {
    "itself": LESSON,
    "capitals": LESSON.upper(),
    "white space": LESSON.replace(" ", "\n  "),
    "no punctuation": LESSON.replace(",", "").rstrip("."),
    "other punctuation": LESSON.replace(", and", " - and") + "!",
    "markdown": "* **Hold**" + LESSON.removeprefix("Hold").replace("reset", "`reset`"),
    "typographic quotes": LESSON.replace("reset", "\u201creset\u201d"),
    "no article": LESSON.replace("the ", ""),
    "politeness": "Please always " + LESSON,
    "then": LESSON.replace("and", "then"),
    "episode": "Episode 17: " + LESSON,
    "episode at the end": LESSON + " (episode 4)",
    "run": "Run 12: " + LESSON,
    "run in brackets": LESSON + " (run 3)",
    "attempt": "Attempt no. 9 - " + LESSON,
    "job": LESSON + " [job job-0042]",
    "ticket": LESSON + " [ticket #4711]",
    "label": "17. " + LESSON,
    "task": "Task 3: " + LESSON,
}


@pytest.mark.parametrize("other", SAME.values(), ids=SAME)
def test_what_says_nothing_else_is_alike(other):
    assert are_alike(LESSON, other)
    assert leaders([LESSON, other]) == [True, False]


def test_numbers_of_two_episodes_make_no_difference():
    texts = [f"Episode {n}: {LESSON} (run {n})" for n in range(50)]
    assert leaders(texts) == [True] + [False] * 49


OTHER = {
    "number": LESSON.replace("10", "12"),
    "unit": LESSON.replace("10 s", "10 min"),
    "sign": LESSON.replace("10", "-10"),
    "fraction": LESSON.replace("10", ".10"),
    "one word": LESSON.replace("green", "red"),
    "the first word": LESSON.replace("Hold", "Avoid"),
    "the last word": LESSON.replace("light", "label"),
    "not": LESSON.replace("Hold", "Do not hold"),
    "a word more": LESSON.replace("button", "button inside"),
    "a word more at the end": LESSON + " Twice.",
    "a word more at the beginning": "Never " + LESSON,
    "a word less": LESSON.replace(" reset", ""),
    "order": "Wait for the green light of the router for 10 s, and hold its reset button.",
}


@pytest.mark.parametrize("other", OTHER.values(), ids=OTHER)
def test_fifteen_words_with_a_crucial_one_changed_are_not_alike(other):
    assert len(LESSON.split()) in (15, 16)
    assert not are_alike(LESSON, other)
    assert leaders([LESSON, other]) == [True, True]


@pytest.mark.parametrize("place", [0, 1, 7, 13, 14])
def test_one_of_fifteen_words_is_never_overlooked_wherever_it_stands(place):
    words = LONG.split()[:15]
    changed = [*words[:place], "other", *words[place + 1 :]]
    assert not are_alike(" ".join(words), " ".join(changed))


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({50: "other"}, True),  # (98 - 3) / (98 + 3) = .94
        ({50: "42"}, False),
        ({50: "not"}, False),
        ({50: "!ready"}, False),
        ({20: "other", 60: "other"}, False),  # (98 - 6) / (98 + 6) = .88
    ],
)
def test_in_a_long_text_one_plain_word_may_differ_but_no_number_and_no_negation(changed, same):
    words = LONG.split()
    assert are_alike(LONG, " ".join(changed.get(i, word) for i, word in enumerate(words))) is same


@pytest.mark.parametrize(("words", "same"), [(15, False), (58, False), (59, True)])
@pytest.mark.parametrize("place", [0, 1, 7, -1])
def test_another_word_anywhere_counts_up_to_fifty_eight_words(words, same, place):
    # n words have n - 2 triples: (56 - 3) / (56 + 3) = .898 and (57 - 3) / (57 + 3) = .9
    text = LONG.split()[:words]
    changed = list(text)
    changed[place] = "other"
    assert ALIKE == 0.9
    assert are_alike(" ".join(text), " ".join(changed)) is same


@pytest.mark.parametrize(("words", "same"), [(15, False), (57, False), (58, True)])
def test_a_word_more_at_an_end_counts_too(words, same):
    text = LONG.split()[:words]
    assert are_alike(" ".join(text), " ".join([*text, "more"])) is same
    assert are_alike(" ".join(text), " ".join(["more", *text])) is same


SHORT = [
    ("yes", "no"),
    ("channel 6", "channel 40"),
    ("use -f", "use f"),
    ("a != b", "a = b"),
    ("x > 3", "x < 3"),
    ("50 %", "50"),
    ("👍", "👎"),
    ("!", "?"),
    ("don't ask", "ask"),
    ("wait .5 s", "wait 5 s"),
    ("make --jobs 4", "make --jobs 8"),
    ("run 3 replicas", "run 5 replicas"),
    ("retry 404: no", "retry 500: no"),
    ("日本語です", "中国語です"),
    ("check if a!=b first", "check if a=b first"),
    ("the answer is (3)", "the answer is (4)"),
    ("fix issue #17", "fix issue #18"),
    ("return [0]", "return [1]"),
    ("choose (1) then stop", "choose (2) then stop"),
    ("read lesson 3 of the manual", "read lesson 4 of the manual"),
    ("reply with example 2", "reply with example 3"),
    ("use task 3 template", "use task 9 template"),
    ("ticket vpn-1 goes to Cedar", "ticket badge-2 goes to Cedar"),
    ("job nginx2 must restart", "job redis7 must restart"),
    ("task priority-1 first", "task delay-9 first"),
    ("C#", "C"),
    ("C++", "C"),
    ("answer: A", "answer:"),
]


@pytest.mark.parametrize("pair", SHORT, ids=str)
def test_short_texts_are_alike_only_when_equal(pair):
    one, other = pair
    assert not are_alike(one, other)
    assert leaders([one, other, one.upper(), f" {other} "]) == [True, True, False, False]


def test_of_a_very_long_text_only_an_equal_one_is_alike():
    text = LONG * (LONGEST // len(LONG) + 1)
    assert are_alike(text, text.upper())
    assert not are_alike(text, text + " more")


def test_the_first_of_each_kind_leads():
    texts = ["b c d", "A b.", "a b", "B C D!", "e"]
    assert leaders(texts) == [True, True, False, False, True]
    assert leaders([]) == []


@given(st.lists(st.text(max_size=40), max_size=8))
def test_any_text_is_like_itself_and_something_always_leads(texts):
    first = leaders(texts)
    assert first[:1] == [True] * bool(texts)
    assert leaders([*texts, *texts])[len(texts) :] == [False] * len(texts)
    assert all(are_alike(text, text) for text in texts)


@given(st.lists(st.sampled_from(LONG.split()), min_size=1, max_size=60))
def test_looking_at_pieces_first_overlooks_no_pair_that_is_written_alike(words):
    """What is compared before triples are counted may only save work."""
    one, other = " ".join(words), "  ".join([*words, "extra"])
    assert leaders([one, other])[1] is not are_alike(one, other)


def test_the_words_that_count_are_these():
    assert words_of("Please hold THE (reset) button: for .5 s, then don\u2019t!") == (
        ["hold", "reset", "button", "for", ".5", "s", "don't"]
    )
