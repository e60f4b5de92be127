"""Parts that need no key and, once the model file is in the cache, no network.

* `HashingEmbeddings`: hashed words and character n-grams, for tests and notebooks.
* `WordLlamaEmbeddings`: a real static embedding model (extra `demo`).
* `ScriptedChatModel`: a chat model that says what a test tells it to say.
* `LocalModelServer`, `chat_model`, `fetch_model`: a real small language model (extra `demo`).
"""

from langchain_memrl.offline.chat import ScriptedChatModel
from langchain_memrl.offline.embeddings import HashingEmbeddings, WordLlamaEmbeddings
from langchain_memrl.offline.local_model import LocalModelServer, chat_model
from langchain_memrl.offline.model_file import fetch_model

__all__ = [
    "HashingEmbeddings",
    "LocalModelServer",
    "ScriptedChatModel",
    "WordLlamaEmbeddings",
    "chat_model",
    "fetch_model",
]
