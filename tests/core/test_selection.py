import numpy as np
import pytest

from langchain_memrl.core.selection import choose, nearest, prefer, rank


def order(*rows):
    """Places of (score, similarity, selections, age) rows, best first."""
    scores, similarity, selections, age = zip(*rows, strict=True)
    return rank(
        np.array(scores, dtype=float),
        np.array(similarity, dtype=float),
        np.array(selections),
        np.array(age),
    ).tolist()


def test_a_higher_score_comes_first_whatever_the_rest():
    assert order((0.1, 0.9, 0, 9), (0.2, 0.1, 9, 1)) == [1, 0]


def test_equal_scores_are_decided_by_similarity():
    assert order((0.5, 0.1, 0, 9), (0.5, 0.2, 9, 1)) == [1, 0]


def test_then_the_less_selected_comes_first():
    assert order((0.5, 0.2, 3, 9), (0.5, 0.2, 2, 1)) == [1, 0]


def test_then_the_newer_comes_first():
    assert order((0.5, 0.2, 2, 1), (0.5, 0.2, 2, 9)) == [1, 0]


def test_without_exploration_the_k_best_are_certain():
    choice = choose(np.array([3, 1, 0, 2]), 2)
    assert choice.chosen.tolist() == [3, 1]
    assert choice.probability.tolist() == [0, 1, 0, 1]
    assert not choice.explored


def test_a_small_pool_is_taken_whole():
    choice = choose(np.array([1, 0]), 5, epsilon=0.5, rng=np.random.default_rng(0))
    assert choice.chosen.tolist() == [1, 0]
    assert choice.probability.tolist() == [1, 1]


def test_an_empty_pool_gives_an_empty_choice():
    choice = choose(np.array([], dtype=np.int64), 3, epsilon=1.0, rng=np.random.default_rng(0))
    assert (choice.chosen.size, choice.probability.size, choice.explored) == (0, 0, False)


@pytest.mark.parametrize("epsilon", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_probabilities_sum_to_k(epsilon, k):
    choice = choose(np.array([4, 2, 0, 1, 3]), k, epsilon=epsilon, rng=np.random.default_rng(0))
    assert choice.probability.sum() == pytest.approx(k)


def test_the_stated_probabilities_are_the_frequencies():
    # n = 5, k = 2, epsilon = .5: the two best .5 + .5 * 2/5 = .7, the others .5 * 2/5 = .2
    rng, places = np.random.default_rng(11), np.array([4, 2, 0, 1, 3])
    draws = [choose(places, 2, epsilon=0.5, rng=rng) for _ in range(8_000)]
    assert draws[0].probability.tolist() == pytest.approx([0.2, 0.2, 0.7, 0.2, 0.7])
    taken = np.bincount(np.concatenate([draw.chosen for draw in draws]), minlength=5) / 8_000
    # four standard errors of .7 over 8,000 draws are .021
    np.testing.assert_allclose(taken, draws[0].probability, atol=0.021)
    assert np.mean([draw.explored for draw in draws]) == pytest.approx(0.5, abs=0.023)


def test_a_random_choice_is_still_given_best_first_and_without_repeats():
    rng, places = np.random.default_rng(3), np.array([4, 2, 0, 1, 3])
    position = {place: rank for rank, place in enumerate(places.tolist())}
    for _ in range(50):
        chosen = choose(places, 3, epsilon=1.0, rng=rng).chosen.tolist()
        assert chosen == sorted(set(chosen), key=position.__getitem__)
        assert len(chosen) == 3


def test_the_same_generator_gives_the_same_choices():
    def draws():
        rng = np.random.default_rng(5)
        return [choose(np.arange(9), 2, epsilon=0.5, rng=rng).chosen.tolist() for _ in range(20)]

    assert draws() == draws()


def test_epsilon_zero_draws_no_random_number():
    rng = np.random.default_rng(5)
    choose(np.arange(9), 2, epsilon=0.0, rng=rng)
    assert rng.random() == np.random.default_rng(5).random()


def preferred(first, sources=None, most=None):
    """Places in the order in which they are taken, of a pool that is ranked 0, 1, 2, ..."""
    places, count = prefer(np.arange(len(first)), first, sources or ["a"] * len(first), most)
    return places.tolist(), count


def test_the_first_of_each_kind_are_taken_before_the_others():
    assert preferred([True, False, True, False]) == ([0, 2, 1, 3], 2)


def test_of_one_source_no_more_than_allowed_are_taken():
    assert preferred([True] * 5, list("aaabb"), 2) == ([0, 1, 3, 4], 4)
    assert preferred([True, False, False, True], list("aabb"), 1) == ([0, 3], 2)


def test_a_cap_never_lets_fewer_sources_through():
    rng = np.random.default_rng(7)
    for _ in range(300):
        first = [True, *(rng.random(11) < 0.5).tolist()]
        sources = rng.choice(list("abcd"), 12).tolist()
        k, most = int(rng.integers(1, 8)), int(rng.integers(1, 4))
        free = {sources[place] for place in preferred(first, sources)[0][:k]}
        capped = [sources[place] for place in preferred(first, sources, most)[0][:k]]
        assert free <= set(capped)
        assert max(map(capped.count, capped)) <= most


def test_what_is_taken_in_another_order_is_still_given_best_first():
    order, taking = np.array([3, 1, 0, 2]), np.array([3, 2, 1, 0])
    choice = choose(order, 3, taking=taking)
    assert choice.chosen.tolist() == [3, 1, 2]
    assert choice.probability.tolist() == [0, 1, 1, 1]


def test_what_may_not_be_taken_has_no_chance():
    # m = 3 of n = 5, k = 2, epsilon = .6: the two first .4 + .6 * 2/3 = .8, the third .4
    rng, order, taking = np.random.default_rng(2), np.arange(5), np.array([4, 0, 2])
    draws = [choose(order, 2, taking=taking, epsilon=0.6, rng=rng) for _ in range(6_000)]
    assert draws[0].probability.tolist() == pytest.approx([0.8, 0, 0.4, 0, 0.8])
    taken = np.bincount(np.concatenate([one.chosen for one in draws]), minlength=5) / 6_000
    np.testing.assert_allclose(taken, draws[0].probability, atol=0.025)


def test_the_nearest_intents_come_closest_first_and_ties_go_to_the_newer():
    similarity, ids = np.array([0.5, 0.9, 0.5, 0.1]), np.array([1, 2, 3, 4])
    assert nearest(similarity, ids, 3).tolist() == [1, 2, 0]
    assert nearest(similarity, ids, 99).tolist() == [1, 2, 0, 3]


def test_scores_that_differ_by_a_last_bit_only_are_a_tie():
    # .1 + .2 is one last bit above .3; the second has the higher similarity and wins the tie.
    scores, similarity = np.array([0.1 + 0.2, 0.3]), np.array([0.5, 0.6])
    assert rank(scores, similarity, np.zeros(2, int), np.arange(2)).tolist() == [1, 0]
