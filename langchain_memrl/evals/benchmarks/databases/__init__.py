"""The database tasks of LifelongAgentBench: a real server, the tasks, the grading, the agents."""
