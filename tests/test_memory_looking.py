"""get, list, search_text, history, episode, stats: what a bank tells without a vector."""

import pytest

from langchain_memrl.errors import InputError


@pytest.mark.parametrize("limit", [-1, 2.5, "5", True])
def test_a_limit_that_is_no_count_is_refused(bank, limit):
    for call in (bank.list, lambda limit: bank.search_text("router", limit=limit)):
        with pytest.raises(InputError, match="limit is"):
            call(limit=limit)
