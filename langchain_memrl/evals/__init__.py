"""Experiments on the product itself: a suite is data and a pure score, one loop runs every arm."""
