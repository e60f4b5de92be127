import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_memrl.store.embedded import index as index_module
from langchain_memrl.store.embedded.coarse import LargeIndex
from langchain_memrl.store.embedded.index import FaissIndex, NumpyIndex

DIMENSION = 4


def units(rows):
    rows = np.asarray(rows, dtype=np.float64)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def filled(kind, rows, first=1):
    index = kind(len(rows[0]))
    index.add(np.arange(first, first + len(rows)), units(rows))
    return index


@pytest.fixture(params=[NumpyIndex, FaissIndex, LargeIndex])
def kind(request):
    return request.param


def test_ids_and_cosines_by_hand(kind):
    # cosines with (1, 0): 1, 3/5, 0 and -1
    index = filled(kind, [[3, 4], [-1, 0], [9, 0], [0, 2]])
    hits = index.search(units([[2, 0]])[0], 4)
    assert hits.ids.tolist() == [3, 1, 4, 2]
    assert hits.similarity.tolist() == [1.0, 0.6, 0.0, -1.0]


def test_equal_cosines_go_to_the_newer_id(kind):
    index = filled(kind, [[1, 0], [0, 1], [1, 0], [1, 0]])
    assert index.search(units([[1, 0]])[0], 2).ids.tolist() == [4, 3]


def test_only_allowed_ids_are_found(kind):
    index = filled(kind, [[1, 0], [1, 0.1], [1, 0.2], [0, 1]])
    hits = index.search(units([[1, 0]])[0], 2, np.array([4, 3, 77]))
    assert hits.ids.tolist() == [3, 4]


def test_no_allowed_id_finds_nothing(kind):
    hits = filled(kind, [[1, 0]]).search(units([[1, 0]])[0], 2, np.array([], dtype=np.int64))
    assert (hits.ids.size, hits.similarity.size) == (0, 0)


def test_an_empty_index_finds_nothing(kind):
    hits = kind(2).search(units([[1, 0]])[0], 3)
    assert (hits.ids.size, hits.similarity.size) == (0, 0)


def test_removed_ids_are_not_found_and_unknown_ones_ignored(kind):
    index = filled(kind, [[1, 0], [1, 0.1], [0, 1]])
    index.remove(np.array([1, 99]))
    assert index.search(units([[1, 0]])[0], 9).ids.tolist() == [2, 3]
    assert index.ids.tolist() == [2, 3]


def test_an_index_emptied_by_removal_can_be_filled_again(kind):
    index = filled(kind, [[1, 0], [0, 1]])
    index.remove(np.array([1, 2]))
    assert index.search(units([[1, 0]])[0], 9).ids.size == 0
    index.add(np.array([3]), units([[1, 0]]))
    assert index.search(units([[1, 0]])[0], 9).ids.tolist() == [3]


def test_the_vectors_come_back_as_they_went_in(kind):
    rows = units(np.random.default_rng(0).normal(size=(50, 8)))
    index = kind(8)
    index.add(np.arange(50), rows)
    index.remove(np.array([0, 49]))
    assert np.array_equal(index.vectors, rows[1:49])


def test_near_ties_are_ordered_as_the_reference_orders_them():
    # A thousand rows within float32 noise of each other: their raw products are in random order.
    rng = np.random.default_rng(2)
    base = rng.normal(size=256)
    rows = units(base + rng.normal(size=(1000, 256)) * 1e-5)
    reference, fast = NumpyIndex(256), FaissIndex(256)
    for index in (reference, fast):
        index.add(np.arange(1000), rows)
    for limit in (1, 7, 500, 1000):
        expected, got = (index.search(rows[3], limit) for index in (reference, fast))
        assert got.ids.tolist() == expected.ids.tolist()
        assert got.similarity.tolist() == expected.similarity.tolist()


# Few directions and tiny differences, so that duplicates and near ties are common.
coordinates = st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0, 1.0 + 1e-7, 1.0 - 1e-6, 0.5 + 1e-6])
vectors = st.lists(coordinates, min_size=DIMENSION, max_size=DIMENSION).filter(any)
steps = st.one_of(
    st.tuples(st.just("add"), st.lists(vectors, min_size=1, max_size=12)),
    st.tuples(st.just("remove"), st.sets(st.integers(1, 60), max_size=8)),
    st.tuples(
        st.just("search"),
        vectors,
        st.integers(1, 12),
        st.none() | st.sets(st.integers(1, 60), max_size=20),
    ),
)


@given(
    st.lists(vectors, max_size=12),
    st.lists(steps, min_size=2, max_size=15),
    vectors,
    st.sampled_from([1, 3 * 4 * DIMENSION, index_module.PIECE_BYTES]),
)
def test_faiss_gives_the_ids_and_the_values_of_the_reference(mapped, program, last, piece_bytes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "PIECE_BYTES", piece_bytes)
        run_beside_the_reference(mapped, program, last)


def run_beside_the_reference(mapped, program, last):
    reference, fast = NumpyIndex(DIMENSION), FaissIndex(DIMENSION)
    next_id = 1
    if mapped:
        rows, next_id = units(mapped), 1 + len(mapped)
        rows.flags.writeable = False
        fast = FaissIndex.mapped(np.arange(1, next_id), rows)
        reference.add(np.arange(1, next_id), rows)
    for name, *arguments in [*program, ("search", last, 5, None)]:
        if name == "add":
            rows = units(arguments[0])
            for index in (reference, fast):
                index.add(np.arange(next_id, next_id + len(rows)), rows)
            next_id += len(rows)
        elif name == "remove":
            for index in (reference, fast):
                index.remove(np.array(sorted(arguments[0]), dtype=np.int64))
        else:
            query, limit, allowed = arguments
            some = None if allowed is None else np.array(sorted(allowed), dtype=np.int64)
            expected = reference.search(units([query])[0], limit, some)
            got = fast.search(units([query])[0], limit, some)
            assert got.ids.tolist() == expected.ids.tolist()
            assert got.similarity.tolist() == expected.similarity.tolist()
    assert np.array_equal(reference.vectors, fast.vectors)
    assert np.array_equal(reference.ids, fast.ids)
