"""A bank as JSON lines and back, without loss: one line per row.

The first line describes the bank, the last one says how many lines there are. Importing adds what
is missing and never changes what is there, so an interrupted import is completed by repeating it,
and two banks merge. The Q of a memory that both banks rewarded is replayed from the union of its
steps.
"""

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict
from typing import Any

from langchain_memrl.errors import InputError, StoreCorruptError
from langchain_memrl.store import meta, rows
from langchain_memrl.store.counters import count_intents
from langchain_memrl.store.database import Database
from langchain_memrl.store.encoding import RESTORE, checksum, to_blob
from langchain_memrl.store.jsonl import FORMAT, Line, encode
from langchain_memrl.store.revising import replay

BATCH = 2000
TABLES = ("episodes", "recalls", "ledger", "q_history", "calibrations")
"""What follows the memories, in the order in which an import needs it."""

NUMBERED = ("intents", "memories", "episodes")
"""Tables whose rows have a number that others name."""
DERIVED = {"checksum", "held_checksum", "open"}
"""Columns that follow from the others; an import makes them anew."""


# --- export -------------------------------------------------------------------------------------


def export_lines(db: Database) -> Iterator[Line]:
    """Every line of an export; the caller keeps one state of the database open meanwhile."""
    fingerprint = meta.fingerprint(db)
    header: Line = {"kind": "bank", "format": FORMAT}
    header |= {"learning": asdict(meta.learning(db)), "trust": asdict(meta.trust_rules(db))}
    if fingerprint is not None:
        header["model"] = fingerprint.model
        header["dimension"] = fingerprint.probes.shape[1]
        header["probes"] = encode(to_blob(fingerprint.probes))
    yield header
    count = 1
    for line in itertools.chain(_memories(db), *(_rows(db, table) for table in TABLES)):
        count += 1
        yield line
    yield {"kind": "end", "lines": count}


def _memories(db: Database) -> Iterator[Line]:
    """Each memory with its text, each intent just before the first memory it owns."""
    seen = {rows.DOCUMENTS}  # which every bank makes for itself
    for memory in _rows(db, "memories"):
        if memory["intent_id"] not in seen:
            seen.add(memory["intent_id"])
            yield from _rows(db, "intents", "WHERE id = ?", memory["intent_id"])
        text = next(_rows(db, "experiences", "WHERE seq = ?", memory["seq"]), None)
        if text is None:
            raise StoreCorruptError(f"memory {memory['id']} has lost its text; {RESTORE}")
        yield memory | {"text": text}


def _rows(db: Database, table: str, where: str = "", *values: Any) -> Iterator[Line]:
    """The rows of a table as lines."""
    sql = f"SELECT * FROM {table} {where} ORDER BY 1"
    with closing(db.execute(sql, values) if where else db.stream(sql)) as cursor:
        names = [column[0] for column in cursor.description]
        for row in cursor:
            columns = zip(names, map(encode, row), strict=True)
            yield {"kind": table} | {name: value for name, value in columns if name not in DERIVED}


def count_rows(db: Database) -> int:
    """How many lines an export has between the first and the last."""
    tables = ("intents WHERE id > 0", "memories", *TABLES)
    return sum(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)


# --- import -------------------------------------------------------------------------------------


class Importer:
    """Takes over the rows of one export; numbers of the file become numbers of this bank."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[int, int]] = {"intents": {}, "memories": {}, "episodes": {}}
        self._intents: dict[int, Line] = {}  # read, but not needed by a memory yet
        self._namespaces: set[str] = set()
        self._columns: dict[str, list[str]] = {}

    def take(self, db: Database, lines: Iterable[Line]) -> None:
        """Take over one batch of checked lines, inside the caller's transaction."""
        takers: Mapping[str, Callable[[Database, Line], object]] = {
            "intents": self._intent,
            "memories": self._memory,
            "episodes": self._episode,
            "recalls": self._recall,
            "ledger": lambda db, row: self._insert(db, "ledger", row),
            "calibrations": lambda db, row: self._insert(db, "calibrations", row),
        }
        moved: set[int] = set()
        for line in lines:
            row = {name: value for name, value in line.items() if name != "kind"}
            if line["kind"] == "q_history":
                moved.add(self._change(db, row))
            else:
                takers[line["kind"]](db, row)
        for memory in moved:
            replay(db, memory)

    def finish(self, db: Database) -> None:
        """Measure the similarities of namespaces that grew past a power of two.

        One that shrank since it was measured keeps what it knew, so that its answers stay.
        """
        for namespace in sorted(self._namespaces):
            known = rows.find_calibration(db, namespace)
            count = count_intents(db, namespace)
            if known is None or count.bit_length() > known.intents.bit_length():
                rows.calibrate_namespace(db, namespace, count)

    def _intent(self, db: Database, row: Line) -> None:
        self._intents[row.pop("id")] = row

    def _intent_number(self, db: Database, number: int) -> int:
        """This bank's number of an intent, which is written with the first memory it owns."""
        found = self._numbers["intents"]
        if number == rows.DOCUMENTS:
            return rows.insert_documents_intent(db)
        if number in self._intents:
            row = self._intents.pop(number)
            self._namespaces.add(row["namespace"])
            known = rows.find_intent(db, row["namespace"], row["text"])
            if known is None:
                row |= {
                    "change": meta.next_change(db),
                    "checksum": checksum(row["namespace"], row["vector"]),
                }
            found[number] = known[0] if known else self._insert(db, "intents", row)
        return found[number]

    def _memory(self, db: Database, row: Line) -> None:
        number, text = row.pop("seq"), row.pop("text")
        sql = "SELECT seq, namespace FROM memories WHERE id = ?"
        known = db.execute(sql, (row["id"],)).fetchone()
        if known is not None and known[1] != row["namespace"]:
            raise InputError(
                f"memory {row['id']} stands in another namespace here than in the export; import "
                "it into a bank of its own"
            )
        if known is None:
            row["intent_id"] = self._intent_number(db, row["intent_id"])
            row |= {"q": row["q_init"], "updates": 0}  # its history comes later and replays both
            seq = self._numbers["memories"][number] = self._insert(db, "memories", row)
            del text["kind"]
            self._insert(db, "experiences", text | {"seq": seq})
            rows.seal(db, seq)
            return
        self._numbers["memories"][number] = known[0]
        db.execute(
            "UPDATE memories SET selections = ? WHERE seq = ? AND selections < ?",
            (row["selections"], known[0], row["selections"]),
        )

    def _episode(self, db: Database, row: Line) -> None:
        number = row.pop("seq")
        if row["held_intent"] is not None:
            held = (row["held_intent"], row["held_trajectory"], row["held_vector"])
            row["held_checksum"] = checksum(*held)
        self._insert(db, "episodes", row)
        (seq,) = db.execute(
            "SELECT seq FROM episodes WHERE namespace = ? AND episode_id = ?",
            (row["namespace"], row["episode_id"]),
        ).fetchone()
        self._numbers["episodes"][number] = seq

    def _recall(self, db: Database, row: Line) -> None:
        del row["seq"]
        row["episode"] = self._numbers["episodes"][row["episode"]]
        memories = self._numbers["memories"]
        candidates = json.loads(row["candidates"])
        kept = [[memories[item[0]], *item[1:]] for item in candidates if item[0] in memories]
        row["candidates"] = json.dumps(kept, separators=(",", ":"))
        self._insert(db, "recalls", row)

    def _change(self, db: Database, row: Line) -> int:
        del row["seq"]
        row["memory"] = self._numbers["memories"][row["memory"]]
        row["episode"] = self._numbers["episodes"][row["episode"]]
        self._insert(db, "q_history", row)
        return int(row["memory"])

    def _insert(self, db: Database, table: str, row: Line) -> int:
        """Add a row unless it is there. Column names are those of the table, never the file's."""
        if table not in self._columns:
            description = db.execute(f"SELECT * FROM {table} LIMIT 0").description
            self._columns[table] = [column[0] for column in description]
        columns = self._columns[table]
        used = [name for name in columns if name in row]
        written = db.execute(
            f"INSERT INTO {table} ({', '.join(used)}) VALUES ({rows.marks(used)}) "
            f"ON CONFLICT DO NOTHING RETURNING {columns[0]}",
            [row[name] for name in used],
        ).fetchone()
        return written[0] if written and table in NUMBERED else 0


def in_batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Lines in groups of one transaction each."""
    iterator = iter(lines)
    while batch := list(itertools.islice(iterator, BATCH)):
        yield batch
