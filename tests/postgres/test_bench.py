"""`memrl bench --postgres`: ours beside the same on disk and beside a bare transaction."""

from langchain_memrl.bench.data import Tasks
from langchain_memrl.bench.report import as_table
from langchain_memrl.bench.servers import on_server


def test_calls_are_measured_in_turns_and_nothing_stays_on_the_server(server, tmp_path):
    def schemas():
        with server.connect() as db:
            return db.execute("SELECT nspname FROM pg_namespace ORDER BY 1").fetchall()

    before, heard = schemas(), []
    rows = on_server(server.uri, tmp_path / "beside", Tasks(20, 8), 5, heard.append)
    assert schemas() == before
    assert heard == ["PostgreSQL: filling the banks", "PostgreSQL: its calls"]
    assert [(row.what, row.floor) for row in rows] == [
        ("PostgreSQL: recall", "the same on disk"),
        ("PostgreSQL: recall in an episode", "the same on disk"),
        ("PostgreSQL: recall in an episode", "bare transaction"),
        ("PostgreSQL: reinforce 5 memories", "the same on disk"),
        ("PostgreSQL: reinforce 5 memories", "bare transaction"),
        ("PostgreSQL: remember", "the same on disk"),
        ("PostgreSQL: remember", "bare transaction"),
    ]
    assert all(row.ratio > 0 for row in rows)
    assert as_table(rows).row_count == 8  # and a heading
