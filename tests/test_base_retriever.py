"""MemRLRetriever(base=...): Q for the documents of a retriever that is there already."""

import asyncio

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableLambda, RunnablePassthrough
from plain import foreign

from langchain_memrl import EpisodicMemory, FromConfig, MemRLRetriever, create_memrl_graph
from langchain_memrl.errors import EpisodeError, InputError
from langchain_memrl.offline import HashingEmbeddings, ScriptedChatModel

TASK = "reset the router"


class Shelf(BaseRetriever):
    """Gives its documents as they are, and counts how it was asked."""

    documents: list
    asked: list
    awaited: list

    def _get_relevant_documents(self, query, *, run_manager):
        self.asked.append(query)
        return list(self.documents)

    async def _aget_relevant_documents(self, query, *, run_manager):
        self.awaited.append(query)
        return list(self.documents)


def pages(count=6, **metadata):
    return [Document(id=f"p{n}", page_content=f"page {n}", metadata=metadata) for n in range(count)]


@pytest.fixture
def memory():
    with EpisodicMemory.open(":memory:", seed=0) as opened:  # no embeddings
        yield opened


def over(memory, documents=None, **settings):
    base = Shelf(documents=pages() if documents is None else documents, asked=[], awaited=[])
    return MemRLRetriever(memory=memory, base=base, **{"k": 3, "q_weight": 0.5, **settings})


def episode(name):
    return {"metadata": {"memrl_episode_id": name}}


def names(documents):
    return [document.id for document in documents]


def q_of(memory, document):
    return memory.get(document.metadata["memrl_id"]).q_value


# --- ranking ------------------------------------------------------------------------------------


def test_without_rewards_the_order_of_the_base_stands(memory):
    assert names(over(memory).invoke(TASK)) == ["p0", "p1", "p2"]
    assert memory.list() == []  # no episode, nothing written


def test_a_reward_moves_the_q_of_what_was_shown_and_the_next_choice(memory):
    retriever = over(memory)
    retriever.invoke(TASK, episode("a"))
    found = memory.reinforce("a", reward=-1.0)
    assert [credit.after for credit in found.credits] == pytest.approx([-0.3] * 3)
    again = retriever.invoke(TASK)
    # Standardised: places 1.46, 0.88, 0.29 and so on down, Q -1 for p0 to p2 and +1 for the others.
    assert names(again) == ["p3", "p0", "p4"]
    assert q_of(memory, again[1]) == pytest.approx(-0.3)
    assert names(retriever.invoke(TASK, q_weight=0.0)) == ["p0", "p1", "p2"]
    assert names(retriever.invoke(TASK, k=1)) == ["p3"]


def test_a_document_comes_back_as_it_was_with_plain_numbers_beside_it(memory):
    documents = pages(color="red")
    first = over(memory, documents).invoke(TASK, episode("a"))[0]
    assert (first.id, first.page_content) == ("p0", "page 0")
    marks = {name: value for name, value in first.metadata.items() if name != "color"}
    assert first.metadata["color"] == "red"
    assert sorted(marks) == [
        *("memrl_id", "memrl_q_value", "memrl_recall_id", "memrl_score", "memrl_selections"),
        *("memrl_similarity", "memrl_updates", "memrl_withheld"),
    ]
    assert foreign(first.metadata) == []
    assert documents[0].metadata == {"color": "red"}  # the base's own object is not touched
    assert marks["memrl_selections"] == 1
    assert marks["memrl_similarity"] == 1.0


def test_places_are_equal_steps_from_one_down(memory):
    found = over(memory, pages(4), k=4).invoke(TASK)
    assert [one.metadata["memrl_similarity"] for one in found] == [1.0, 0.75, 0.5, 0.25]


def test_scores_count_instead_of_places_where_a_key_is_given(memory):
    documents = pages(4)
    for document, score in zip(documents, (0.1, 0.9, 0.5, 0.2), strict=True):
        document.metadata |= {"fit": score, "distance": 1 - score}
    by_fit = over(memory, documents, score_key="fit")
    by_distance = over(memory, documents, score_key=lambda one: -one.metadata["distance"])
    assert names(by_fit.invoke(TASK)) == names(by_distance.invoke(TASK)) == ["p1", "p2", "p3"]
    assert by_fit.invoke(TASK)[0].metadata["memrl_similarity"] == 0.9


@pytest.mark.parametrize("value", [None, "0.5", True, float("nan")])
def test_an_unusable_score_is_an_error(memory, value):
    with pytest.raises(InputError, match="score_key"):
        over(memory, pages(fit=value), score_key="fit").invoke(TASK)


def test_equal_scores_keep_the_order_of_the_base(memory):
    assert names(over(memory, pages(fit=1), score_key="fit").invoke(TASK)) == ["p0", "p1", "p2"]


def test_a_disabled_document_is_not_chosen(memory):
    retriever = over(memory)
    first = retriever.invoke(TASK, episode("a"))[0]
    memory.disable(first.metadata["memrl_id"])
    assert names(retriever.invoke(TASK)) == ["p1", "p2", "p3"]


def test_exploring_chooses_others_and_says_with_which_chance(memory):
    retriever = over(memory, epsilon=1.0)
    assert len({tuple(names(retriever.invoke(TASK))) for _ in range(20)}) > 5
    recall = memory.recall_documents(TASK, pages(), k=3, epsilon=0.5)
    assert [one.probability for one in recall.candidates][:3] == pytest.approx([0.75] * 3)


def test_nothing_found_is_no_error_and_hides_nothing_else(memory):
    assert over(memory, []).invoke(TASK, episode("a")) == []
    assert names(over(memory).invoke(TASK, episode("a"))) == ["p0", "p1", "p2"]
    assert len(memory.reinforce("a", reward=1.0).credits) == 3


def test_a_base_that_never_finds_more_than_k_is_told_about_once(memory, caplog):
    retriever = over(memory, pages(3))
    for _ in range(60):
        retriever.invoke(TASK)
    told = [record for record in caplog.records if "no more documents than k=3" in record.message]
    assert len(told) == 1


# --- what a document is known by ----------------------------------------------------------------


def test_two_documents_of_one_text_stay_apart_by_id(memory):
    twins = [Document(id=name, page_content="the same") for name in ("left", "right")]
    over(memory, twins).invoke(TASK, episode("a"))
    memory.reinforce("a", reward=1.0, cited=["right"])
    right, left = over(memory, twins, q_weight=0.6).invoke(TASK)
    assert (right.id, left.id) == ("right", "left")
    assert (q_of(memory, right), q_of(memory, left)) == pytest.approx((0.3, 0.0))


def test_without_an_id_the_content_counts_whatever_the_metadata(memory):
    one = Document(page_content="a text", metadata={"rank": 1})
    other = Document(page_content="a text", metadata={"rank": 2})
    (shown,) = over(memory, [one, other]).invoke(TASK, episode("a"))
    assert shown.metadata["rank"] == 1
    memory.reinforce("a", reward=1.0)
    (later,) = over(memory, [other]).invoke(TASK)
    assert later.metadata["memrl_q_value"] == pytest.approx(0.3)


@pytest.mark.parametrize("key", ["number", lambda document: str(document.metadata["number"])])
def test_a_key_of_the_metadata_tells_documents_apart(memory, key):
    one = Document(id="from here", page_content="a text", metadata={"number": 7})
    same = Document(id="from there", page_content="a text, cut", metadata={"number": 7})
    over(memory, [one], id_key=key).invoke(TASK, episode("a"))
    memory.reinforce("a", reward=1.0, cited=["7"])
    (later,) = over(memory, [same], id_key=key).invoke(TASK)
    assert later.metadata["memrl_q_value"] == pytest.approx(0.3)


def test_a_document_without_the_key_is_an_error_that_names_what_there_is(memory):
    with pytest.raises(InputError, match=r"id_key is 'number'.*\['color'\]"):
        over(memory, pages(color="red"), id_key="number").invoke(TASK)


def test_namespaces_learn_apart(memory):
    retriever = over(memory, namespace=FromConfig("tenant"))
    for tenant in ("one", "two"):
        retriever.invoke(TASK, {"metadata": {"memrl_episode_id": "a", "tenant": tenant}})
    memory.reinforce("a", reward=1.0, namespace="one")
    values = [retriever.invoke(TASK, {"configurable": {"tenant": name}}) for name in ("one", "two")]
    assert [found[0].metadata["memrl_q_value"] for found in values] == pytest.approx([0.3, 0.0])
    with pytest.raises(InputError, match="names no namespace"):
        retriever.invoke(TASK)


# --- episodes -----------------------------------------------------------------------------------


def test_the_same_task_over_the_same_documents_returns_what_was_recorded(memory):
    retriever = over(memory)
    retriever.invoke(TASK, episode("a"))
    for other in ("b", "c"):  # Q moves meanwhile
        retriever.invoke(TASK, episode(other))
        memory.reinforce(other, reward=-1.0)
    assert names(retriever.invoke(TASK)) != ["p0", "p1", "p2"]
    assert names(retriever.invoke(TASK, episode("a"))) == ["p0", "p1", "p2"]
    assert len(memory.episode("a").memory_ids) == 3


def test_other_documents_for_the_same_task_join_the_episode(memory):
    over(memory, pages(6)).invoke(TASK, episode("a"))
    others = [Document(id=f"other{n}", page_content="x") for n in range(6)]
    assert names(over(memory, others).invoke(TASK, episode("a"))) == ["other0", "other1", "other2"]
    assert len(memory.episode("a").memory_ids) == 6


def test_memories_and_documents_of_one_episode_are_rewarded_together():
    with EpisodicMemory.open(":memory:", embeddings=HashingEmbeddings()) as memory:
        lesson = memory.remember(TASK, "hold the button")
        recalled = MemRLRetriever(memory=memory).invoke(TASK, episode("a"))
        found = over(memory).invoke(TASK, episode("a"))
        assert names(recalled) == [lesson.id]
        moved = memory.reinforce("a", reward=1.0).credits
        assert [credit.id for credit in moved] == [
            lesson.id,
            *(one.metadata["memrl_id"] for one in found),
        ]
        assert names(MemRLRetriever(memory=memory).invoke(TASK)) == [lesson.id]


def test_after_the_reward_another_task_is_refused(memory):
    retriever = over(memory)
    retriever.invoke(TASK, episode("a"))
    memory.reinforce("a", reward=1.0)
    with pytest.raises(EpisodeError, match="already rewarded"):
        retriever.invoke("another task", episode("a"))


def test_record_off_writes_nothing_and_a_later_record_what_was_shown(memory):
    assert len(over(memory, record=False).invoke(TASK, episode("a"))) == 3
    with pytest.raises(EpisodeError, match="unknown"):
        memory.reinforce("a", reward=1.0)
    recall = memory.recall_documents(TASK, pages(), k=3, episode_id="a", record=False)
    memory.record(recall, recall.ids[1:2])
    assert [credit.id for credit in memory.reinforce("a", reward=1.0).credits] == [recall.ids[1]]


# --- in LangChain -------------------------------------------------------------------------------


async def test_awaited_the_base_is_awaited_and_the_answer_is_the_same(memory):
    retriever = over(memory)
    assert names(await retriever.ainvoke(TASK, episode("a"))) == ["p0", "p1", "p2"]
    assert (retriever.base.asked, retriever.base.awaited) == ([], [TASK])
    await memory.areinforce("a", reward=-1.0, cited=["p0"])
    found = await asyncio.gather(*(retriever.ainvoke(TASK) for _ in range(3)))
    assert [names(one) for one in found] == [["p1", "p2", "p3"]] * 3
    assert [names(one) for one in retriever.batch([TASK, TASK])] == [["p1", "p2", "p3"]] * 2


class Runs(BaseCallbackHandler):
    def __init__(self):
        self.starts, self.ends = [], []

    def on_retriever_start(self, serialized, query, *, run_id, parent_run_id, metadata, **_):
        self.starts.append((run_id, parent_run_id, metadata.get("memrl_episode_id")))

    def on_retriever_end(self, documents, **_):
        self.ends.append(len(documents))


@pytest.mark.parametrize("awaited", [False, True])
async def test_the_base_is_a_child_run_that_sees_the_request(memory, awaited):
    runs = Runs()
    retriever = over(memory)
    config = {**episode("a"), "callbacks": [runs]}
    await retriever.ainvoke(TASK, config) if awaited else retriever.invoke(TASK, config)
    (outer, inner) = runs.starts
    assert inner[1] == outer[0]
    assert outer[2] == inner[2] == "a"
    assert runs.ends == [6, 3]


def test_the_base_may_be_any_runnable_that_gives_documents(memory):
    seen = []

    def find(query, config):
        seen.append(config["configurable"]["shelf"])
        return pages()

    retriever = MemRLRetriever(memory=memory, base=RunnableLambda(find), k=2)
    assert names(retriever.invoke(TASK, {"configurable": {"shelf": "top"}})) == ["p0", "p1"]
    assert seen == ["top"]


def test_settings_can_be_configured_per_request(memory):
    retriever = over(memory).configurable_fields(k=ConfigurableField(id="k"))
    assert len(retriever.invoke(TASK, {"configurable": {"k": 1}})) == 1


def test_a_plain_chain_learns_with_one_line(memory):
    retriever = over(memory)
    chain = (
        {"pages": retriever, "question": RunnablePassthrough()}
        | ChatPromptTemplate.from_template("{pages} {question}")
        | ScriptedChatModel(responses=["hold the button"], cycle=True)
        | StrOutputParser()
    )
    chain.invoke(TASK, episode("a"))
    memory.reinforce("a", reward=-1.0)
    assert names(retriever.invoke(TASK)) == ["p3", "p0", "p4"]


@pytest.mark.parametrize("awaited", [False, True])
async def test_the_graph_shows_documents_and_rewards_those_that_reached_the_prompt(memory, awaited):
    model = ScriptedChatModel(responses=["done"], cycle=True)
    long = [Document(id=f"p{n}", page_content=f"page {n} " + "word " * 2000) for n in range(4)]
    retriever = over(memory, [*long[:1], *pages(6)[1:]])
    graph = create_memrl_graph(
        model, retriever, evaluator=lambda state: 1.0, write=False, max_memory_tokens=60
    )
    request = {"messages": [("user", TASK)]}
    state = await graph.ainvoke(request) if awaited else graph.invoke(request)
    shown = memory.episode(state["episode_id"]).memory_ids
    prompt = str(model.calls[0])
    assert {memory.get(id).q_value for id in shown} == {0.3}
    assert {memory.get(id).lesson for id in shown} >= {"id p1", "id p2"}
    assert [f"page {number}" in prompt for number in range(4)] == [False, True, True, False]


# --- settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "setting",
    [
        *({"fetch_k": 20}, {"score_threshold": 0.5}, {"filter": {"outcome": "success"}}),
        *({"distinct": False}, {"max_per_source": 2}),
    ],
)
def test_settings_of_a_search_in_the_bank_are_refused(memory, setting):
    with pytest.raises(ValueError, match="not to the documents of base"):
        over(memory, **setting)
    with pytest.raises(ValueError, match="not to the documents of base"):
        over(memory).invoke(TASK, **setting)


@pytest.mark.parametrize("setting", [{"id_key": "number"}, {"score_key": "fit"}])
def test_keys_without_a_base_are_refused(memory, setting):
    with pytest.raises(ValueError, match="give base="):
        MemRLRetriever(memory=memory, **setting)


@pytest.mark.parametrize(
    "setting",
    [{"k": 0}, {"q_weight": 2}, {"epsilon": -1}, {"holdout": 1.5}, {"stop_when_harmful": "x"}],
)
def test_a_setting_out_of_range_is_refused(memory, setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        over(memory, **setting)
    with pytest.raises(ValueError, match=next(iter(setting))):
        memory.recall_documents(TASK, pages(), **setting)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_the_last_of_a_few_documents_comes_first_once_it_has_proved_useful(count):
    documents = [Document(f"text {number}", id=str(number)) for number in range(count)]
    with EpisodicMemory.open(":memory:") as memory:
        base = RunnableLambda(lambda query: documents)
        retriever = MemRLRetriever(memory=memory, base=base, k=1)
        for number in range(30):
            (found,) = retriever.invoke("q", {"metadata": {"memrl_episode_id": f"e{number}"}})
            memory.reinforce(f"e{number}", reward=1.0 if found.id == str(count - 1) else -1.0)
        assert found.id == str(count - 1)
