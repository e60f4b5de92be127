"""reinforce(cited=...): credit for what the answer used, of what it was shown."""

import pytest

from langchain_memrl import EpisodicMemory
from langchain_memrl.errors import EpisodeError, InputError, RewardConflictError
from langchain_memrl.offline import HashingEmbeddings

TASK = "reset the router"


@pytest.fixture
def ids(open_bank):
    """Three memories that episode "a" was shown."""
    bank = open_bank()
    written = [bank.remember(TASK, f"lesson {number}").id for number in range(3)]
    bank.recall(TASK, episode_id="a")
    return written


@pytest.fixture
def bank(open_bank, ids):
    return open_bank()


def values(bank, ids):
    return [bank.get(id).q_value for id in ids]


def test_only_what_is_cited_moves(bank, ids):
    found = bank.reinforce("a", reward=1.0, cited=[ids[1]])
    assert [credit.id for credit in found.credits] == [ids[1]]
    assert values(bank, ids) == pytest.approx([0, 0.3, 0])
    assert bank.get(ids[0]).selections == 1  # it was shown all the same
    assert bank.verify().problems == ()


def test_nothing_cited_moves_nothing_and_settles_the_episode(bank, ids):
    assert bank.reinforce("a", reward=1.0, cited=[]).credits == ()
    assert values(bank, ids) == [0, 0, 0]
    assert bank.stats().open_episodes == 0


def test_the_same_citations_again_change_nothing_in_any_order(bank, ids):
    first = bank.reinforce("a", reward=1.0, cited=ids[:2])
    again = bank.reinforce("a", reward=1.0, cited=[*ids[:2][::-1], ids[0]])
    assert (again.applied, set(again.credits)) == (False, set(first.credits))


@pytest.mark.parametrize("other", [None, [], [0], [0, 1, 2]])
def test_other_citations_are_a_conflict(bank, ids, other):
    bank.reinforce("a", reward=1.0, cited=ids[:2])
    cited = None if other is None else [ids[place] for place in other]
    with pytest.raises(RewardConflictError, match="other citations"):
        bank.reinforce("a", reward=1.0, cited=cited)
    assert values(bank, ids) == pytest.approx([0.3, 0.3, 0])


def test_citations_after_a_reward_for_everything_are_a_conflict(bank, ids):
    bank.reinforce("a", reward=1.0)
    with pytest.raises(RewardConflictError, match="other citations"):
        bank.reinforce("a", reward=1.0, cited=[ids[0]])


def test_what_was_not_shown_is_an_error_before_anything_changes(bank, ids):
    other = bank.remember("another task", "another lesson").id
    with pytest.raises(EpisodeError, match=f"did not show .*{other}.*3 it recorded"):
        bank.reinforce("a", reward=1.0, cited=[ids[0], other])
    with pytest.raises(EpisodeError, match="did not show"):
        bank.reinforce_many(
            [
                {"episode_id": "a", "reward": 1.0},
                {"episode_id": "b", "reward": 1.0, "ids": [other], "cited": [ids[0]]},
            ]
        )
    assert values(bank, [*ids, other]) == [0, 0, 0, 0]
    assert bank.episode("a").reward is None
    with pytest.raises(EpisodeError, match="unknown"):
        bank.episode("b")


def test_explicit_ids_are_shown_and_of_them_the_cited_are_rewarded(bank, ids):
    found = bank.reinforce("b", reward=-1.0, ids=ids[1:], cited=ids[2:])
    assert [credit.id for credit in found.credits] == ids[2:]
    assert bank.episode("b").memory_ids == tuple(ids[1:])


def test_a_cited_memory_that_was_forgotten_since_is_skipped(bank, ids):
    bank.forget(ids=[ids[0]])
    found = bank.reinforce("a", reward=1.0, cited=ids[:2])
    assert ([credit.id for credit in found.credits], found.skipped) == ([ids[1]], (ids[0],))
    assert not bank.reinforce("a", reward=1.0, cited=ids[:2]).applied


@pytest.mark.parametrize("cited", ["one id", [1], [""]])
def test_unusable_citations_are_an_error(bank, cited):
    with pytest.raises(InputError, match="cited"):
        bank.reinforce("a", reward=1.0, cited=cited)


def test_citations_survive_an_export(bank, ids, open_bank, tmp_path, embeddings):
    bank.reinforce("a", reward=1.0, cited=[ids[1]])
    bank.export_jsonl(tmp_path / "bank.jsonl")
    copy = type(bank).import_jsonl(tmp_path / "bank.jsonl", ":memory:", embeddings=embeddings)
    with copy:
        assert not copy.reinforce("a", reward=1.0, cited=[ids[1]]).applied
        with pytest.raises(RewardConflictError):
            copy.reinforce("a", reward=1.0, cited=[ids[0]])


def test_a_revision_keeps_what_was_cited(bank, ids):
    bank.reinforce("a", reward=1.0, cited=[ids[1]])
    assert bank.reinforce("a", reward=-1.0, revise=True).revised_from == 1.0
    assert values(bank, ids) == pytest.approx([0, -0.3, 0])
    assert bank.reinforce("a", reward=0.0, cited=[ids[1]], revise=True).applied
    with pytest.raises(RewardConflictError, match="other citations"):
        bank.reinforce("a", reward=1.0, cited=[ids[0]], revise=True)


def test_a_reward_that_cites_cannot_wait_for_its_episode(bank, ids):
    with pytest.raises(EpisodeError, match="unknown"):
        bank.reinforce("b", reward=1.0, cited=[ids[0]], early=True)


async def test_awaited_it_is_the_same(bank, ids):
    found = await bank.areinforce("a", reward=1.0, cited=[ids[1]])
    assert [credit.id for credit in found.credits] == [ids[1]]


def test_what_follows_an_early_reward_that_others_narrowed_gets_nothing():
    with EpisodicMemory.open(":memory:", embeddings=HashingEmbeddings(16)) as memory:
        used, unused = (memory.remember("reset a router", text).id for text in ("hold", "pull"))
        memory.reinforce("e", reward=1.0, early=True)
        memory.reinforce("e", reward=1.0, ids=[used, unused], cited=[used])
        memory.recall("reset a router", episode_id="e", score_threshold=None)
        assert [memory.get(id).updates for id in (used, unused)] == [1, 0]
