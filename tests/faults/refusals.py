"""A program, run with and without `-O`: everything unusable is refused, nothing changes.

No `assert` here: it would be gone under `-O`.
"""

import asyncio
import tempfile

from fakes import FAULTS, AwaitedMemory, FakeEmbeddings

from langchain_memrl import EpisodicMemory
from langchain_memrl.errors import MemRLError

VECTORS = [fault for fault in FAULTS if fault not in ("shuffled", "sorted", "ragged")]
REWARDS = [float("nan"), float("inf"), 2, True, "1", [1]]
TEXTS = ["", "\x00", "\ud800", 5, None]
SETTINGS = [{"k": 0}, {"fetch_k": -1}, {"q_weight": float("nan")}, {"score_threshold": 2}]


def wrong_calls(memory, embeddings, id):
    """Names and calls, each of which has to be refused."""
    for fault in VECTORS:
        for name, call in (
            ("recall", lambda: memory.recall("new", episode_id="e")),
            ("remember", lambda: memory.remember("new", "lesson")),
            ("batch", lambda: memory.remember_many([{"intent": t, "lesson": t} for t in "abcde"])),
            ("hold", lambda: memory.hold("e", intent="new", trajectory="done")),
        ):
            embeddings.break_call(1, fault)
            yield f"{name} {fault}", call
    for reward in REWARDS:
        yield (
            f"reward {reward!r}",
            lambda reward=reward: memory.reinforce("e", reward=reward, ids=[id]),
        )
    for text in TEXTS:
        yield f"text {text!r}", lambda text=text: memory.remember(text, "lesson")
    for setting in SETTINGS:
        yield f"setting {setting}", lambda setting=setting: memory.recall("task", **setting)
    yield "limit", lambda: memory.list(limit=-1)


def refuses(call):
    try:
        call()
    except MemRLError:
        return True
    return False


def check(location, awaited):
    """Names of the calls that were not refused, or left something behind."""
    embeddings = FakeEmbeddings()
    bank = EpisodicMemory.open(location, embeddings=embeddings)
    made = bank.remember("task", "lesson")
    memory = AwaitedMemory(bank) if awaited else bank
    before, wrong = (bank.list(), bank.stats()), []
    for name, call in wrong_calls(memory, embeddings, made.id):
        if not refuses(call) or (bank.list(), bank.stats()) != before:
            wrong.append(name)
    if asyncio.run(bank.arecall("task")).ids != (made.id,) or not bank.verify().ok:
        wrong.append("the bank is spoilt")
    bank.close()
    return wrong


if __name__ == "__main__":
    print("asserts", __debug__)
    with tempfile.TemporaryDirectory() as folder:
        wrong = [
            *check(f"{folder}/blocking", awaited=False),
            *check(f"{folder}/awaited", awaited=True),
            *check(":memory:", awaited=False),
        ]
    print("\n".join(wrong) or "all refused")
