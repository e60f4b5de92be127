"""The report: findings and advice in words, figures, the page, the terminal."""
