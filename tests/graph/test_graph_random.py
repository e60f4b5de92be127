import random

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from loops import STEPS, TASK, answering, ask, closed_form, in_parent, run, thread, wrap_step
from watched import CrashError

from langchain_memrl import create_memrl_builder

REWARD = 0.5


class Plan:
    """Which crashes are still to come in this run."""

    def __init__(self):
        self.crashes = set()

    def draw(self, dice):
        places = [(step, when) for step in STEPS for when in ("before", "after")]
        self.crashes = set(dice.sample(places, dice.choice([0, 1, 1, 2, 3])))

    def at(self, step, when):
        def die():
            if (step, when) in self.crashes:
                self.crashes.remove((step, when))
                raise CrashError(f"{when} {step}")

        return die


@pytest.mark.parametrize("start", range(2))
def test_whatever_crashes_and_resumes_every_episode_is_learned_once(
    bank, retriever, seed, start, much
):
    """Q follows its closed form, whatever was run twice: `r + (1 - a)^n (Q0 - r)`."""
    episodes = much(25, 500)
    dice, plan, saver = random.Random(start), Plan(), InMemorySaver()
    builder = create_memrl_builder(answering(), retriever, evaluator=lambda state: REWARD)
    for step in STEPS:
        wrap_step(builder, step, plan.at(step, "before"), plan.at(step, "after"))
    graphs = [
        builder.compile(checkpointer=saver),
        in_parent(builder.compile(), checkpointer=saver),
    ]
    crashed = 0
    for number in range(episodes):
        plan.draw(dice)
        kind = dice.randrange(2)
        config = thread(f"{kind} {dice.randrange(5)}")  # some threads have several turns
        given = ask(f"{TASK} {number}")
        while given is not None or graphs[kind].get_state(config).next:
            form, durability = (
                dice.choice(["blocking", "awaited"]),
                dice.choice(["sync", "async", "exit"]),
            )
            try:
                run(form, graphs[kind], given, config, durability=durability)
            except CrashError:
                crashed += 1
            given = None
        assert bank.get(seed.id).q_value == pytest.approx(closed_form(REWARD, number + 1), abs=1e-9)
    assert crashed > 20
    assert bank.get(seed.id).updates == bank.get(seed.id).selections == episodes
    written = bank.list(filter={"source": "agent"}, limit=None)
    assert sorted(memory.intent for memory in written) == sorted(
        f"{TASK} {number}" for number in range(episodes)
    )
    assert bank.stats().open_episodes == 0
    assert bank.verify().ok
