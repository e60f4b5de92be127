"""A handbook with outdated pages, a reader who believes the first page that fits, two retrievers.

Of every thing the handbook tells one setting. For half of the things an older page was left in,
which answers in the very words of the question; a reader who follows it fails.
"""

import random

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_memrl.offline import HashingEmbeddings

THINGS = (
    *("boiler", "router", "printer", "projector", "scanner", "kiln", "freezer", "elevator"),
    *("press", "loom", "lathe", "furnace", "crane", "conveyor", "compressor", "generator"),
)
SETTINGS = ("pressure", "channel", "tray", "voltage")
QUESTIONS = (
    "what is the {setting} of the {thing}",
    "which {setting} does the {thing} need",
    "tell me the {setting} for the {thing}",
)


def pages():
    """Every page as a document; its metadata says what it is about and whether it is outdated."""
    found = []
    for number, thing in enumerate(THINGS):
        for setting in SETTINGS[:2]:
            about = {"thing": thing, "setting": setting}
            new = f"Since the spring update people run the {thing} with {setting} {number + 40}."
            found.append(("new", new, {**about, "outdated": False}))
            if number % 2:
                old = f"What is the {setting} of the {thing}: the {thing} {setting} is {number}."
                found.append(("old", old, {**about, "outdated": True}))
        for setting in SETTINGS[2:]:
            text = f"The {setting} of the {thing} is checked by the service team once a year."
            found.append(("note", text, {"thing": thing, "setting": setting, "outdated": False}))
    return [
        Document(id=f"{kind}-{place}", page_content=text, metadata=metadata)
        for place, (kind, text, metadata) in enumerate(found)
    ]


def questions(seed, count):
    """Random questions: the text, and what it is about."""
    chance = random.Random(seed)
    for _ in range(count):
        thing, setting = chance.choice(THINGS), chance.choice(SETTINGS[:2])
        about = {"thing": thing, "setting": setting}
        yield chance.choice(QUESTIONS).format(**about), about


def believed(documents, about):
    """The page that the reader follows: the first that is about the question, or None."""
    fits = (page for page in documents if about.items() <= page.metadata.items())
    return next(fits, None)


def succeeds(page):
    return page is not None and not page.metadata["outdated"]


class BM25(BaseRetriever):
    """Okapi BM25 over words, the k best."""

    documents: list
    index: object
    k: int

    @classmethod
    def over(cls, documents, k):
        from rank_bm25 import BM25Okapi

        words = [words_of(document.page_content) for document in documents]
        return cls(documents=documents, index=BM25Okapi(words), k=k)

    def _get_relevant_documents(self, query, *, run_manager):
        return self.index.get_top_n(words_of(query), self.documents, n=self.k)


def words_of(text):
    return [word.strip(".:").lower() for word in text.split()]


def by_vectors(documents, k):
    """LangChain's own vector store as a retriever."""
    store = InMemoryVectorStore(HashingEmbeddings(dimensions=128))
    store.add_documents(documents)
    return store.as_retriever(search_kwargs={"k": k})
