"""The programming tasks of BigCodeBench: unit tests in a process apart, the tasks, the agents."""
