"""The numbers: records read, metrics, intervals over seeds, tables."""
