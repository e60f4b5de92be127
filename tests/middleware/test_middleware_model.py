from routing import route

from langchain_memrl.offline import LocalModelServer


def test_a_real_small_model_as_an_agent_finds_the_queue_more_often_with_every_round():
    with LocalModelServer() as server:
        found = route(server, seed=0, tickets=6, episodes=24, write=False)
    rounds = [sum(found[start : start + 6]) for start in range(0, 24, 6)]
    assert rounds[-1] > rounds[0]
    assert rounds[-1] >= 5
