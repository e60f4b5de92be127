"""What episodes cost besides time is counted from what the model was really asked."""

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from langchain_memrl.bench import episodes
from langchain_memrl.bench.caches import PrefixCache, served
from langchain_memrl.graph.agent import MEMORY_ID

SYSTEM = SystemMessage("s" * 40)  # 10 + 2 ("system" is 6 characters) + 3 = 15 tokens
MEMORIES = "m" * 72  # 18 + 1 + 3 = 23 tokens
TASK = "t" * 24  # 6 + 1 + 3 = 11 tokens


def memories(text, id="1"):
    return HumanMessage(text, id=f"{MEMORY_ID}{id}")


def test_a_prompt_is_served_up_to_its_first_new_message():
    cache = PrefixCache()
    tokens = [cache.ask([SYSTEM, HumanMessage(text * 24)]) for text in "ttu"]
    system, task = tokens[2].own_served, tokens[2].own - tokens[2].own_served
    assert [one.own for one in tokens] == [system + task] * 3
    assert [one.own_served for one in tokens] == [0, system + task, system]


def test_what_stands_behind_a_new_message_is_not_served():
    cache = PrefixCache()
    cache.ask([SYSTEM, HumanMessage(TASK)])
    behind = cache.ask([SYSTEM, memories(MEMORIES), HumanMessage(TASK)])
    again = cache.ask([SYSTEM, memories(MEMORIES, "2"), HumanMessage(TASK)])
    assert 0 < behind.own_served < behind.own
    assert (behind.memories > 0, behind.memories_served) == (True, 0)
    assert (again.own_served, again.memories_served) == (again.own, again.memories)


def test_ids_do_not_matter_and_tool_calls_do():
    def call(step, id):
        tool = {"name": "look", "args": {"step": step}, "id": "call"}
        return AIMessage("", id=id, tool_calls=[tool])

    found = served([[call(1, "a")], [call(1, "b")], [call(2, "c")]])
    assert found.own_served * 3 == found.own


def test_the_memory_costs_one_call_an_episode_and_no_cache_hit_of_a_new_conversation():
    rows = {row.what: row for row in episodes.what_episodes_cost(6)}
    assert rows["extra model calls, at most"].times[:3] == (1, 1, 1)
    assert rows["cache hits lost"].value == 0
    assert rows["cache hits lost"].error == ""
    assert 0 < rows["injected per call"].value <= 1500
    assert rows["injected per episode"].value == 3 * rows["injected per call"].value
    assert rows["cache hits, 5 turns"].floor_value > rows["cache hits, 5 turns"].value


def test_a_changing_beginning_or_block_is_an_error():
    def asked(*prompts):
        return episodes.Asked(list(prompts), [])

    def prompt(system, block):
        return [SystemMessage(system), memories(block), HumanMessage(TASK)]

    same = [asked(prompt("s", "m"), prompt("s", "m")), asked(prompt("s", "n"))]
    assert episodes._changing_start(same) == episodes._changing_memories(same) == ""
    other = [asked(prompt("s", "m")), asked(prompt("t", "m"))]
    assert episodes._changing_start(other) == "2 different beginnings before the memories"
    other = [asked(prompt("s", "m"), prompt("s", "n"))]
    found = episodes._changing_memories(other)
    assert found == "the memories change between the calls of one episode"
    assert episodes._changing_memories([asked([SYSTEM])]) == "no episode was shown a memory"
