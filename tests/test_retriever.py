import asyncio
import copy
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest
from fakes import FakeEmbeddings, ProviderError, at_cosine
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import (
    ConfigurableField,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)
from langchain_core.tools import create_retriever_tool
from plain import foreign
from watched import WatchedStore

from langchain_memrl import EpisodicMemory, FromConfig, MemRLRetriever
from langchain_memrl.core.probes import PROBES
from langchain_memrl.errors import ConfigError, EpisodeError, InputError
from langchain_memrl.offline import ScriptedChatModel
from langchain_memrl.store.embedded.local import LocalStore

TASK = "reset the router"
VECTORS = {
    **{text: FakeEmbeddings().vector(text) for text in PROBES},  # once: they cost most
    TASK: [1, 0],
    "restart the modem": at_cosine(0.8),
    "unplug the switch": at_cosine(0.6),
    "polish the rack": [0, 1],
    "bury the cable": [-1, 0],
}
LESSONS = {"near": "restart the modem", "far": "unplug the switch"}
LESSONS |= {"aside": "polish the rack", "opposite": "bury the cable"}


@pytest.fixture
def embeddings():
    return FakeEmbeddings(vectors=VECTORS)


@pytest.fixture
def ids(bank):
    """Four memories at cosine .8, .6, 0 and -1 to the task; by lesson."""
    return {
        lesson: bank.remember(
            intent,
            lesson,
            trajectory=f"what was done: {lesson}",
            outcome="failure" if lesson == "far" else "success",
            metadata={"place": "cellar" if lesson == "far" else "attic"},
        ).id
        for lesson, intent in LESSONS.items()
    }


@pytest.fixture
def retriever(bank, ids):
    return MemRLRetriever(memory=bank, score_threshold=None, normalization="none", q_weight=0.0)


def _invoke(retriever, task, config=None, **call):
    return retriever.invoke(task, config, **call)


def _ainvoke(retriever, task, config=None, **call):
    return asyncio.run(retriever.ainvoke(task, config, **call))


def _batch(retriever, task, config=None, **call):
    first, second = retriever.batch([task, task], config, **call)
    assert lessons(first) == lessons(second) or call.get("epsilon")
    return first


def _abatch(retriever, task, config=None, **call):
    return asyncio.run(retriever.abatch([task], config, **call))[0]


@pytest.fixture(params=[_invoke, _ainvoke, _batch, _abatch], ids=lambda ask: ask.__name__[1:])
def ask(request):
    """The four ways to ask a retriever."""
    return request.param


def lessons(documents):
    return [document.page_content for document in documents]


# --- documents ----------------------------------------------------------------------------------


def test_a_document_is_the_memory_with_the_numbers_that_chose_it(bank, ids, ask):
    bank.reinforce("earlier", reward=1.0, ids=[ids["near"]])  # Q = .3, one update, one selection
    retriever = MemRLRetriever(memory=bank, k=1, normalization="none", score_threshold=None)
    (document,) = ask(retriever, TASK)
    memory = bank.get(ids["near"])
    recall_id = document.metadata["recall_id"]
    assert document == Document(
        id=ids["near"],
        page_content="near",
        metadata={
            "intent": "restart the modem",
            "similarity": 0.8,
            "q_value": 0.3,
            "score": pytest.approx(0.55, abs=1e-12),  # .5 * .8 + .5 * .3
            "updates": 1,
            "selections": 1,
            "outcome": "success",
            "created_at": memory.created_at.isoformat(),
            "namespace": "default",
            "recall_id": recall_id,
            "user": {"place": "attic"},
        },
    )
    assert datetime.fromisoformat(document.metadata["created_at"]) == memory.created_at


def test_metadata_is_made_of_plain_python_values(bank, ask):
    bank.remember(TASK, "a", metadata={"deep": [{"number": 1, "list": [None, True, 0.5, "x"]}]})
    bank.reinforce("e", reward=0.5, ids=[bank.list()[0].id])
    (document,) = ask(MemRLRetriever(memory=bank), TASK)
    assert foreign(document.metadata) == []
    assert type(document.id) is str
    assert type(document.page_content) is str
    assert document.metadata["user"] == {"deep": [{"number": 1, "list": [None, True, 0.5, "x"]}]}


def test_a_changed_document_changes_no_memory(retriever, bank, ids):
    document = retriever.invoke(TASK, k=1)[0]
    document.metadata["user"]["place"] = "moon"
    document.metadata["q_value"] = 99.0
    assert retriever.invoke(TASK, k=1)[0].metadata["user"] == {"place": "attic"}
    assert bank.get(ids["near"]).q_value == 0.0


def test_a_raw_memory_shows_its_trajectory(bank, ask):
    bank.remember(TASK, None, trajectory="pressed it for ten seconds")
    assert lessons(ask(MemRLRetriever(memory=bank), TASK)) == ["pressed it for ten seconds"]


def test_documents_of_one_recall_share_its_id_and_another_recall_has_another(retriever):
    first, second = retriever.invoke(TASK), retriever.invoke(TASK)
    (one,) = {document.metadata["recall_id"] for document in first}
    (other,) = {document.metadata["recall_id"] for document in second}
    assert one != other


# --- settings: of the retriever, and of one call ------------------------------------------------


def test_without_settings_it_recalls_as_the_memory_does(bank, ids, ask):
    expected = [scored.id for scored in bank.recall(TASK).memories]
    assert [document.id for document in ask(MemRLRetriever(memory=bank), TASK)] == expected


PER_CALL = [
    ({}, ["near", "far", "aside", "opposite"]),
    ({"k": 2}, ["near", "far"]),
    ({"fetch_k": 3}, ["near", "far", "aside"]),
    ({"fetch_k": 1, "k": 3}, ["near"]),
    ({"filter": {"place": "cellar"}}, ["far"]),
    ({"filter": {"outcome": "success"}, "k": 1}, ["near"]),
    ({"filter": {"place": "nowhere"}}, []),
    ({"exclude_intents": ["restart the modem"], "k": 1}, ["far"]),
    ({"score_threshold": None}, ["near", "far", "aside", "opposite"]),
    ({"score_threshold": -1}, ["near", "far", "aside", "opposite"]),
    ({"score_threshold": 0}, ["near", "far", "aside"]),
    ({"score_threshold": 0.0}, ["near", "far", "aside"]),
    ({"score_threshold": 0.6}, ["near", "far"]),
    ({"score_threshold": 0.601}, ["near"]),
    ({"score_threshold": 0.8}, ["near"]),
    ({"score_threshold": 1}, []),
]


def test_a_call_may_bring_its_own_settings_and_the_next_one_starts_anew(retriever, ask):
    for call, expected in PER_CALL:
        assert lessons(ask(retriever, TASK, **call)) == expected, call
        assert lessons(ask(retriever, TASK)) == ["near", "far", "aside", "opposite"]


def test_a_threshold_of_one_lets_the_same_text_through(retriever, bank, ask):
    bank.remember(TASK, "exact")
    assert lessons(ask(retriever, TASK, score_threshold=1)) == ["exact"]


def test_the_weight_of_q_turns_the_order_around(retriever, bank, ids, ask):
    bank.reinforce("good", reward=1.0, ids=[ids["far"]])  # Q: far .3, near -.3
    bank.reinforce("bad", reward=-1.0, ids=[ids["near"]])
    pair = {"fetch_k": 2}
    assert lessons(ask(retriever, TASK, q_weight=0, **pair)) == ["near", "far"]
    assert lessons(ask(retriever, TASK, q_weight=1, **pair)) == ["far", "near"]
    # score = (1 - w) * similarity + w * Q: equal at w = .25 (.8 - 1.1w = .6 - .3w)
    assert lessons(ask(retriever, TASK, q_weight=0.24, **pair)) == ["near", "far"]
    assert lessons(ask(retriever, TASK, q_weight=0.26, **pair)) == ["far", "near"]


def test_the_automatic_threshold_keeps_foreign_tasks_out(bank, ask):
    bank.remember("restart the modem", "a lesson")
    retriever = MemRLRetriever(memory=bank, score_threshold="auto")
    assert lessons(ask(retriever, TASK)) == ["a lesson"]
    assert ask(retriever, "bury the cable") == []
    assert lessons(ask(retriever, "bury the cable", score_threshold=None)) == ["a lesson"]
    assert ask(retriever, TASK, score_threshold=0.9) == []


def test_an_empty_bank_and_a_blank_task_give_no_documents(bank, retriever, ask):
    assert ask(retriever, " \t\u200b") == []
    assert ask(MemRLRetriever(memory=bank, namespace="empty"), TASK) == []


def test_a_bank_emptied_and_filled_again_is_searched_anew(bank, ids, retriever, ask):
    bank.forget(ids=list(ids.values()))
    assert ask(retriever, TASK) == []
    bank.remember("restart the modem", "after all")
    assert lessons(ask(retriever, TASK)) == ["after all"]


def test_exploration_is_drawn_anew_for_every_call(open_bank):
    def drawn(epsilon):
        bank = open_bank(":memory:", seed=3)
        for lesson, intent in LESSONS.items():
            bank.remember(intent, lesson)
        retriever = MemRLRetriever(memory=bank, score_threshold=None, q_weight=0.0, k=1)
        return [lessons(retriever.invoke(TASK, epsilon=epsilon))[0] for _ in range(40)]

    assert set(drawn(0.0)) == {"near"}
    assert set(drawn(1.0)) == set(LESSONS)
    assert drawn(1.0) == drawn(1.0)  # the bank's seed repeats it


def test_exploration_reaches_every_form_of_call(retriever, ask):
    found = {lessons(ask(retriever, TASK, epsilon=1, k=1))[0] for _ in range(40)}
    assert found == set(LESSONS)


OUT_OF_RANGE = [
    {"k": 0},
    {"k": True},
    {"k": "2"},
    {"k": 1.5},
    {"fetch_k": 0},
    {"q_weight": 1.1},
    {"q_weight": -0.1},
    {"q_weight": float("nan")},
    {"epsilon": 2},
    {"score_threshold": 1.01},
    {"score_threshold": "high"},
    {"score_threshold": float("nan")},
    {"score_threshold": True},
    {"normalization": "softmax"},
]


def test_a_setting_out_of_range_is_refused_naming_it(retriever, embeddings, ask):
    asked = len(embeddings.calls)
    for call in OUT_OF_RANGE:
        with pytest.raises(ConfigError, match=next(iter(call))):
            ask(retriever, TASK, **call)
    assert len(embeddings.calls) == asked


def test_a_misspelt_argument_is_refused(retriever, ask):
    for name in (
        "kk",
        "top_k",
        "threshold",
        "qweight",
        "episode",
        "filters",
        "arguments",
        "record",
    ):
        with pytest.raises(TypeError, match=name):
            ask(retriever, TASK, **{name: 1})


@pytest.mark.parametrize(
    "settings", [{"kk": 1}, {"bank": 1}, {"episode_id": "e"}, {"k": 0}, {"q_weight": 2}], ids=str
)
def test_a_misspelt_or_unusable_constructor_argument_is_refused(bank, settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        MemRLRetriever(memory=bank, **settings)


def test_a_bad_filter_is_refused(retriever, ask):
    with pytest.raises(InputError):
        ask(retriever, TASK, filter={"place": {"$near": "cellar"}})


def test_a_call_beats_the_constructor_also_with_none(bank, ids, ask):
    retriever = MemRLRetriever(
        memory=bank, k=1, score_threshold=1, q_weight=0, filter={"place": "cellar"}
    )
    assert ask(retriever, TASK) == []
    assert lessons(ask(retriever, TASK, score_threshold=None)) == ["far"]
    assert lessons(ask(retriever, TASK, score_threshold=None, filter=None)) == ["near"]


def test_bound_settings_apply(retriever):
    assert lessons(retriever.bind(k=1).invoke(TASK)) == ["near"]
    assert [lessons(found) for found in retriever.bind(k=1).stream(TASK)] == [["near"]]


def test_verbose_and_run_id_are_langchains_own_and_accepted(retriever, ask):
    assert lessons(ask(retriever, TASK, verbose=True, k=1)) == ["near"]
    run_id = "0198d5c0-0000-7000-8000-000000000001"
    assert lessons(retriever.invoke(TASK, run_id=run_id, k=1)) == ["near"]


# --- episodes -----------------------------------------------------------------------------------

EPISODE = {"metadata": {"memrl_episode_id": "job-42"}}


def test_the_episode_id_comes_with_the_config(retriever, bank, ids, ask):
    ask(retriever, TASK, EPISODE, k=2)
    assert bank.episode("job-42").memory_ids == (ids["near"], ids["far"])
    assert bank.episode("job-42").intents == (TASK,)
    assert bank.get(ids["near"]).selections == 1


def test_without_an_episode_id_nothing_is_written(retriever, bank, ids, ask):
    before = bank.stats()
    ask(retriever, TASK, {"metadata": {"other": 1}})
    assert bank.stats() == before


def test_an_argument_beats_the_config(retriever, bank, ask):
    ask(retriever, TASK, EPISODE, episode_id="job-43")
    assert bank.episode("job-43").memory_ids
    with pytest.raises(EpisodeError):
        bank.episode("job-42")


def test_a_bound_config_carries_the_episode_id(retriever, bank, ask):
    ask(retriever.with_config(EPISODE), TASK)
    assert bank.episode("job-42").memory_ids


def test_each_request_of_a_batch_has_its_own_episode(retriever, bank):
    configs = [{"metadata": {"memrl_episode_id": f"job-{i}"}} for i in range(5)]
    retriever.batch([TASK] * 5, configs)
    asyncio.run(retriever.abatch([TASK] * 5, configs))
    assert bank.stats().open_episodes == 5
    assert bank.stats().selections == 5 * 4


def test_parallel_branches_of_a_chain_join_one_episode(retriever, bank, ids):
    one = retriever.bind(k=1, filter={"place": "attic"})
    two = RunnableLambda(lambda task: f"{task}, please") | retriever.bind(
        k=1, filter={"place": "cellar"}
    )
    RunnableParallel(one=one, two=two).invoke(TASK, EPISODE)
    assert set(bank.episode("job-42").memory_ids) == {ids["near"], ids["far"]}
    asyncio.run(RunnableParallel(one=one, two=two).ainvoke(TASK, EPISODE))
    assert bank.stats().selections == 2


def test_a_chain_learns_from_a_reward_that_comes_later(retriever, bank, ids):
    model = ScriptedChatModel(responses=["Hold the button."], cycle=True)
    prompt = ChatPromptTemplate.from_template("{notes}\n\n{task}")
    chain = (
        {"notes": retriever.bind(k=1) | (lambda found: lessons(found)[0])}
        | RunnablePassthrough.assign(task=lambda _: TASK)
        | prompt
        | model
        | StrOutputParser()
    )
    assert chain.invoke(TASK, EPISODE) == "Hold the button."
    assert model.calls[0][0].content == f"near\n\n{TASK}"
    assert bank.reinforce("job-42", reward=1.0).applied
    assert not bank.reinforce("job-42", reward=1.0).applied
    assert bank.get(ids["near"]).q_value == pytest.approx(0.3)
    assert bank.get(ids["far"]).updates == 0


def test_the_same_task_in_one_episode_gets_the_recorded_memories_again(retriever, bank, ids, ask):
    first = retriever.invoke(TASK, EPISODE, k=1)
    bank.remember(TASK, "newer and nearer")
    again = ask(retriever, TASK, EPISODE, k=1)
    assert [document.id for document in again] == [document.id for document in first]
    assert bank.get(ids["near"]).selections == 1


def test_a_helper_inside_a_chain_hands_the_episode_on(retriever, bank):
    def look_up(task):
        return lessons(retriever.invoke(task))

    RunnableLambda(look_up).invoke(TASK, EPISODE)
    assert bank.episode("job-42").memory_ids


def test_fifty_recalls_without_an_episode_give_one_warning(retriever, caplog):
    with caplog.at_level(logging.WARNING, logger="langchain_memrl"):
        for number in range(120):
            retriever.invoke(TASK)
            assert len(caplog.records) == (number >= 49)
    assert "nothing can be learned" in caplog.text
    assert TASK not in caplog.text


def test_recalls_with_an_episode_give_no_warning(retriever, caplog):
    for number in range(60):
        retriever.invoke(TASK, {"metadata": {"memrl_episode_id": f"job-{number}"}})
    assert not caplog.records


# --- namespaces ---------------------------------------------------------------------------------


@pytest.fixture
def tenants(bank):
    for tenant in ("acme", "acme-corp"):
        for number in range(3):
            bank.remember(f"{TASK} {number}", f"canary of {tenant}", namespace=tenant)
    return bank


def at(tenant, part="configurable"):
    return {part: {"memrl_namespace": tenant}}


def test_a_namespace_given_to_the_constructor_is_final(tenants, ask):
    retriever = MemRLRetriever(memory=tenants, namespace="acme", score_threshold=None)
    for config in ({}, at("acme-corp"), at("acme-corp", "metadata"), {"configurable": {}}):
        assert set(lessons(ask(retriever, TASK, config))) == {"canary of acme"}
    with pytest.raises(TypeError, match="namespace"):
        ask(retriever, TASK, namespace="acme-corp")


def test_without_a_namespace_it_is_the_memorys_own(tenants, ask):
    view = tenants.in_namespace("acme")
    retriever = MemRLRetriever(memory=view, score_threshold=None)
    assert set(lessons(ask(retriever, TASK, at("acme-corp")))) == {"canary of acme"}


def test_a_retriever_over_a_view_cannot_leave_it(tenants, ask):
    with pytest.raises(InputError, match="bound to namespace"):
        ask(MemRLRetriever(memory=tenants.in_namespace("acme"), namespace="acme-corp"), TASK)


@pytest.mark.parametrize("blank", ["", " ", "\u200b", "a" * 256, "a\0b"])
def test_an_unusable_namespace_is_refused_when_the_retriever_is_made(bank, blank):
    with pytest.raises(ValueError, match="namespace"):
        MemRLRetriever(memory=bank, namespace=blank)


@pytest.mark.parametrize("part", ["configurable", "metadata"])
def test_the_request_names_the_namespace(tenants, ask, part):
    retriever = MemRLRetriever(
        memory=tenants, namespace=FromConfig("memrl_namespace"), score_threshold=None
    )
    for tenant in ("acme", "acme-corp"):
        found = ask(retriever, TASK, at(tenant, part))
        assert set(lessons(found)) == {f"canary of {tenant}"}
        assert {document.metadata["namespace"] for document in found} == {tenant}


def test_configurable_comes_before_metadata(tenants, ask):
    retriever = MemRLRetriever(
        memory=tenants, namespace=FromConfig("memrl_namespace"), score_threshold=None
    )
    config = at("acme") | at("acme-corp", "metadata")
    assert set(lessons(ask(retriever, TASK, config))) == {"canary of acme"}


@pytest.mark.parametrize("config", [None, {}, at(None), {"configurable": {"namespace": "acme"}}])
def test_a_request_without_a_namespace_is_an_error(tenants, embeddings, ask, config):
    retriever = MemRLRetriever(memory=tenants, namespace=FromConfig("memrl_namespace"))
    asked = len(embeddings.calls)
    with pytest.raises(InputError, match="memrl_namespace"):
        ask(retriever, TASK, config)
    assert len(embeddings.calls) == asked


@pytest.mark.parametrize("label", ["", "  ", 7, ["acme"]])
def test_an_unusable_label_in_the_request_is_an_error_and_never_another_tenant(tenants, ask, label):
    retriever = MemRLRetriever(memory=tenants, namespace=FromConfig("memrl_namespace"))
    with pytest.raises(InputError, match="memrl_namespace"):
        ask(retriever, TASK, at(label))


def test_the_namespace_reaches_a_retriever_inside_a_chain(tenants):
    retriever = MemRLRetriever(
        memory=tenants, namespace=FromConfig("memrl_namespace"), score_threshold=None
    )
    chain = RunnableLambda(str.strip) | retriever | lessons
    assert set(chain.invoke(TASK, at("acme"))) == {"canary of acme"}
    assert set(asyncio.run(chain.ainvoke(TASK, at("acme-corp")))) == {"canary of acme-corp"}
    both = chain.batch([TASK] * 2, [at("acme"), at("acme-corp")])
    assert [set(found) for found in both] == [{"canary of acme"}, {"canary of acme-corp"}]
    with pytest.raises(InputError):
        chain.invoke(TASK)


def test_episodes_of_two_tenants_never_mix(tenants, ask):
    retriever = MemRLRetriever(
        memory=tenants, namespace=FromConfig("memrl_namespace"), score_threshold=None
    )
    for tenant in ("acme", "acme-corp"):
        ask(retriever, TASK, at(tenant) | EPISODE)
    ours = tenants.episode("job-42", namespace="acme").memory_ids
    theirs = tenants.episode("job-42", namespace="acme-corp").memory_ids
    assert ours
    assert theirs
    assert not set(ours) & set(theirs)
    tenants.reinforce("job-42", reward=1.0, namespace="acme")
    assert tenants.stats(namespace="acme-corp").updates == 0


def test_two_tenants_on_many_threads_never_see_each_other(tenants):
    retriever = MemRLRetriever(
        memory=tenants, namespace=FromConfig("memrl_namespace"), score_threshold=None
    )

    def one(number):
        tenant = ("acme", "acme-corp")[number % 2]
        config = at(tenant) | {"metadata": {"memrl_episode_id": f"job-{number // 2}"}}
        return tenant, set(lessons(retriever.invoke(TASK, config)))

    with ThreadPoolExecutor(8) as threads:
        for tenant, seen in threads.map(one, range(200)):
            assert seen == {f"canary of {tenant}"}


# --- as a tool, configurable, copied, wrapped ---------------------------------------------------


def tool_of(retriever, **options):
    return create_retriever_tool(retriever, "recall", "Recalls earlier lessons.", **options)


def test_as_a_tool_the_model_sees_only_the_query(retriever):
    assert list(tool_of(retriever).args) == ["query"]


def test_as_a_tool_it_hands_on_the_documents(retriever, bank, ids):
    tool = tool_of(retriever.bind(k=2), response_format="content_and_artifact")
    call = {"name": "recall", "args": {"query": TASK}, "id": "call-1", "type": "tool_call"}
    message = tool.invoke(call)
    assert message.content == "near\n\nfar"
    assert [document.id for document in message.artifact] == [ids["near"], ids["far"]]
    bank.reinforce("job-43", reward=-1.0, ids=[document.id for document in message.artifact])
    assert bank.get(ids["near"]).q_value == pytest.approx(-0.3)
    awaited = asyncio.run(tool.ainvoke(call))
    assert [document.id for document in awaited.artifact] == [ids["near"], ids["far"]]


@pytest.mark.parametrize("form", ["invoke", "ainvoke"])
def test_as_a_tool_it_keeps_the_requests_namespace_and_episode(tenants, form):
    tool = tool_of(
        MemRLRetriever(
            memory=tenants, namespace=FromConfig("memrl_namespace"), score_threshold=None
        )
    )
    assert list(tool.args) == ["query"]
    arguments = {"query": TASK, "namespace": "acme-corp", "memrl_namespace": "acme-corp"}
    config = at("acme") | EPISODE
    if form == "invoke":
        text = tool.invoke(arguments, config)
    else:
        text = asyncio.run(tool.ainvoke(arguments, config))
    assert set(text.split("\n\n")) == {"canary of acme"}
    assert tenants.episode("job-42", namespace="acme").memory_ids
    with pytest.raises(InputError):
        tool.invoke({"query": TASK})


def test_configurable_settings_share_the_bank(retriever, bank, ids, ask):
    flexible = retriever.configurable_fields(
        k=ConfigurableField(id="k"), q_weight=ConfigurableField(id="q_weight")
    )
    assert lessons(ask(flexible, TASK, {"configurable": {"k": 1}})) == ["near"]
    assert len(ask(flexible, TASK)) == 4
    bank.reinforce("good", reward=1.0, ids=[ids["far"]])
    chosen = {"configurable": {"k": 1, "q_weight": 1.0}} | EPISODE
    assert lessons(ask(flexible, TASK, chosen)) == ["far"]
    assert bank.episode("job-42").memory_ids == (ids["far"],)
    bank.remember(TASK, "newest")
    assert lessons(ask(flexible, TASK, {"configurable": {"k": 1}})) == ["newest"]


def test_configurable_settings_are_checked(retriever):
    flexible = retriever.configurable_fields(k=ConfigurableField(id="k"))
    with pytest.raises(ValueError, match="k is 0"):
        flexible.invoke(TASK, {"configurable": {"k": 0}})


def test_copies_share_the_bank(retriever, bank):
    changed = retriever.model_copy(update={"k": 1})
    for other in (copy.copy(retriever), copy.deepcopy(retriever), changed):
        assert other.memory is bank
    bank.remember(TASK, "later")
    assert lessons(changed.invoke(TASK)) == ["later"]
    assert lessons(copy.deepcopy(changed).invoke(TASK)) == ["later"]


class BestOnly(BaseDocumentCompressor):
    """A reranker that keeps the last document."""

    def compress_documents(self, documents, query, callbacks=None):
        return documents[-1:]


def test_a_reranker_that_drops_documents_is_rewarded_by_the_ids_it_kept(retriever, bank, ids):
    kept = BestOnly().compress_documents(retriever.invoke(TASK), TASK)
    bank.reinforce("job-1", reward=1.0, ids=[document.id for document in kept])
    moved = {lesson: bank.get(id).updates for lesson, id in ids.items()}
    assert moved == {"near": 0, "far": 0, "aside": 0, "opposite": 1}


def test_kept_ids_that_differ_from_what_the_episode_recorded_are_an_error(retriever, bank, ids):
    kept = BestOnly().compress_documents(retriever.invoke(TASK, EPISODE), TASK)
    with pytest.raises(EpisodeError, match="recorded other memories"):
        bank.reinforce("job-42", reward=1.0, ids=[document.id for document in kept])
    assert bank.stats().updates == 0


def fused(*answers):
    """Reciprocal rank fusion by id, the way an ensemble merges its retrievers."""
    weights, documents = {}, {}
    for answer in answers:
        for place, document in enumerate(answer):
            documents.setdefault(document.id, document)
            weights[document.id] = weights.get(document.id, 0) + 1 / (60 + place)
    return [documents[id] for id in sorted(weights, key=weights.get, reverse=True)]


def test_twin_texts_keep_their_own_ids_and_q_in_an_ensemble(bank):
    twins = [bank.remember(TASK, "the same words") for _ in range(2)]
    bank.reinforce("e1", reward=1.0, ids=[twins[0].id])
    bank.reinforce("e2", reward=-1.0, ids=[twins[1].id])
    by_q = MemRLRetriever(memory=bank, q_weight=1.0)
    by_similarity = MemRLRetriever(memory=bank, q_weight=0.0)
    found = fused(*RunnableParallel(a=by_q, b=by_similarity).invoke(TASK).values())
    pairs = {document.id: document.metadata["q_value"] for document in found}
    assert pairs == {twins[0].id: pytest.approx(0.3), twins[1].id: pytest.approx(-0.3)}
    assert found[0].id == twins[0].id


# --- tracing ------------------------------------------------------------------------------------


class Trace(BaseCallbackHandler):
    """Keeps what a tracer is told."""

    def __init__(self):
        self.started, self.ended, self.errors = [], [], []

    def on_retriever_start(self, serialized, query, *, metadata=None, **kwargs):
        self.started.append((query, metadata, kwargs.get("name")))

    def on_retriever_end(self, documents, **kwargs):
        self.ended.append(list(documents))

    def on_retriever_error(self, error, **kwargs):
        self.errors.append(error)


def test_callbacks_see_the_documents_with_their_numbers(retriever, ask):
    trace = Trace()
    found = ask(retriever, TASK, {"callbacks": [trace]}, k=1)
    assert trace.ended[0][0].id == found[0].id
    assert trace.ended[0][0].metadata["similarity"] == 0.8
    assert trace.ended[0][0].metadata["score"] == 0.8


def test_traces_name_the_store_and_the_embedding_model(retriever, ask):
    trace = Trace()
    ask(retriever, TASK, {"callbacks": [trace], "metadata": {"mine": 1}})
    query, metadata, name = trace.started[0]
    assert (query, name) == (TASK, "MemRLRetriever")
    assert metadata["mine"] == 1
    assert {key: value for key, value in metadata.items() if key.startswith("ls_")} == {
        "ls_retriever_name": "memrl",
        "ls_vector_store_provider": "faiss",
        "ls_embedding_provider": "FakeEmbeddings",
        "ls_embedding_model": "fake",
    }


def test_the_event_stream_shows_the_documents_with_their_numbers(retriever):
    async def events():
        chain = RunnableLambda(str.strip) | retriever | lessons
        stream = chain.astream_events(TASK, EPISODE, version="v2")
        return [event async for event in stream if event["event"] == "on_retriever_end"]

    (event,) = asyncio.run(events())
    assert [d.metadata["similarity"] for d in event["data"]["output"]] == [0.8, 0.6, 0.0, -1.0]
    assert event["metadata"]["ls_retriever_name"] == "memrl"
    assert event["metadata"]["memrl_episode_id"] == "job-42"


def test_an_embedder_that_fails_surfaces_and_writes_nothing(retriever, bank, embeddings, ask):
    trace = Trace()
    for number in (1, 2):
        embeddings.break_call(number, "raise")
    with pytest.raises(ProviderError):
        ask(retriever, "a task never seen", EPISODE | {"callbacks": [trace]})
    assert isinstance(trace.errors[0], ProviderError)
    assert bank.stats().open_episodes == 0


def test_a_retriever_does_not_pretend_to_be_serialisable(retriever):
    assert not retriever.is_lc_serializable()


# --- the event loop -----------------------------------------------------------------------------


class Handshake(FakeEmbeddings):
    """Answers an awaited call only after the event loop ran something else."""

    def __init__(self, **options):
        super().__init__(**options)
        self.waiting, self.go_on = asyncio.Event(), asyncio.Event()

    async def aembed_documents(self, texts):
        self.waiting.set()
        await asyncio.wait_for(self.go_on.wait(), 10)
        return self.embed_documents(texts)


async def test_the_loop_goes_on_while_the_embedder_works():
    embeddings = Handshake(vectors=VECTORS)
    with EpisodicMemory.open(":memory:", embeddings=embeddings) as bank:
        bank.remember("restart the modem", "a lesson")
        answer = asyncio.create_task(MemRLRetriever(memory=bank).ainvoke(TASK))
        await asyncio.wait_for(embeddings.waiting.wait(), 10)
        embeddings.go_on.set()
        assert lessons(await answer) == ["a lesson"]


async def test_the_loop_goes_on_while_the_store_works_and_the_store_never_sees_its_thread():
    store = WatchedStore(LocalStore(":memory:"))
    with EpisodicMemory(store, FakeEmbeddings(vectors=VECTORS)) as bank:
        await bank.aremember("restart the modem", "a lesson")
        retriever = MemRLRetriever(memory=bank)
        released = threading.Event()
        loop = asyncio.get_running_loop()
        store.before["pools"] = lambda: (
            loop.call_soon_threadsafe(released.set),
            released.wait(10) or pytest.fail("the event loop was blocked"),
        )
        store.calls.clear()
        found = await asyncio.gather(
            *(retriever.ainvoke(TASK, EPISODE) for _ in range(20)),
            retriever.abatch([TASK] * 3),
            retriever.with_config(EPISODE).ainvoke(TASK),
        )
        assert lessons(found[0]) == ["a lesson"]
        assert store.count("record") > 0
        assert store.threads
        assert threading.get_ident() not in store.threads


async def test_a_blocking_call_inside_a_coroutine_answers(retriever):
    assert lessons(retriever.invoke(TASK, k=1)) == ["near"]


# --- the recall behind an answer ------------------------------------------------------------------


def test_recall_chooses_what_invoke_does_in_the_namespace_of_the_request(bank):
    for space in ("default", "a", "b"):
        bank.remember(TASK, f"lesson of {space}", namespace=space)
    fixed = MemRLRetriever(memory=bank, namespace="a", k=1, score_threshold=None)
    asked = MemRLRetriever(memory=bank, namespace=FromConfig("tenant"), score_threshold=None)
    config = {"configurable": {"tenant": "b"}, "metadata": {"memrl_episode_id": "e"}}
    assert [one.memory.lesson for one in fixed.recall(TASK).memories] == ["lesson of a"]
    assert [one.memory.lesson for one in asked.recall(TASK, config).memories] == ["lesson of b"]
    assert bank.episode("e", namespace="b").memory_ids == asked.recall(TASK, config).ids
    with pytest.raises(InputError, match="names no namespace"):
        asked.recall(TASK)


async def test_an_awaited_recall_does_too(bank):
    bank.remember(TASK, "lesson", namespace="a")
    retriever = MemRLRetriever(memory=bank, namespace="a", score_threshold=None)
    assert len((await retriever.arecall(TASK, k=1)).ids) == 1
