"""Held-out episodes of wrapped retrievers: the base's own order, and what Q adds to it."""

import logging
import random

import pytest
from langchain_core.callbacks import CallbackManager
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from langchain_memrl import EpisodicMemory, MemRLCompressor, MemRLRetriever, create_memrl_graph
from langchain_memrl.errors import EpisodeError
from langchain_memrl.offline import HashingEmbeddings, ScriptedChatModel

TASK = "reset the router"
FIRST = ["p0", "p1", "p2"]


@pytest.fixture
def memory():
    with EpisodicMemory.open(":memory:", seed=0) as opened:  # no embeddings
        yield opened


def pages(count=6, **metadata):
    return [Document(id=f"p{n}", page_content=f"page {n}", metadata=metadata) for n in range(count)]


def over(memory, documents=None, **settings):
    found = pages() if documents is None else documents
    return MemRLRetriever(
        memory=memory, base=RunnableLambda(lambda _: list(found)), **{"k": 3, **settings}
    )


def episode(name):
    return {"metadata": {"memrl_episode_id": name}}


def names(documents):
    return [document.id for document in documents]


def withheld(documents):
    (why,) = {document.metadata["memrl_withheld"] for document in documents}
    return why


@pytest.fixture
def taught(memory):
    """A bank whose Q prefers p3 to p5."""
    over(memory).invoke(TASK, episode("taught"))
    memory.reinforce("taught", reward=-1.0)
    assert names(over(memory).invoke(TASK)) == ["p3", "p4", "p5"]
    return memory


def q_values(memory):
    return {one.lesson: (one.q_value, one.updates, one.selections) for one in memory.list()}


# --- one held-out episode -----------------------------------------------------------------------


def test_documents_come_in_the_order_of_the_base_and_nothing_is_credited(taught):
    before = q_values(taught)
    found = over(taught, holdout=1.0).invoke(TASK, episode("e"))
    assert names(found) == FIRST
    assert withheld(found) == "held_out"
    assert [one.metadata["memrl_q_value"] for one in found] == pytest.approx([-0.3] * 3)
    assert taught.episode("e").memory_ids == ()
    assert taught.reinforce("e", reward=1.0).credits == ()
    assert q_values(taught) == before
    assert taught.verify().problems == ()


def test_the_recall_tells_what_would_have_been_chosen(taught):
    recall = taught.recall_documents(TASK, pages(), k=3, holdout=1.0, episode_id="e")
    assert (recall.withheld, recall.holdout) == ("held_out", 1.0)
    assert [one.document.id for one in recall.memories] == FIRST
    keys = [recall.document_keys[one.id] for one in recall.candidates]
    assert keys == ["id p3", "id p4", "id p5", "id p0", "id p1", "id p2"]
    told = {one.id: str(one) for one in taught.explain(recall)}
    first, last = (told[recall.candidates[place].id] for place in (3, 0))
    assert first.startswith("Returned without Q, which was held out by chance, place 4 of 6")
    assert last.startswith("Not returned without Q, which was held out by chance, place 1 of 6")


def test_scores_do_not_change_the_order_of_the_base(taught):
    by_place = over(taught, holdout=1.0, score_key=lambda one: float(one.id[1:]))
    assert names(by_place.invoke(TASK, episode("e"))) == FIRST


def test_a_disabled_document_stays_out_and_of_twins_the_first_counts(taught):
    gone = taught.recall_documents(TASK, pages()).candidates
    keys = taught.recall_documents(TASK, pages()).document_keys
    taught.disable(next(one.id for one in gone if keys[one.id] == "id p1"))
    found = over(taught, [*pages(1), *pages()], holdout=1.0).invoke(TASK, episode("e"))
    assert names(found) == ["p0", "p2", "p3"]


def test_an_episode_is_always_on_the_same_side_and_returns_the_same(taught):
    shuffled = over(taught, pages()[::-1], holdout=0.5)
    sides = set()
    for number in range(30):
        asked = over(taught, holdout=0.5, record=False).invoke(TASK, episode(f"e{number}"))
        first = over(taught, holdout=0.5).invoke(TASK, episode(f"e{number}"))
        assert withheld(asked) == withheld(first)
        taught.reinforce(f"e{number}", reward=-1.0)  # Q moves on
        for again in (shuffled, over(taught, k=2), over(taught, stop_when_harmful=True)):
            repeated = again.invoke(TASK, episode(f"e{number}"))
            assert (names(repeated), withheld(repeated)) == (names(first), withheld(first))
        sides.add(withheld(first))
    assert sides == {"", "held_out"}


def test_a_base_that_finds_hundreds_keeps_its_first_ones(memory):
    many = pages(200)
    for number in range(3):
        over(memory, many).invoke(TASK, episode(f"down-{number}"))
        memory.reinforce(f"down-{number}", reward=-1.0)
    retriever = over(memory, many, k=60, q_weight=1.0, holdout=1.0)
    first = retriever.invoke(TASK, episode("e"))
    assert names(first) == [f"p{number}" for number in range(60)]
    assert names(retriever.invoke(TASK, episode("e"))) == names(first)


def test_without_an_episode_or_documents_nothing_is_held_out(taught):
    assert names(over(taught, holdout=1.0).invoke(TASK)) == ["p3", "p4", "p5"]
    assert over(taught, [], holdout=1.0).invoke(TASK, episode("e")) == []
    assert taught.lift().waiting_without == 0


def test_an_answer_may_cite_what_an_episode_that_is_held_out_returned(taught):
    before = q_values(taught)
    over(taught, holdout=1.0).invoke(TASK, episode("e"))
    assert taught.reinforce("e", reward=1.0, cited=["p0"]).credits == ()
    assert not taught.reinforce("e", reward=1.0, cited=["p0"]).applied
    assert taught.reinforce("e", reward=-1.0, cited=["p0"], revise=True).revised_from == 1.0
    assert q_values(taught) == before
    over(taught).invoke(TASK, episode("shown"))
    with pytest.raises(EpisodeError, match="did not show"):
        taught.reinforce("shown", reward=1.0, cited=["p0"])


async def test_awaited_and_with_settings_of_one_call_it_is_the_same(taught):
    found = await over(taught).ainvoke(TASK, episode("e"), holdout=1.0)
    assert (names(found), withheld(found)) == (FIRST, "held_out")
    recall = await taught.arecall_documents(TASK, pages(), k=3, holdout=1.0, episode_id="e2")
    assert [one.document.id for one in recall.memories] == FIRST


@pytest.mark.parametrize("awaited", [False, True])
async def test_a_compressor_holds_out_too(taught, awaited):
    compressor = MemRLCompressor(memory=taught, k=3, holdout=1.0)
    callbacks = CallbackManager.configure(inheritable_metadata=episode("e")["metadata"])
    asked = (pages(), TASK, callbacks)
    found = (
        await compressor.acompress_documents(*asked)
        if awaited
        else compressor.compress_documents(*asked)
    )
    assert (names(found), withheld(found)) == (FIRST, "held_out")
    assert taught.reinforce("e", reward=1.0).credits == ()


def test_a_last_step_that_only_records_draws_the_side_of_the_one_that_ranks(taught):
    last = MemRLCompressor(memory=taught, k=100, q_weight=0.0, holdout=0.5)
    sides = set()
    for number in range(20):
        ranked = over(taught, holdout=0.5, record=False).invoke(TASK, episode(f"e{number}"))
        callbacks = CallbackManager.configure(
            inheritable_metadata={"memrl_episode_id": f"e{number}"}
        )
        found = last.compress_documents(ranked, TASK, callbacks)
        assert names(found) == names(ranked)
        assert withheld(found) == withheld(ranked)
        assert len(taught.episode(f"e{number}").memory_ids) == (0 if withheld(found) else 3)
        sides.add(withheld(found))
    assert sides == {"", "held_out"}


@pytest.mark.parametrize("awaited", [False, True])
async def test_the_graph_shows_what_the_base_put_first(taught, awaited):
    before = q_values(taught)
    model = ScriptedChatModel(responses=["done"], cycle=True)
    graph = create_memrl_graph(
        model, over(taught, holdout=1.0), evaluator=lambda state: 1.0, write=False
    )
    request = {"messages": [("user", TASK)]}
    state = await graph.ainvoke(request) if awaited else graph.invoke(request)
    prompt = str(model.calls[0])
    assert [f"page {number}" in prompt for number in range(6)] == [True] * 3 + [False] * 3
    assert taught.episode(state["episode_id"]).memory_ids == ()
    assert q_values(taught) == before
    assert taught.lift().episodes_without == 1


def test_memories_and_documents_of_one_episode_are_on_one_side():
    with EpisodicMemory.open(":memory:", embeddings=HashingEmbeddings(16)) as memory:
        memory.remember(TASK, "hold the button")
        for number in range(20):
            config = episode(f"e{number}")
            recalled = MemRLRetriever(memory=memory, holdout=0.5).invoke(TASK, config)
            found = over(memory, holdout=0.5).invoke(TASK, config)
            assert bool(recalled) == (withheld(found) == "")
            memory.reinforce(f"e{number}", reward=1.0)
        found = memory.lift()
        assert found.episodes == 20
        assert 0 < found.episodes_without < 20


# --- three worlds -------------------------------------------------------------------------------
# In each a user is helped, with some chance, where the first document is the right one. `right`
# says which that is for the question of an episode; the base finds what `finds` says.


def always_the_third(number):
    """The page that helps is the third that the base finds, whatever is asked."""
    return pages(), "p2", (0.2, 0.9)


def all_alike(number):
    """It does not matter what the user reads."""
    return pages(), "p2", (0.5, 0.5)


def each_question_its_own(number):
    """The base finds the right page first; one Q per page cannot tell two questions apart."""
    found = pages(2)[:: random.Random(number).choice((1, -1))]
    return found, found[0].id, (0.1, 0.95)


class World:
    """Users who ask and reward, and what Q truly adds for them."""

    def __init__(self, memory, world, *, seed=0, **settings):
        self.memory, self.world, self.settings = memory, world, settings
        self.rng = random.Random(seed)
        self.gains = []

    def live(self, episodes, *, start=0):
        for number in range(start, start + episodes):
            documents, right, chances = self.world(number)
            recall = self.memory.recall_documents(
                f"question {number}", documents, k=1, record=False, episode_id=f"e{number}"
            )
            asked = over(self.memory, documents, k=1, **self.settings)
            (shown,) = asked.invoke(f"question {number}", episode(f"e{number}"))
            ranked = recall.memories[0].document.id
            self.gains.append(chances[ranked == right] - chances[documents[0].id == right])
            won = self.rng.random() < chances[shown.id == right]
            self.memory.reinforce(f"e{number}", reward=1.0 if won else -1.0, cited=[shown.id])
        return self

    @property
    def truth(self):
        return sum(self.gains) / len(self.gains)


@pytest.mark.parametrize(
    ("world", "verdict"),
    [(always_the_third, "helps"), (all_alike, "unknown"), (each_question_its_own, "harms")],
)
def test_lift_agrees_with_the_truth_in_three_worlds(memory, world, verdict):
    lived = World(memory, world, holdout=0.3).live(250)
    found = memory.lift()
    print(world.__name__, lived.truth, found)
    assert found.verdict == verdict
    assert found.low <= lived.truth <= found.high
    assert {"helps": lived.truth > 0.3, "harms": lived.truth < -0.3}.get(verdict, lived.truth == 0)
    assert found.episodes == 250
    assert memory.verify().problems == ()


def test_each_document_has_its_own_lift(memory):
    World(memory, always_the_third, holdout=0.3).live(250)
    told = {memory.get(one.memory_id).lesson: one for one in memory.lift(memories=True).memories}
    assert told["id p2"].verdict == "helps"
    assert all(one.verdict == "unknown" for key, one in told.items() if key != "id p2")


def test_an_order_that_harms_is_dropped_for_that_of_the_base_and_it_is_said_once(memory, caplog):
    brake = {"holdout": 0.3, "stop_when_harmful": True}
    world = World(memory, each_question_its_own, **brake)
    with caplog.at_level(logging.WARNING, logger="langchain_memrl"):
        world.live(300)
    said = [record.message for record in caplog.records if "were found to harm" in record.message]
    assert len(said) == 1
    before, lift = q_values(memory), memory.lift()
    for number in range(300, 310):
        documents, _, _ = each_question_its_own(number)
        found = over(memory, documents, **brake).invoke(TASK, episode(f"e{number}"))
        assert names(found) == names(documents)
        assert withheld(found) == "harmful"
        assert memory.reinforce(f"e{number}", reward=1.0, cited=names(found)).credits == ()
    assert q_values(memory) == before
    assert memory.lift() == lift  # what chance did not decide proves nothing
    assert withheld(over(memory, holdout=0.0).invoke(TASK, episode("without it"))) == ""


def test_an_order_that_helps_goes_on(memory):
    World(memory, always_the_third, holdout=0.3, stop_when_harmful=True).live(150)
    found = over(memory, k=1, stop_when_harmful=True).invoke(TASK, episode("later"))
    assert (names(found), withheld(found)) == (["p2"], "")


def test_held_out_documents_move_with_an_export(memory, tmp_path):
    World(memory, always_the_third, holdout=0.3).live(60)
    over(memory, holdout=1.0).invoke(TASK, episode("e"))
    memory.export_jsonl(tmp_path / "dump.jsonl")
    with EpisodicMemory.import_jsonl(tmp_path / "dump.jsonl", ":memory:") as copy:
        assert copy.lift(memories=True) == memory.lift(memories=True)
        assert names(over(copy, pages()[::-1]).invoke(TASK, episode("e"))) == FIRST
