"""ALFWorld: household tasks in text, played on TextWorld's planning engine."""
