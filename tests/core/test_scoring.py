import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_memrl.core.scoring import Z_LIMIT, blend, cosines, standardize
from langchain_memrl.core.selection import rank

NORMALIZATIONS = ("zscore", "pool", "none")


def row(*numbers):
    return np.array(numbers, dtype=np.float64)


# --- blend, by hand ---------------------------------------------------------------------------

# The pool of the three tests below: similarities .9 .5 .1 and Q 1 0 -1.
# Q: mean 0, population variance (1 + 0 + 1) / 3, std .816497, so q_hat = 1 / .816497 = 1.224745.
SIMILARITY, Q = row(0.9, 0.5, 0.1), row(1.0, 0.0, -1.0)


def test_zscore_standardises_similarity_by_the_bank_and_q_by_the_pool():
    # sim_hat = (.9 - .5) / .2 = 2; score = .75 * 2 + .25 * 1.224745 = 1.806186
    scores = blend(SIMILARITY, Q, q_weight=0.25, bank_mean=0.5, bank_std=0.2)
    np.testing.assert_allclose(scores.similarity_part, [2, 0, -2], atol=1e-12)
    np.testing.assert_allclose(scores.q_part, [1.224745, 0, -1.224745], atol=1e-6)
    np.testing.assert_allclose(scores.score, [1.806186, 0, -1.806186], atol=1e-6)


def test_pool_standardises_both_by_the_pool():
    # similarity: mean .5, std .4 * .816497 = .326599, so sim_hat = .4 / .326599 = 1.224745 as well
    scores = blend(SIMILARITY, Q, q_weight=0.25, normalization="pool", bank_mean=9, bank_std=9)
    np.testing.assert_allclose(scores.similarity_part, [1.224745, 0, -1.224745], atol=1e-6)
    np.testing.assert_allclose(scores.score, [1.224745, 0, -1.224745], atol=1e-6)


def test_none_mixes_the_raw_numbers():
    # .75 * .9 + .25 * 1 = .925; .75 * .5 = .375; .75 * .1 - .25 = -.175
    scores = blend(SIMILARITY, Q, q_weight=0.25, normalization="none", bank_mean=9, bank_std=9)
    np.testing.assert_allclose(scores.score, [0.925, 0.375, -0.175], atol=1e-12)


def test_zscore_does_not_clip_similarity():
    # (1 - 0) / .1 = 10
    assert blend(row(1.0), row(0.0), q_weight=0.0).score[0] == pytest.approx(10)


def test_the_floor_keeps_one_q_of_a_thousandth_from_dominating():
    # mean .0001, std sqrt(.1 * .9) * .001 = .0003; with the floor: .0009 / .1 = .009, else 3
    scores = blend(np.zeros(10), row(*[0] * 9, 0.001), q_weight=1.0)
    np.testing.assert_allclose(scores.q_part, [*[-0.001] * 9, 0.009], atol=1e-12)


def test_the_floor_on_similarity_is_two_hundredths():
    # mean .5005, std .0005; .0005 / .02 = .025
    scores = blend(row(0.5, 0.501), np.zeros(2), q_weight=0.0, normalization="pool")
    np.testing.assert_allclose(scores.similarity_part, [-0.025, 0.025], atol=1e-12)


def test_standardised_values_are_clipped_at_three():
    # sixteen 0 and one 1: mean 1/17, std 4/17; z = (16/17) / (4/17) = 4, clipped; -1/4 for the rest
    np.testing.assert_allclose(standardize(row(*[0] * 16, 1), 0.1), [*[-0.25] * 16, 3])
    np.testing.assert_allclose(standardize(row(*[0] * 16, -1), 0.1), [*[0.25] * 16, -3])


def test_a_constant_pool_is_all_zero_and_an_empty_one_stays_empty():
    assert standardize(row(0.7, 0.7), 0.1).tolist() == [0, 0]
    assert blend(row(), row(), q_weight=0.5).score.size == 0


# --- cosines, by hand -------------------------------------------------------------------------


def test_cosine_does_not_depend_on_length():
    # (3, 4) . (4, 3) = 24, lengths 5 and 5: 24 / 25
    rows = np.array([[3, 4], [0.03, 0.04], [300, 400], [-3, -4]], dtype=np.float32)
    assert cosines(rows, np.array([4, 3])).tolist() == [0.96, 0.96, 0.96, -0.96]


def test_cosine_is_rounded_to_six_decimals():
    # 1 / sqrt(5) = .44721359...
    assert cosines(np.array([[1.0, 2.0]]), np.array([1.0, 0.0])).tolist() == [0.447214]


@pytest.mark.parametrize("seed", range(20))
def test_the_cosine_of_a_float32_vector_with_itself_is_exactly_one(seed):
    vector = np.random.default_rng(seed).normal(size=384).astype(np.float32)
    vector /= np.linalg.norm(vector)
    assert cosines(np.stack([vector, -vector]), vector).tolist() == [1.0, -1.0]


@pytest.mark.parametrize("first", [0.0, -1e-9])
def test_a_cosine_of_zero_has_no_sign(first):
    value = cosines(np.array([[first, 1.0]]), np.array([1.0, 0.0]))
    assert value.tolist() == [0.0]
    assert not np.signbit(value[0])


# --- properties -------------------------------------------------------------------------------

grid = st.integers(-10, 10).map(lambda tenths: tenths / 10)  # coarse, so that ties are common
pools = st.lists(
    st.tuples(
        grid | st.floats(-1, 1).map(lambda x: round(x, 6) + 0.0),
        grid | st.floats(-1, 1).map(lambda x: round(x, 9) + 0.0),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=40,
)


def ranked(pool, **settings):
    """Places of the pool, best first; a memory's age is its place."""
    similarity, q, selections = (np.array(column) for column in zip(*pool, strict=True))
    scores = blend(similarity, q, **settings)
    return rank(scores.score, similarity, selections, np.arange(len(pool))), scores


@given(pools, st.sampled_from(NORMALIZATIONS), st.floats(0.001, 0.9))
def test_q_weight_zero_gives_the_order_of_similarity(pool, normalization, std):
    order, _ = ranked(pool, q_weight=0.0, normalization=normalization, bank_std=std)
    if normalization == "pool":  # equal beyond three standard deviations
        z = standardize(np.array([p[0] for p in pool]), 0.02)
        assert (np.diff(z[order]) <= 0).all()
    else:
        assert (np.diff([pool[place][0] for place in order]) <= 0).all()


@given(pools, st.sampled_from(NORMALIZATIONS))
def test_q_weight_one_never_contradicts_the_order_of_q(pool, normalization):
    order, scores = ranked(pool, q_weight=1.0, normalization=normalization)
    inside = [place for place in order if abs(scores.q_part[place]) < Z_LIMIT]
    assert (np.diff([pool[place][1] for place in inside]) <= 0).all()
    assert (np.diff(scores.q_part[order]) <= 0).all()


def ages_in_order(pool, places, settings):
    """The pool given in another order; its memories' own numbers, best first."""
    similarity, q, selections = (np.array(column)[places] for column in zip(*pool, strict=True))
    scores = blend(similarity, q, **settings)
    return places[rank(scores.score, similarity, selections, places)].tolist()


def test_a_tie_is_decided_alike_in_whatever_order_the_pool_comes():
    # Similarity is (sqrt 2, -1/sqrt 2, -1/sqrt 2) and Q (-1/sqrt 2, sqrt 2, -1/sqrt 2) in standard
    # deviations: the first two have the same score.
    pool = [(0.8, -1.0, 0), (0.5, 0.9, 0), (0.5, -1.0, 0)]
    settings = {"q_weight": 0.5, "normalization": "pool"}
    orders = [np.array(places) for places in itertools.permutations(range(3))]
    assert len({tuple(ages_in_order(pool, places, settings)) for places in orders}) == 1


@given(pools, st.sampled_from(NORMALIZATIONS), grid, st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_the_order_of_the_input(pool, normalization, weight, random):
    settings = {"q_weight": abs(weight), "normalization": normalization}
    places = np.arange(len(pool))
    mixed = np.array(random.sample(range(len(pool)), len(pool)))
    assert ages_in_order(pool, places, settings) == ages_in_order(pool, mixed, settings)


@given(pools, st.sampled_from(("zscore", "pool")))
def test_the_q_part_stays_within_three_standard_deviations(pool, normalization):
    _, scores = ranked(pool, q_weight=0.5, normalization=normalization)
    assert (np.abs(scores.q_part) <= Z_LIMIT).all()
