"""Arithmetic only: NumPy in, NumPy out. Randomness is a `numpy.random.Generator` argument."""
