import subprocess
import sys

import numpy as np
import pytest

from langchain_memrl.errors import ConfigError
from langchain_memrl.offline import HashingEmbeddings, WordLlamaEmbeddings

RESET = "How do I reset the router?"
RESETTING = "resetting a router"
INVOICE = "The invoice shows the wrong amount."


def cosine(embeddings, left, right):
    a, b = embeddings.embed_documents([left, right])
    return float(np.dot(a, b))


@pytest.fixture(scope="module")
def wordllama():
    return WordLlamaEmbeddings()


def test_hashed_vectors_are_unit_lists_of_plain_floats():
    vectors = HashingEmbeddings(dimensions=64).embed_documents([RESET, INVOICE, "", "!"])
    assert all(type(number) is float for vector in vectors for number in vector)
    assert [len(vector) for vector in vectors] == [64] * 4
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(4))


def test_hashed_query_and_document_are_the_same_vector():
    embeddings = HashingEmbeddings()
    assert embeddings.embed_query(RESET) == embeddings.embed_documents([INVOICE, RESET])[1]


def test_hashed_vectors_ignore_case_spacing_and_unicode_form():
    embeddings = HashingEmbeddings()
    assert cosine(embeddings, "Café  Router", "cafe\u0301 ROUTER\n") == pytest.approx(1.0)


def test_shared_word_parts_make_hashed_texts_similar():
    embeddings = HashingEmbeddings()
    assert cosine(embeddings, RESET, RESETTING) > cosine(embeddings, RESET, INVOICE) + 0.2


def test_one_hashed_word_has_the_weights_worked_out_by_hand():
    # "ab" gives the word itself and the grams " ab", "ab ", " ab ": four features of weight 1,
    # none of which meet in a large enough vector.
    vector = np.array(HashingEmbeddings(dimensions=1 << 16).embed_query("ab"))
    assert sorted(np.abs(vector[vector != 0])) == pytest.approx([0.5] * 4)


def test_hashed_vectors_are_the_same_in_another_process():
    code = (
        "from langchain_memrl.offline import HashingEmbeddings as H;"
        f"print(H(dimensions=32).embed_query({RESET!r}))"
    )
    environment = {"PYTHONHASHSEED": "7"}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert run.stdout.strip() == str(HashingEmbeddings(dimensions=32).embed_query(RESET))


def test_a_vector_needs_at_least_one_dimension():
    with pytest.raises(ConfigError, match="at least 1"):
        HashingEmbeddings(dimensions=0)


def test_no_text_gives_no_vector(wordllama):
    assert HashingEmbeddings().embed_documents([]) == []
    assert wordllama.embed_documents([]) == []


def test_wordllama_gives_unit_lists_of_256_plain_floats(wordllama):
    vector = wordllama.embed_query(RESET)
    assert len(vector) == 256
    assert type(vector[0]) is float
    assert np.linalg.norm(vector) == pytest.approx(1.0)


def test_wordllama_sees_a_paraphrase_that_shares_no_word(wordllama):
    ask, same, other = "the car will not start", "vehicle engine dead", "password forgotten"
    assert cosine(wordllama, ask, same) > cosine(wordllama, ask, other) + 0.1
    hashed = HashingEmbeddings()
    assert cosine(hashed, ask, same) < cosine(hashed, ask, other) + 0.1


def test_wordllama_gives_the_empty_text_a_finite_vector(wordllama):
    assert wordllama.embed_query("") == [0.0] * 256


def test_a_missing_wordllama_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(ImportError, match=r"langchain-memrl\[demo\]"):
        WordLlamaEmbeddings()


def test_loading_wordllama_leaves_the_root_logger_alone():
    code = (
        "import logging; from langchain_memrl.offline import WordLlamaEmbeddings as W; W();"
        "print(logging.getLogger().level, logging.getLogger().handlers)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "30 []"
