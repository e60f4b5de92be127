from loop_fixtures import (  # noqa: F401
    embeddings,
    form,
    only_registered_types,
    retriever,
    saver,
    seed,
)
