"""The operating-system tasks of LifelongAgentBench: an isolated system, the tasks, the grading."""
