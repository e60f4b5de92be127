"""ALFWorld's text games on their real engine: household tasks, won or not within a step limit.

Every command is a step, possible or not, as in the original; a game counts as solved when its
engine says so. Every try starts its game anew. The games come from the user's own download.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from langchain_memrl.config import PRESETS
from langchain_memrl.errors import ConfigError
from langchain_memrl.evals.benchmarks.agents import MODEL, Agent, check_agent
from langchain_memrl.evals.benchmarks.benchmark import (
    BATCH,
    EPOCHS,
    MEMORY_TOKENS,
    MODEL_SETTINGS,
    Benchmark,
    about_agent,
    choose_agent,
    drawn,
    own_prompts,
    prompts_digest,
    unprepared,
)
from langchain_memrl.evals.benchmarks.households.attempt import GameAttempt
from langchain_memrl.evals.benchmarks.households.conversing import ConversingInHousehold
from langchain_memrl.evals.benchmarks.households.games import WHERE, Games, load_games
from langchain_memrl.evals.benchmarks.households.houses import Houses, engine_versions
from langchain_memrl.evals.benchmarks.households.prompts import PLACES, PROMPTS
from langchain_memrl.evals.benchmarks.households.script import HouseholdScript
from langchain_memrl.evals.environment import (
    Environment,
    Setup,
    Situation,
    Suite,
    Task,
    Typical,
)
from langchain_memrl.rendering import count_tokens

PRESET = PRESETS["alfworld"]
STEPS = 30
"""Commands per try by default in MemRL's released code; ALFWorld's own configuration has 50."""
REPLIES = 18
"""Typical, a lesson included."""
REPLY_TOKENS, TOLD_TOKENS = 40, 30
"""Typical, of a reply and of what the game says to it."""
SECONDS = {"scripted": 0.3, "model": 30.0}
"""Typical, per try."""


class Households(Benchmark[GameAttempt]):
    """The games.

    Args:
        setup: The seed, the number of games (a draw from all of them) and the step limit.
        games: All games.
        houses: Where they are played.
        agent: Who plays.
    """

    def __init__(
        self, setup: Setup, games: Games, houses: Houses, agent: Agent[GameAttempt]
    ) -> None:
        self._known = {game.id: game for game in drawn(games.games, setup)}
        self._steps = setup.steps or STEPS
        self._houses = houses
        tasks = [
            Task(game.id, games.texts[game.id], games.held_out(game))
            for game in self._known.values()
        ]
        super().__init__(tasks, agent, PRESET)

    @contextmanager
    def attempt(self, situation: Situation) -> Iterator[GameAttempt]:
        """A try at a game that begins anew."""
        game = self._known[situation.task.id]
        with self._houses.lend() as house:
            yield GameAttempt(
                instruction=situation.task.text,
                steps=self._steps,
                game=game,
                house=house,
                seen=house.start(game),
            )

    def solved(self, attempt: GameAttempt) -> bool:
        """Whether the engine says that the goal is reached."""
        return attempt.seen.won


@contextmanager
def prepare(setup: Setup) -> Iterator[Suite]:
    """Read the games and give the suite that plays them."""
    agent = check_agent(setup.agent)
    if setup.steps is not None and setup.steps < 1:
        raise ConfigError(f"steps is {setup.steps}; expected at least 1 command")
    versions = engine_versions()
    games = load_games(setup.data)
    prompts = own_prompts(setup.prompts, PROMPTS, PLACES)
    steps = setup.steps or STEPS
    with Houses() as houses:

        def make(chosen: Setup) -> Environment:
            asking = ConversingInHousehold(chosen.model, prompts)
            who = choose_agent(agent, chosen, HouseholdScript(), asking)
            return Households(replace(chosen, steps=steps), games, houses, who)

        yield replace(
            SUITE,
            make=make,
            settings={
                "agent": agent,
                "steps": steps,
                "data": dict(games.hashes),
                "embeddings": "wordllama",
                "prompts": prompts_digest(prompts),
            },
            versions=versions,
            typical=_typical(agent, games, prompts, steps),
            **about_agent(agent),
        )


def _typical(agent: str, games: Games, prompts: Mapping[str, str], steps: int) -> Typical:
    """What a try costs: every reply is asked for with all that was said before."""
    if agent != MODEL:
        return Typical(0, 0, SECONDS["scripted"])
    asked = sum(map(count_tokens, games.texts.values())) // len(games.texts)
    opening = count_tokens("".join(prompts.values())) + 2 * asked + PRESET.k * MEMORY_TOKENS
    replies = min(REPLIES, steps + 1)
    said = (replies // 2) * (REPLY_TOKENS + TOLD_TOKENS)
    seconds = SECONDS["model"] * replies / REPLIES
    return Typical(replies * (opening + said), replies * REPLY_TOKENS, seconds)


SUITE = Suite(
    "alfworld",
    unprepared(WHERE),
    epochs=EPOCHS,
    batch=BATCH,
    asks_model=True,
    model_settings=MODEL_SETTINGS,
    needs_data=WHERE,
    prepare=prepare,
    about={"": "household tasks in text games (ALFWorld)"},
)
