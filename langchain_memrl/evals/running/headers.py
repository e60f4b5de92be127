"""Whether a folder's records and a run belong together: what was chosen, and what is asked."""

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from langchain_memrl.errors import InputError
from langchain_memrl.evals.environment import Environment
from langchain_memrl.evals.records import Header, line

GROWING = ("arms", "seeds", "asks", "source")
"""Settings that may differ: more arms and seeds, for units stand by themselves; and the suite's
fingerprints, which are compared in their own way."""


def fingerprint(environment: Environment, tasks: int | None) -> dict[str, Any]:
    """What an environment asks: its tasks, its notes and its settings of recall."""
    asked = [[task.id, task.text] for task in environment.tasks[:tasks]]
    notes = [dict(note) for note in environment.notes]
    return {
        "tasks": {"count": len(asked), "sha256": _sha(asked)},
        "notes": {"count": len(notes), "sha256": _sha(notes)},
        "recall": json.loads(_json(dict(environment.recall))),
    }


def source_of(name: str) -> str:
    """SHA-256 of the module file of a suite given as `module:SUITE`; empty for one of ours."""
    module, colon, _ = name.partition(":")
    file = getattr(sys.modules.get(module), "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if colon and file else ""


def merge(path: Path, there: Header, now: Header, *, accept_edits: bool = False) -> Header:
    """The header of a run that goes on in a file: the arms and seeds of both.

    Args:
        path: The file, for the error.
        there: Its header.
        now: The header of the run.
        accept_edits: Whether the suite's file may have been edited, as long as it asks the same.

    Raises:
        InputError: Anything else differs; it says what, and from what to what.
    """
    now = _plain(now)
    found = _differences(there, now)
    old, new = there.settings.get("source", []), now.settings.get("source", [])
    edited = bool(old and new and old[-1] not in new)
    if edited and not accept_edits:
        found.append(
            f"the suite's file was edited since (SHA-256 {old[-1][:8]} there, {new[-1][:8]} now; "
            "--accept-edits goes on with it, where what counts as solved has stayed the same)"
        )
    if found:
        raise InputError(
            f"{path} is another run's: {'; '.join(found)}. Choose another folder, "
            "or the settings of that run to go on with it"
        )
    both = {
        "arms": there.settings["arms"] | now.settings["arms"],
        "seeds": max(there.settings["seeds"], now.settings["seeds"]),
        "asks": there.settings.get("asks", {}) | now.settings.get("asks", {}),
        "source": [*old, *(one for one in new if one not in old)],
    }
    return replace(there, settings=there.settings | both)


def _plain(header: Header) -> Header:
    """As it comes back from a file."""
    fields = json.loads(line(header))
    fields.pop("kind")
    return Header(**fields)


def _differences(there: Header, now: Header) -> list[str]:
    """What differs, in words."""
    found = _named(
        {"suite": there.suite, "model": there.model}, {"suite": now.suite, "model": now.model}
    )
    old, new = there.settings, now.settings
    options = {f"--{name.replace('_', '-')}": name for name in [*new, *old] if name not in GROWING}
    found += _named(
        {option: old.get(name) for option, name in options.items()},
        {option: new.get(name) for option, name in options.items()},
    )
    for name in old["arms"].keys() & new["arms"].keys():
        one, other = ({**side["arms"][name], "about": ""} for side in (old, new))
        found += [f"arm {name}: {words}" for words in _named(one, other)]
    for world in old.get("asks", {}).keys() & new.get("asks", {}).keys():
        words = _asked(old["asks"][world], new["asks"][world])
        found += [f"{one} in world {world}" if world else one for one in words]
    return found + _named(there.versions, now.versions)


def _named(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    return [
        f"{name} is {_words(old.get(name))} there and {_words(new.get(name))} now"
        for name in dict.fromkeys([*new, *old])
        if old.get(name) != new.get(name)
    ]


def _asked(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    found = []
    for name in ("tasks", "notes"):
        if old[name] != new[name]:
            counts = old[name]["count"], new[name]["count"]
            how = f"{counts[0]} there and {counts[1]} now"
            if counts[0] == counts[1]:
                how = f"as many, {counts[0]}, but with other texts, ids or order"
            found.append(f"the suite's {name} were changed ({how})")
    return found + [f"the suite's recall: {one}" for one in _named(old["recall"], new["recall"])]


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_words(one)}" for name, one in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(_words, value)) or "none"
    return "not set" if value is None else str(value) or "empty"


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=lambda other: type(other).__name__)


def _sha(value: Any) -> str:
    return hashlib.sha256(_json(value).encode()).hexdigest()
