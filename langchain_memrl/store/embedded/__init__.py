"""A bank in one folder, or in memory: SQLite, and FAISS beside it."""
