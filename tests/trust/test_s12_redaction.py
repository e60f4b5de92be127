"""S12: with `redact` a secret is in no file, log, repr or error, whatever the loop went through."""

import asyncio
import json
import threading

import pytest
from canaries import CANARY, MARK, causes, counted, redact, secret, tool_call
from fakes import AwaitedMemory, ProviderError
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool

from langchain_memrl import (
    EpisodicMemory,
    LLMSummarizer,
    MemRLRetriever,
    create_memrl_graph,
    load_memories,
    summarize_pending,
    verbatim,
)
from langchain_memrl.errors import ConfigError, InputError, MemRLError, StoreNotFoundError
from langchain_memrl.middleware import MemRLMiddleware
from langchain_memrl.offline import ScriptedChatModel

both_forms = pytest.mark.parametrize("form", ["blocking", "awaited"])
EVERY_STORE = True
TASK = secret("reset the router with")
ASK = {"messages": [("user", TASK)]}
FREE = {"score_threshold": None}


def run(form, graph, given, config=None):
    if form == "blocking":
        return graph.invoke(given, config)
    return asyncio.run(graph.ainvoke(given, config))


def with_verbs(form, memory):
    return memory if form == "blocking" else AwaitedMemory(memory)


def filled(memory):
    """A memory whose every text holds the secret."""
    return memory.remember(
        secret("restart the modem"),
        secret("press the button"),
        trajectory=secret("pressed it"),
        metadata={"note": CANARY, "deep": [{CANARY: secret("x")}, 1, None]},
        source="seed",
    )


def asked(model):
    """Everything a scripted model was asked, as one text."""
    return "\n".join(str(message.content) for call in model.calls for message in call)


# --- the full cycle -----------------------------------------------------------------------------


@pytest.mark.parametrize("hook", [None, redact])
@both_forms
def test_a_chain_leaves_no_secret(form, open_bank, scan, hook):
    """Without the hook the same run leaves the secret, so that this test can fail."""
    bank = open_bank(redact=hook)
    memory = with_verbs(form, bank)
    made = filled(memory)
    retriever = MemRLRetriever(memory=bank, **FREE)
    chain = retriever | RunnableLambda(lambda documents: str(documents))
    run(form, chain, TASK, {"metadata": {"memrl_episode_id": "job"}})
    recall = memory.recall(TASK, episode_id="job", **FREE)
    results = [made, recall, *recall.memories, memory.reinforce("job", reward=1.0)]
    results += [memory.remember(TASK, secret("learned"), episode_id="job"), memory.episode("job")]
    memory.hold("late", intent=secret("later"), trajectory=secret("did it"))
    results += [memory.reinforce("late", reward=-1.0), memory.episode("late")]
    memory.update(made.id, lesson=secret("better"), metadata={"k": CANARY})
    results += bank.explain(recall)
    found = scan(bank, *results)
    if hook is None:
        assert {"embedded"} < set(found)
        assert any("memrl.sqlite3" in place or "export" in place for place in found)
    else:
        assert found == []
        assert bank.get(made.id).lesson == f"better {MARK}"
        assert bank.get(made.id).metadata == {"k": MARK}
        assert recall.intent == redact(TASK)


@both_forms
def test_a_graph_leaves_no_secret_and_its_summariser_reads_none(form, redacting, scan):
    filled(redacting)
    model = ScriptedChatModel(responses=[secret("an answer")], cycle=True)
    writer = ScriptedChatModel(responses=[secret("a lesson")], cycle=True)
    seen = []
    graph = create_memrl_graph(
        model,
        MemRLRetriever(memory=redacting, filter={"source": "seed"}, **FREE),
        evaluator=lambda state: seen.append(state["trajectory"]) or 1.0,
        summarizer=LLMSummarizer(writer),
    )
    result = run(form, graph, ASK)
    assert CANARY in result["messages"][-1].text
    assert CANARY in seen[0], "the evaluator judges what was really answered"
    assert writer.calls
    assert CANARY not in asked(writer)
    assert MARK in asked(writer)
    (written,) = redacting.list(filter={"source": "agent"})
    assert (written.lesson, written.trajectory) == (f"a lesson {MARK}", f"an answer {MARK}")
    assert written.intent == redacting.episode(result["episode_id"]).intents[0] == redact(TASK)
    assert scan(redacting, written) == []


@tool
def look(key: str) -> str:
    """Look something up."""
    return secret(f"found {key}")


@both_forms
def test_an_agent_with_tools_leaves_no_secret(form, redacting, scan):
    filled(redacting)
    model = ScriptedChatModel(responses=[tool_call(), secret("an answer")])
    writer = ScriptedChatModel(responses=[secret("a lesson")])
    middleware = MemRLMiddleware(
        MemRLRetriever(memory=redacting, **FREE),
        evaluator=lambda state: -1.0,
        summarizer=LLMSummarizer(writer),
    )
    agent = create_agent(model, [look], middleware=[middleware])
    result = run(form, agent, ASK)
    (written,) = redacting.list(filter={"source": "agent"})
    assert f'look({{"key": "{MARK}"}})' in written.trajectory
    assert f"found {MARK} {MARK}" in written.trajectory
    assert writer.calls
    assert CANARY not in asked(writer)
    assert scan(redacting, redacting.episode(result["memrl_episode_id"])) == []


@both_forms
def test_an_answer_kept_verbatim_is_kept_once_and_redacted(form, redacting, scan):
    graph = create_memrl_graph(
        lambda messages: secret("an answer"),
        MemRLRetriever(memory=redacting),
        evaluator=lambda state: 1.0,
        summarizer=verbatim,
    )
    run(form, graph, ASK)
    (written,) = redacting.list()
    assert (written.lesson, written.trajectory) == (f"an answer {MARK}", "")
    assert scan(redacting) == []


@both_forms
def test_a_reward_that_comes_later_finds_no_secret_either(form, redacting, scan):
    graph = create_memrl_graph(
        lambda messages: secret("an answer"),
        MemRLRetriever(memory=redacting),
        evaluator=lambda state: None,
        summarizer=verbatim,
    )
    result = run(form, graph, ASK)
    redacting.reinforce(result["episode_id"], reward=1.0)
    writer = ScriptedChatModel(responses=[secret("a lesson")])
    assert summarize_pending(redacting, LLMSummarizer(writer)) == 1
    assert CANARY not in asked(writer)
    (written,) = redacting.list()
    assert (written.lesson, written.trajectory) == (f"a lesson {MARK}", f"an answer {MARK}")
    assert scan(redacting) == []


# --- failures -----------------------------------------------------------------------------------


@both_forms
@pytest.mark.parametrize("part", ["agent", "evaluator", "summarizer"])
def test_what_fails_with_the_secret_in_its_error_leaves_none(form, redacting, scan, part):
    def fails(value):
        raise RuntimeError(secret("no access with"))

    graph = create_memrl_graph(
        fails if part == "agent" else lambda messages: secret("an answer"),
        MemRLRetriever(memory=redacting),
        evaluator=fails if part == "evaluator" else lambda state: 1.0,
        summarizer=fails if part == "summarizer" else verbatim,
    )
    if part == "summarizer":
        run(form, graph, ASK)
        (raw,) = redacting.list(raw=True)
        assert raw.trajectory == f"an answer {MARK}"
    else:
        with pytest.raises(RuntimeError):
            run(form, graph, ASK)
    assert scan(redacting) == []


@both_forms
def test_an_embedder_that_fails_never_saw_the_secret(form, redacting, embeddings, scan):
    embeddings.break_call(1, "raise")
    with pytest.raises(ProviderError):
        with_verbs(form, redacting).remember(TASK, secret("x"))
    assert scan(redacting) == []


def test_a_load_that_stops_leaves_no_secret_and_is_completed(redacting, embeddings, scan):
    drafts = [
        {"intent": secret(f"task {n}"), "lesson": secret(f"lesson {n}"), "metadata": {"k": CANARY}}
        for n in range(6)
    ]
    embeddings.break_call(3, "raise")
    with pytest.raises(MemRLError) as caught:
        load_memories(redacting, drafts, batch_size=2)
    assert CANARY not in str(caught.value)
    first = load_memories(redacting, drafts, batch_size=2)
    assert load_memories(redacting, drafts, batch_size=3) == first
    assert len(redacting.list()) == 6
    assert scan(redacting, caught.value) == []


@both_forms
def test_documents_leave_no_secret_of_the_task(form, redacting, scan):
    documents = [Document("a page", id="1"), Document(secret("a page"), id="2")]
    with_verbs(form, redacting).recall_documents(TASK, documents, episode_id="e", k=1)
    assert redacting.episode("e").intents == (redact(TASK),)
    assert scan(redacting) == []


# --- how it is applied --------------------------------------------------------------------------


def texts_in(folder):
    """Every text of an export, by name."""
    found = []
    for line in map(json.loads, (folder / "export.jsonl").read_text().splitlines()):
        text = line.get("text")
        fields = text if isinstance(text, dict) else line
        for name in ("text", "lesson", "trajectory", "intent", "held_intent", "held_trajectory"):
            if isinstance(fields.get(name), str) and fields[name]:
                found.append((name, fields[name]))
    return found


@both_forms
def test_each_text_goes_through_it_exactly_once(form, open_bank, embeddings, tmp_path):
    bank = open_bank(redact=counted)
    memory = with_verbs(form, bank)
    memory.remember("task", "lesson", trajectory="steps", metadata={"note": "words"})
    memory.recall("task", episode_id="e")
    memory.hold("open", intent="held task", trajectory="held steps")
    memory.hold("late", intent="late task", trajectory="late steps")
    memory.reinforce("late", reward=1.0)
    summarize_pending(bank, lambda attempt: "a late lesson")
    load_memories(bank, [{"intent": "loaded task", "lesson": "loaded lesson"}])
    for summarizer in (verbatim, lambda attempt: "a new lesson"):
        graph = create_memrl_graph(
            lambda messages: "an answer",
            MemRLRetriever(memory=bank),
            evaluator=lambda state: 1.0,
            summarizer=summarizer,
        )
        run(form, graph, {"messages": [("user", f"graph task {summarizer is verbatim}")]})
    bank.export_jsonl(tmp_path / "export.jsonl")
    found = texts_in(tmp_path)
    assert len(found) > 15
    assert [one for one in found if one[1].count("\u2020") != 1] == []
    assert [text for text in embeddings.texts if text.count("\u2020") != 1] == []
    assert bank.list(filter={"source": "agent"})[-1].metadata == {"note\u2020": "words\u2020"}


@both_forms
def test_the_same_text_is_the_same_episode_again(form, redacting):
    memory = with_verbs(form, redacting)
    first = memory.remember(TASK, secret("lesson"), episode_id="e")
    assert memory.remember(TASK, secret("lesson"), episode_id="e") == first
    shown = memory.recall(TASK, episode_id="r").recall_id
    assert memory.recall(TASK, episode_id="r").recall_id == shown
    memory.hold("h", intent=TASK, trajectory=secret("done"))
    memory.hold("h", intent=TASK, trajectory=secret("done"))
    assert memory.recall(TASK, exclude_intents=[TASK], **FREE).ids == ()
    assert len(redacting.list()) == 1


def test_a_view_of_one_namespace_redacts_too(redacting, scan):
    redacting.in_namespace("acme").remember(TASK, secret("lesson"))
    assert redacting.list(namespace="acme")[0].intent == redact(TASK)
    assert scan(redacting) == []


def test_texts_that_were_redacted_already_can_be_written_as_they_are(open_bank):
    bank = open_bank(redact=counted)
    recall = bank.recall("task", episode_id="e")
    made = bank.already_redacted().remember(recall.intent, "lesson", episode_id="e")
    assert (made.intent, made.lesson) == ("task\u2020", "lesson")
    assert bank.remember("task", "lesson").lesson == "lesson\u2020"


def test_names_and_what_is_no_text_pass_as_they_are(redacting):
    made = redacting.remember(
        "task",
        "lesson",
        episode_id=secret("e"),
        source=CANARY,
        metadata={"n": [1, 2.5, True, None]},
    )
    assert (made.episode_id, made.source) == (secret("e"), CANARY)
    assert made.metadata == {"n": [1, 2.5, True, None]}


# --- redactors that go wrong --------------------------------------------------------------------


def fails(text):
    raise LookupError("the list of names is gone")


WRITES = {
    "remember": lambda memory: memory.remember("a task", "a lesson"),
    "hold": lambda memory: memory.hold("h", intent="a task", trajectory="did it"),
    "recall": lambda memory: memory.recall("a task", episode_id="e"),
    "recall_many": lambda memory: memory.recall_many(["a task"], episode_ids=["e"]),
    "documents": lambda memory: memory.recall_documents("a task", [], episode_id="e"),
}


@both_forms
@pytest.mark.parametrize(
    ("hook", "error", "words"),
    [
        (lambda text: None, InputError, "redact returned a NoneType for .*; expected a str"),
        (lambda text: text.encode(), InputError, "redact returned a bytes"),
        (lambda text: " \n", InputError, "redact left nothing visible of intent"),
        (fails, LookupError, "the list of names is gone"),
    ],
    ids=["none", "bytes", "blank", "raises"],
)
@pytest.mark.parametrize("call", WRITES.values(), ids=WRITES)
def test_an_unusable_answer_stores_nothing(open_bank, embeddings, form, hook, error, words, call):
    bank = open_bank(redact=hook)
    with pytest.raises(error, match=words) as caught:
        call(with_verbs(form, bank))
    assert not any("a task" in str(one) for one in causes(caught.value))
    assert bank.stats().memories == 0
    assert bank.open_episodes() == []
    assert embeddings.calls == []


def test_a_lesson_that_is_redacted_to_nothing_is_refused_and_metadata_may_be(open_bank):
    bank = open_bank(redact=lambda text: "" if "secret" in text else text)
    with pytest.raises(InputError, match="redact left nothing visible of lesson"):
        bank.remember("task", "secret")
    with pytest.raises(InputError, match="trajectory is blank"):
        bank.remember("task", None, trajectory="secret")
    made = bank.remember("task", "lesson", trajectory="secret", metadata={"k": "secret"})
    assert (made.trajectory, made.metadata) == ("", {"k": ""})
    with pytest.raises(InputError, match="redact left nothing visible of lesson"):
        bank.update(made.id, lesson="secret")
    assert bank.get(made.id) == made


def test_keys_that_become_the_same_are_refused(redacting):
    with pytest.raises(InputError, match="two keys of metadata the same") as caught:
        redacting.remember("t", "l", metadata={"sk-CANARY-1": 1, "sk-CANARY-2": 2})
    assert "CANARY" not in str(caught.value)
    assert redacting.list() == []


@both_forms
def test_a_redactor_that_fails_in_a_graph_surfaces_and_stores_no_text(form, open_bank):
    def choosy(text):
        if "lesson" in text:
            raise LookupError("not this one")
        return text

    bank = open_bank(redact=choosy)
    graph = create_memrl_graph(
        lambda messages: "an answer",
        MemRLRetriever(memory=bank),
        evaluator=lambda state: 1.0,
        summarizer=lambda attempt: "a lesson",
    )
    with pytest.raises(LookupError, match="not this one"):
        run(form, graph, {"messages": [("user", "a task")]})
    assert bank.list() == []


@pytest.mark.parametrize("hook", ["text", 1, {}, []])
def test_what_cannot_be_called_is_refused_before_a_bank_is_made(hook, open_bank):
    with pytest.raises(ConfigError, match=r"redact is a \w+; expected a callable"):
        open_bank(redact=hook)
    with pytest.raises(StoreNotFoundError):
        open_bank(create=False)


async def test_it_never_runs_on_the_event_loop(open_bank):
    threads = set()

    def noted(text):
        threads.add(threading.get_ident())
        return text

    bank = open_bank(redact=noted)
    graph = create_memrl_graph(
        lambda messages: "an answer",
        MemRLRetriever(memory=bank),
        evaluator=lambda state: 1.0,
        summarizer=lambda attempt: "a lesson",
    )
    await graph.ainvoke({"messages": [("user", "a task")]})
    await bank.aremember("task", "lesson")
    assert len(bank.list()) == 2
    assert threads
    assert threading.get_ident() not in threads


# --- copies -------------------------------------------------------------------------------------


def test_an_export_with_a_secret_is_refused_and_a_clean_one_is_taken(
    open_bank, embeddings, tmp_path
):
    bank = open_bank()
    bank.remember("task", "lesson")
    for n, more in enumerate(({"lesson": CANARY}, {"metadata": {CANARY: 1}}, {"intent": CANARY})):
        made = bank.remember(**{"intent": f"task {n}", "lesson": f"lesson {n}", **more})
        bank.export_jsonl(tmp_path / "export.jsonl")
        with pytest.raises(InputError, match=r"line \d+: redact would change its") as caught:
            EpisodicMemory.import_jsonl(
                tmp_path / "export.jsonl", tmp_path / "copy", embeddings=embeddings, redact=redact
            )
        assert CANARY not in str(caught.value)
        assert not (tmp_path / "copy").exists()
        bank.forget(ids=[made.id])
    bank.compact()
    bank.export_jsonl(tmp_path / "export.jsonl")
    with EpisodicMemory.import_jsonl(
        tmp_path / "export.jsonl", tmp_path / "copy", embeddings=embeddings, redact=redact
    ) as copy:
        assert copy.remember(TASK, "lesson").intent == redact(TASK)


@pytest.mark.parametrize("kind", ["held", "recalled"])
def test_an_open_episode_with_a_secret_is_noticed_in_an_export(open_bank, tmp_path, kind):
    bank = open_bank()
    bank.remember("task", "lesson")
    if kind == "held":
        bank.hold("h", intent="task", trajectory=CANARY)
    else:
        bank.recall(CANARY, episode_id="e", **FREE)
    bank.export_jsonl(tmp_path / "export.jsonl")
    with pytest.raises(InputError, match="redact would change"):
        EpisodicMemory.import_jsonl(tmp_path / "export.jsonl", tmp_path / "copy", redact=redact)
