import pytest
from fakes import FakeEmbeddings, at_cosine
from langchain_tests.integration_tests import RetrieversIntegrationTests

from langchain_memrl import EpisodicMemory, MemRLRetriever

TASK = "reset the router"


class TestMemRLRetriever(RetrieversIntegrationTests):
    """LangChain's own tests of a retriever, all of them, none changed."""

    @pytest.fixture(autouse=True)
    def _bank(self):
        steps = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
        vectors = {TASK: [1, 0]} | {f"task {step}": at_cosine(step) for step in steps}
        with EpisodicMemory.open(":memory:", embeddings=FakeEmbeddings(vectors=vectors)) as bank:
            for step in steps:
                bank.remember(f"task {step}", f"lesson {step}")
            self.bank = bank
            yield

    @property
    def retriever_constructor(self):
        return MemRLRetriever

    @property
    def retriever_constructor_params(self):
        return {"memory": self.bank, "score_threshold": 0.3}

    @property
    def retriever_query_example(self):
        return TASK
