import hashlib
import math

import numpy as np
import pytest

from langchain_memrl.core.calibration import calibrate, is_due, sample_positions
from langchain_memrl.core.probes import PROBES


def plane(*degrees):
    """Unit vectors in the plane, at these angles."""
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


FAR = plane(180)


def test_mean_and_std_are_those_of_the_pairs():
    # Angles 0, 60, 90: the pairs' cosines are 1/2, 0 and sqrt(3)/2. Their mean is .455342, their
    # mean square (1/4 + 0 + 3/4) / 3 = 1/3, so the variance is 1/3 - .207336 = .125997.
    bank = calibrate(3, plane(0, 60, 90), FAR)
    assert bank.intents == 3
    assert bank.mean == pytest.approx(0.455342, abs=1e-6)
    assert bank.std == pytest.approx(math.sqrt(0.125997), abs=1e-6)


def test_a_single_intent_has_mean_zero_and_the_fallback_std():
    assert calibrate(1, plane(10), FAR)[:3] == (1, 0.0, 0.1)


def test_a_spread_below_two_hundredths_falls_back_to_a_tenth():
    bank = calibrate(3, plane(0, 0, 0), FAR)
    assert bank.mean == pytest.approx(1)
    assert bank.std == 0.1


def test_a_spread_just_above_two_hundredths_is_kept():
    # Angles 0, 11.5, 17 -> pair cosines .979925, .956305 and cos 5.5 = .995396.
    # Deviations from .977209: .002716, -.020904, .018187; variance .000258, std .016: falls back.
    assert calibrate(3, plane(0, 11.5, 17), FAR).std == 0.1
    # Angles 0, 15, 24 -> .965926, .913545, .987688; mean .955720; deviations .010206, -.042175,
    # .031968; variance (.000104 + .001779 + .001022) / 3 = .000968, std .0311: kept.
    assert calibrate(3, plane(0, 15, 24), FAR).std == pytest.approx(0.0311, abs=1e-4)


def test_with_one_intent_the_threshold_is_the_99_percent_quantile_of_its_cosines_with_the_probes():
    # 101 probes at cosine 0, .01, ..., 1 from the intent: the 99 % quantile is the 100th of them.
    probes = plane(*np.degrees(np.arccos(np.arange(101) / 100)))
    assert calibrate(1, plane(0), probes).threshold == pytest.approx(0.99, abs=1e-6)


def test_the_quantile_lies_between_neighbours_where_it_falls_between_them():
    # Three probes at 0, .5, 1: position .99 * 2 = 1.98, so .5 + .98 * .5 = .99
    assert calibrate(1, plane(0), plane(90, 60, 0)).threshold == pytest.approx(0.99, abs=1e-6)


def test_with_more_intents_the_threshold_moves_to_the_nearest_neighbour_quantile():
    # Probes all at cosine 0 (probe quantile 0). Four intents at 0, 60, 180, 240 degrees do not
    # matter to it; nearest neighbours are 60 degrees apart, cosine .5 for each, so the 5 %
    # quantile is .5: (8 * 0 + 4 * .5) / (8 + 4) = 1/6, and (8 * 0 + 92 * .5) / 100 = .46.
    intents = np.concatenate([plane(0, 60, 180, 240), np.zeros((4, 1), np.float32)], axis=1)
    probes = np.array([[0, 0, 1]], dtype=np.float32)
    assert calibrate(4, intents, probes).threshold == pytest.approx(1 / 6, abs=1e-6)
    assert calibrate(92, intents, probes).threshold == pytest.approx(0.46, abs=1e-6)


def test_the_threshold_moves_from_the_probes_to_the_nearest_neighbours():
    # Intents at 0, 60 and 90 degrees: nearest neighbours at cosine .5, .866025 and .866025; their
    # 5 % quantile lies at position .1: .5 + .1 * .366025 = .536603. The probe is at 180 degrees;
    # cosines -1, -.5, 0, their 99 % quantile at position 1.98: -.5 + .98 * .5 = -.01.
    # (8 * -.01 + 3 * .536603) / (8 + 3) = .139073
    assert calibrate(3, plane(0, 60, 90), FAR).threshold == pytest.approx(0.139073, abs=1e-6)
    # The same sample of a bank of 992 intents: (8 * -.01 + 992 * .536603) / 1000 = .532230
    assert calibrate(992, plane(0, 60, 90), FAR).threshold == pytest.approx(0.532230, abs=1e-6)


def test_the_threshold_is_a_cosine():
    vectors = np.full((2, 7), 7**-0.5, dtype=np.float32)
    assert calibrate(2, vectors, vectors).threshold <= 1.0


def test_a_bank_is_calibrated_when_it_reaches_a_power_of_two():
    assert [n for n in range(70) if is_due(n)] == [1, 2, 4, 8, 16, 32, 64]


@pytest.mark.parametrize("intents", [1, 2, 255, 256, 257, 1000, 65536])
def test_the_sample_is_spread_evenly_and_has_at_most_256(intents):
    places = sample_positions(intents)
    assert len(places) == min(intents, 256)
    assert (places[0], places[-1]) == (0, intents - 1)
    assert places.tolist() == sorted(set(places.tolist()))
    assert np.diff(places).max(initial=1) <= intents / 255 + 1


def test_the_probe_texts_never_change():
    # Another text would make every saved bank look as if its embedding model had changed.
    text = "\n".join(PROBES).encode()
    assert (len(PROBES), len(set(PROBES))) == (64, 64)
    assert hashlib.sha256(text).hexdigest()[:16] == "9706568c9e065ffa"
