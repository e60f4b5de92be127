"""The names of things, as ALFWorld shows them: `apple 1` instead of a place in coordinates."""

from collections import defaultdict
from collections.abc import Iterable

PLACE = "_bar_"
"""Separates, in an id, what a thing is from where it stood when the scene was recorded."""


def kind_of(id: str) -> str:
    """What a thing is: `sinkbasin` for the id of a basin, `apple` for one of an apple.

    Args:
        id: Its name in the planning problem.
    """
    kind, place, _ = id.lower().partition(PLACE)
    # The id of a basin begins like that of the sink or tub around it.
    return f"{kind}basin" if place and "basin" in id.lower() else kind


def plain_names(ids: Iterable[str]) -> dict[str, str]:
    """A name for each thing: its kind and a number.

    Numbers run from 1 per kind, against the alphabetical order of the ids: that is how ALFWorld
    counts, and what the stored walkthroughs mean. What has no place has no number.

    Args:
        ids: The ids of everything in a game.
    """
    alike = defaultdict(list)
    names = {}
    for id in sorted(ids, reverse=True):
        if PLACE in id:
            alike[kind_of(id)].append(id)
            names[id] = f"{kind_of(id)} {len(alike[kind_of(id)])}"
        else:
            names[id] = id
    return names
