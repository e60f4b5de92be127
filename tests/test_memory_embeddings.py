"""The embedding model: asked as little as possible, checked, and told apart from another one."""

import pytest

from langchain_memrl.errors import EmbeddingError, EmbeddingMismatchError


def test_a_bad_answer_is_not_kept_for_the_next_call(memory, embeddings):
    memory.remember("reset a router", "lesson")
    embeddings.break_call(1, "dimension")
    with pytest.raises(EmbeddingError, match=r"sizes \[15\], expected 16"):
        memory.remember("bake a cake", "lesson")
    memory.remember("bake a cake", "lesson")
    assert memory.stats().memories == 2


def test_a_wrong_answer_to_the_probes_is_not_kept_for_the_next_call(form, open_bank, embeddings):
    open_bank().remember("reset a router", "lesson")
    memory = form(open_bank())
    embeddings.break_call(1, "shuffled")
    with pytest.raises(EmbeddingMismatchError, match=r"expected at least 0\.999"):
        memory.recall("reset a router")
    assert len(memory.recall("reset a router").ids) == 1
