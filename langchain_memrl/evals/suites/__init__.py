"""Suites: what is asked, what is in the bank, and whether an answer is right."""
