import numpy as np
import pytest

from langchain_memrl.config import LearningConfig
from langchain_memrl.errors import RewardTypeError


@pytest.mark.parametrize("value", [1j, np.complex64(0.5), np.complex128(0.5 + 1j)])
def test_a_complex_reward_is_refused(value):
    with pytest.raises(RewardTypeError, match="expected a finite number"):
        LearningConfig().reward(value)
