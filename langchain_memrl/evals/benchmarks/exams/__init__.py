"""Humanity's Last Exam: the user's own items, graded by rule and by a judge, never written down."""
