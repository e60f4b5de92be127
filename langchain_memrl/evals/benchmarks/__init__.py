"""The benchmarks of the paper: what they share, and a folder for each environment."""
