"""Without a graph the server's answers are those of `NumpyIndex`, ties included."""

import itertools

import numpy as np
import pytest
from fakes import FakeEmbeddings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from langchain_memrl.store.embedded.index import NumpyIndex

DIMENSION = 4
GRID = [
    np.array(one) / np.linalg.norm(one)
    for one in itertools.product((-1, 0, 1), repeat=4)
    if any(one)
]  # 80 directions, many of them at the same angle
NUMBERS = itertools.count()

places = st.lists(st.integers(0, len(GRID) - 1), min_size=1, max_size=40)


@pytest.fixture
def bank(open_bank):
    return open_bank(embeddings=FakeEmbeddings(DIMENSION))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    places=places,
    task=st.integers(0, len(GRID) - 1),
    nudge=st.sampled_from([0.0, 1e-7, 1e-6, 0.01]),
    limit=st.integers(1, 50),
    dropped=st.sets(st.integers(0, 39)),
)
def test_any_vectors_are_ranked_as_by_numpy(bank, places, task, nudge, limit, dropped):
    space, vectors = f"space {next(NUMBERS)}", bank.embedder._embeddings.vectors
    texts = [f"{space} {n}" for n in range(len(places))]
    vectors |= {text: GRID[place] for text, place in zip(texts, places, strict=True)}
    vectors["task"] = GRID[task] + np.array([nudge, 0, 0, 0])
    made = bank.remember_many(
        [{"intent": text, "lesson": "lesson"} for text in texts], namespace=space
    )
    with bank._store._server.read() as db:
        rows = db.execute(
            "SELECT id, text FROM intents WHERE namespace = ? ORDER BY id", (space,)
        ).fetchall()
    assert [text for _, text in rows] == texts
    index = NumpyIndex(DIMENSION)
    index.add(np.array([id for id, _ in rows]), np.stack(bank.embedder.embed(texts)))
    gone = [n for n in dropped if n < len(texts)]
    excluded = [texts[n] for n in gone]
    allowed = np.array([id for n, (id, _) in enumerate(rows) if n not in gone], dtype=np.int64)
    (query,) = bank.embedder.embed(["task"])
    true = index.search(query, limit, allowed)
    with bank._store._server.one_state() as db:
        found = bank._store._nearest.search(
            db, space, query, limit, None, np.array([rows[n][0] for n in gone], dtype=np.int64)
        )
    assert found.ids.tolist() == true.ids.tolist()
    assert found.similarity.tolist() == true.similarity.tolist()
    recall = bank.recall(
        "task",
        *(),
        k=50,
        fetch_k=limit,
        q_weight=0,
        score_threshold=None,
        namespace=space,
        exclude_intents=excluded,
    )
    by_text = {one.intent: one.id for one in made}
    expected = {by_text[dict(rows)[id]] for id in true.ids.tolist()}
    assert set(recall.ids) == expected
