"""Other stores on the same work: the nearest five, and a change of one number kept with them."""

from collections.abc import Callable, Mapping

from langchain_memrl.bench.data import Filled
from langchain_memrl.bench.rivals import open_rivals
from langchain_memrl.bench.rows import PEER, UPDATE, Found, Row, Say
from langchain_memrl.bench.timing import Times, in_turns
from langchain_memrl.store.embedded.bare import flat_faiss

ROUNDS = 5


def peers(bank: Filled, say: Say) -> Found:
    """Measure whatever else is installed, in turns with raw FAISS."""
    tasks = bank.tasks
    place = bank.folder / "peers"
    place.mkdir()
    say("other stores: filling them")
    with open_rivals(tasks, place) as (rivals, missing):
        say(f"other stores: {', '.join(rivals)}")
        searches = {name: rival.search for name, rival in rivals.items()}
        found = _in_turns(bank, {"faiss": flat_faiss(tasks.vectors, 10), **searches})
        updates = _in_turns(bank, {name: rival.update for name, rival in rivals.items()})
    rows: list[Row] = []
    for name, rival in rivals.items():
        beside = ("IndexFlatIP.search", found["faiss"])
        rows.append(bank.row(f"{PEER}{name}", found[name], *beside))
        kept = "" if rival.durable else "not on disk"
        rows.append(bank.row(f"{UPDATE}{name}", updates[name], kept))
    return Found(rows, missing)


def _in_turns(bank: Filled, calls: Mapping[str, Callable[[int], object]]) -> dict[str, Times]:
    def at(call: Callable[[int], object]) -> Callable[[int], object]:
        return lambda n: call(bank.tasks.place(n))

    placed = {name: at(call) for name, call in calls.items()}
    return in_turns(placed, min(bank.rounds, ROUNDS), warm_up=1)
