"""S12 without a redactor: no text and no password in errors, logs above DEBUG and reprs."""

import ast
import inspect
import logging
from contextlib import nullcontext
from pathlib import Path

import pytest
from canaries import causes
from fakes import AwaitedMemory
from langchain_core.documents import Document
from langchain_core.messages import AIMessage

import langchain_memrl
from langchain_memrl import (
    Attempt,
    EpisodicMemory,
    LLMJudge,
    LLMSummarizer,
    MemRLCompressor,
    MemRLRetriever,
    ShownMemory,
    Verdict,
    contains,
    create_memrl_graph,
    exact_match,
    load_memories,
    reward_from,
    summarize_pending,
)
from langchain_memrl.errors import MemRLError
from langchain_memrl.middleware import MemRLMiddleware
from langchain_memrl.offline import ScriptedChatModel
from langchain_memrl.store.base import HeldAnswer, NewMemory, RecallRecord

CANARY = "CANARY-7f3a"
LONG = f"{CANARY} and more words than a setting has"
ROOT = Path(langchain_memrl.__file__).parent

# --- what the messages of errors and logs are made of -------------------------------------------

TEXTS = {
    *("intent", "lesson", "trajectory", "experience", "answer", "text", "texts", "content"),
    *("page_content", "prompt", "messages", "message", "reply", "record", "task", "reference"),
    *("rubric", "attempt", "draft", "drafts", "document", "documents", "metadata", "note", "body"),
    *("dsn", "password", "memory", "memories"),
}
ONLY_TOLD = {"len", "type", "sorted", "told", "count", "sizes", "describe"}
# Where no text is told although a name of the list is used.
ELSEWHERE = {
    ("documents.py", "sorted(document.metadata)"): "names of keys",
    ("evaluators.py", "sorted(map(str, reply))"): "names of keys, of a person's reply",
    ("evaluators.py", "_problem(reply)"): "the kind of the problem",
}


def told_names(node):
    """The names inside a part of a message that are not only counted, sorted or described."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ONLY_TOLD - {"sorted"}:
        return
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
        return  # what it is of is not shown
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        yield str(node.slice.value)
        return
    for child in ast.iter_child_nodes(node):
        yield from told_names(child)


def messages_in(tree):
    """Every f-string of a raised error, and every argument of a log call above DEBUG."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            for inner in ast.walk(node.exc):
                if isinstance(inner, ast.FormattedValue):
                    yield inner.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            logs = getattr(node.func.value, "id", "") == "logger"
            if logs and node.func.attr in ("info", "warning", "error", "exception", "critical"):
                yield from node.args[1:]


def test_no_message_is_made_of_a_text():
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT)
        if place.parts[0] in ("evals", "bench", "cli"):
            continue  # experiments on data of their own; arguments that somebody just typed
        for value in messages_in(ast.parse(path.read_text(encoding="utf-8"))):
            words = ast.unparse(value)
            known = (path.name, words) in ELSEWHERE
            if TEXTS & set(told_names(value)) and not known:
                found.append(f"{place}:{value.lineno}: {words}")
    assert found == []


# --- errors -------------------------------------------------------------------------------------


def said(call):
    """Everything that our own error says, with what it was raised from."""
    with pytest.raises((MemRLError, TypeError, ValueError)) as caught:
        call()
    errors = [one for one in causes(caught.value) if isinstance(one, MemRLError)]
    return [str(one) for one in errors or [caught.value]]


WRONG = {
    "outcome": lambda m: m.remember("t", "l", outcome=LONG),
    "outcome in a batch": lambda m: m.remember_many(
        [{"intent": "t", "lesson": "l", "outcome": LONG}]
    ),
    "conflict": lambda m: (
        m.remember(LONG, "l", episode_id="w") and m.remember("o", LONG, episode_id="w")
    ),
    "held": lambda m: (
        m.hold("h", intent=LONG, trajectory="a") or m.hold("h", intent=LONG, trajectory="b")
    ),
    "unknown id": lambda m: m.reinforce("e", reward=1, ids=["none"]),
    "limit": lambda m: m.list(limit=LONG),
    "max_q": lambda m: m.prune(max_q=LONG, min_updates=1),
    "older_than": lambda m: m.open_episodes(older_than=LONG),
    "reward": lambda m: m.reinforce("e", reward=LONG),
    "intents": lambda m: m.recall_many(LONG),
    "excluded": lambda m: m.recall("t", exclude_intents=LONG),
    "lone surrogate": lambda m: m.remember(f"{LONG}\ud800", "l"),
    "nul": lambda m: m.hold("h", intent="t", trajectory=f"{LONG}\x00"),
    "too long": lambda m: m.remember("t", LONG * 40_000),
    "metadata": lambda m: m.remember("t", "l", metadata={LONG: {1, 2}}),
    "metadata key": lambda m: m.remember("t", "l", metadata={(LONG,): 1}),
    "metadata text": lambda m: m.remember("t", "l", metadata=LONG),
    "nothing to change": lambda m: m.update("x", metadata=LONG),
    "score": lambda m: m.recall_documents(
        "t", [Document(LONG)], score_key=lambda d: d.page_content
    ),
    "id": lambda m: m.recall_documents("t", [Document(LONG)], id_key=lambda d: ""),
    "load": lambda m: load_memories(m, [{"intent": LONG, "lesson": "l", "outcome": LONG}]),
    "verdict outcome": lambda m: loop(m, lambda state: Verdict(1.0, outcome=LONG)),
    "verdict scale": lambda m: loop(m, lambda state: Verdict(1.0, scale=LONG)),
    "verdict text": lambda m: loop(m, lambda state: LONG),
    "judge": lambda m: loop(m, LLMJudge(ScriptedChatModel(responses=[LONG]))),
    "score object": lambda m: reward_from({"score": LONG}, m.learning),
    "no score": lambda m: reward_from({"text": LONG}, m.learning),
    "reference": lambda m: contains(" ")({"messages": [AIMessage(LONG)]}),
    "pending": lambda m: (
        m.remember(LONG, None, trajectory=LONG)
        and summarize_pending(m, lambda attempt: attempt.trajectory * 500)
    ),
    "cut off": lambda m: (
        m.remember(LONG, None, trajectory=LONG)
        and summarize_pending(m, LLMSummarizer(ScriptedChatModel(responses=[cut_off()])))
    ),
}


def loop(memory, evaluator):
    graph = create_memrl_graph(
        lambda messages: LONG, MemRLRetriever(memory=memory), evaluator=evaluator
    )
    return graph.invoke({"messages": [("user", LONG)]})


def cut_off():
    return AIMessage(LONG, response_metadata={"finish_reason": "length"})


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_no_error_repeats_a_text(bank, call):
    bank.remember("seed", LONG, trajectory=LONG)
    words = said(lambda: call(bank))
    assert [one for one in words if CANARY in one] == []
    assert all(len(one) < 1000 for one in words)


def test_a_wrong_word_is_still_repeated(bank):
    with pytest.raises(MemRLError, match="outcome is 'sucess'"):
        bank.remember("t", "l", outcome="sucess")
    with pytest.raises(MemRLError, match="limit is -1"):
        bank.list(limit=-1)


@pytest.mark.parametrize(
    "location",
    [
        "postgresql://user:CANARY-7f3a@127.0.0.1:1/db?connect_timeout=1",
        "mysql://user:CANARY-7f3a@127.0.0.1:1/db",
        "redis://:CANARY-7f3a@127.0.0.1:1",
    ],
)
def test_no_error_repeats_the_password_of_an_address(location, caplog):
    caplog.set_level(logging.DEBUG)
    with pytest.raises(MemRLError) as caught:
        EpisodicMemory.open(location)
    assert [one for one in causes(caught.value) if CANARY in f"{one!r} {one}"] == []
    assert CANARY not in caplog.text


@pytest.mark.parametrize("address", ["mysql://u:CANARY-7f3a/x@h/", "pg://u:CANARY-7f3a@h/"])
def test_nor_that_of_the_server_of_an_experiment(address):
    from langchain_memrl.evals.benchmarks.databases.server import Address
    from langchain_memrl.evals.environment import Setup

    with pytest.raises(MemRLError) as caught:
        Address.parse(address)
    assert [one for one in causes(caught.value) if CANARY in str(one)] == []
    assert CANARY not in repr(Setup(dsn=address))
    assert CANARY not in repr(Address.parse("mysql://u:CANARY-7f3a@h:3/"))


# --- logs ---------------------------------------------------------------------------------------


def fails(value):
    raise RuntimeError(LONG)


@pytest.mark.parametrize("evaluator", [lambda state: 1.0, lambda state: None, fails])
@pytest.mark.parametrize("summarizer", [None, lambda attempt: LONG, fails, lambda attempt: ""])
def test_no_log_above_debug_repeats_a_text(bank, caplog, evaluator, summarizer):
    caplog.set_level(logging.INFO)
    bank.remember(LONG, LONG, trajectory=LONG, metadata={"k": LONG})
    graph = create_memrl_graph(
        lambda messages: LONG,
        MemRLRetriever(memory=bank, score_threshold=None),
        evaluator=evaluator,
        summarizer=summarizer,
    )
    with pytest.raises(RuntimeError) if evaluator is fails else nullcontext():
        graph.invoke({"messages": [("user", LONG)]})
    for _ in range(60):
        bank.recall(LONG)
    assert caplog.records
    assert CANARY not in caplog.text
    assert CANARY not in str([record.__dict__ for record in caplog.records])


# --- reprs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [HeldAnswer, NewMemory, RecallRecord, ShownMemory, Attempt],
    ids=lambda kind: kind.__name__,
)
def test_no_record_between_layers_shows_its_texts(kind):
    shown = {"intent", "lesson", "trajectory", "answer", "metadata", "document_keys", "fence_key"}
    hidden = {name: LONG if name in shown else "x" for name in inspect.signature(kind).parameters}
    assert CANARY not in repr(kind(**hidden))


def test_no_part_of_a_loop_shows_the_texts_of_its_bank(bank):
    bank.remember(LONG, LONG, trajectory=LONG)
    retriever = MemRLRetriever(memory=bank)
    model = ScriptedChatModel(responses=[LONG], cycle=True)
    parts = [
        *(retriever, MemRLMiddleware(retriever, evaluator=exact_match("x"))),
        *(MemRLCompressor(memory=bank), LLMSummarizer(model), LLMJudge(model), AwaitedMemory(bank)),
        create_memrl_graph(lambda messages: LONG, retriever, evaluator=exact_match("x")),
    ]
    assert [part for part in parts if CANARY in repr(part)] == []
