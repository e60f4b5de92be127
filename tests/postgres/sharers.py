"""What the tests run in other processes."""

import itertools
import time

from children import open_shared


def share(location, start, name, ids, count):
    """Reward and write in every namespace; each call twice, and some in episodes of everybody."""
    with open_shared(location) as memory:
        start.wait()
        for number, (space, id) in itertools.product(range(count), ids.items()):
            for episode in (f"{name} {number}", f"{name} {number}", f"common {number}"):
                memory.reinforce(episode, reward=1, ids=[id], namespace=space)
                memory.remember(
                    f"task of {episode}",
                    f"lesson of {episode}",
                    episode_id=f"write {episode}",
                    namespace=space,
                )


def open_at_once(location, start, name):
    """Open the bank, which one of several processes makes, and write."""
    start.wait()
    with open_shared(location) as memory:
        memory.remember(f"task {name}", "lesson", episode_id=name)


def write_until_killed(location, pipe, name, id):
    """Write and reward, and tell what was acknowledged."""
    with open_shared(location) as memory:
        for number in itertools.count():
            episode = f"{name} {number}"
            memory.remember(f"task {episode}", "lesson", episode_id=episode)
            pipe.send(("remember", episode))
            memory.reinforce(f"reward {episode}", reward=1, ids=[id])
            pipe.send(("reinforce", f"reward {episode}"))


def hold_a_transaction(location, pipe):
    """Write half of something, in a transaction that holds its lock, until killed."""
    memory = open_shared(location)
    with memory._store._server.write("default") as db:
        db.execute(
            "INSERT INTO episodes (namespace, episode_id, created_at) VALUES (?, ?, ?)",
            ("default", "half", "2026-01-01T00:00:00.000000+00:00"),
        )
        pipe.send("holding")
        time.sleep(600)
