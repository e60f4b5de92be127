"""Invented database tasks in the shape of LifelongAgentBench's, and what tells of a server."""

import hashlib
import importlib.util
import json

import pytest

from langchain_memrl.errors import ConfigError
from langchain_memrl.evals.benchmarks.databases.server import find_program

SET_UP = (
    "needs a database server: apt-get install -y --no-install-recommends mariadb-server-core "
    'mariadb-client-core && pip install -e ".[bench-db]"'
)


def has_server():
    try:
        find_program("mariadbd")
    except ConfigError:
        return False
    return importlib.util.find_spec("pymysql") is not None


needs_server = pytest.mark.skipif(not has_server(), reason=SET_UP)

COLUMNS = [("tea_id", "INT"), ("tea_name", "TEXT"), ("country", "TEXT"), ("price", "INT")]
ROWS = [
    [1, "Sencha", "Japan", 12],
    [2, "Assam", "India", 9],
    [3, "Gyokuro", "Japan", 30],
    [4, "Nilgiri", "India", 9],
    [5, "Oolong, dark", "Taiwan", 20],
]


def md5_of(rows):
    """The state of a table as the benchmark takes it, worked out without a database."""
    marks = [hashlib.md5(",".join(map(str, row)).encode()).hexdigest()[:5] for row in rows]
    return hashlib.md5(",".join(sorted(marks)).encode()).hexdigest()


def task(instruction, sql, direct=None, md5=None, table="teas"):
    columns = [{"name": name, "type": kind} for name, kind in COLUMNS]
    return {
        "instruction": instruction,
        "answer_info": {"direct": direct, "md5": md5, "sql": sql},
        "table_info": {"name": table, "column_info_list": columns, "row_list": ROWS},
        "skill_list": [],
    }


TASKS = {
    "0": task(
        "Which teas cost more than 10? Return the tea name.",
        "SELECT tea_name FROM teas WHERE price > 10;",
        [["Sencha"], ["Gyokuro"], ["Oolong, dark"]],
    ),
    "1": task(
        "Which teas cost more than 15? Return the tea name.",
        "SELECT tea_name FROM teas WHERE price > 15;",
        [["Gyokuro"], ["Oolong, dark"]],
    ),
    "2": task(
        "What is the average price of each country, the highest first?",
        "SELECT country, AVG(price) AS mean FROM teas GROUP BY country ORDER BY mean DESC;",
        [["Japan", 21.0], ["Taiwan", 20.0], ["India", 9.0]],
    ),
    "3": task(
        "Insert a tea with ID 6, name 'Yerba', country 'Brazil' and price 7.",
        "INSERT INTO teas VALUES (6, 'Yerba', 'Brazil', 7);",
        md5=md5_of([*ROWS, [6, "Yerba", "Brazil", 7]]),
    ),
    "4": task(
        "Set the price of every tea from India to 10.",
        "UPDATE teas SET price = 10 WHERE country = 'India'",
        md5=md5_of([[*row[:3], 10] if row[2] == "India" else row for row in ROWS]),
    ),
    "5": task(
        "Delete all teas from Japan.",
        "DELETE FROM teas WHERE country = 'Japan';",
        md5=md5_of([row for row in ROWS if row[2] != "Japan"]),
    ),
    "6": task("How many teas are there?", "SELECT COUNT(*) FROM teas;", [[5]]),
    "7": task("How many countries are there?", "SELECT COUNT(DISTINCT country) FROM teas;"),
}


def write_tasks(path, tasks=None):
    path.write_text(json.dumps(TASKS if tasks is None else tasks))
    return path
