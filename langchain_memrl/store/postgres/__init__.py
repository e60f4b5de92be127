"""A bank in PostgreSQL with pgvector, for agents that run on many machines."""
