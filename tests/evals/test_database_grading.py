"""Answers, orders and clauses: pure functions on values worked out by hand."""

import pytest

from langchain_memrl.evals.benchmarks.databases.attempt import show_result
from langchain_memrl.evals.benchmarks.databases.clauses import clauses_of
from langchain_memrl.evals.benchmarks.databases.connection import Result
from langchain_memrl.evals.benchmarks.databases.conversing import Move, read_move
from langchain_memrl.evals.benchmarks.databases.grading import (
    Order,
    order_of,
    read_rows,
    same_rows,
    show_rows,
)

FREE, FIXED = Order(), Order(fixed=True)


@pytest.mark.parametrize(
    ("sql", "order"),
    [
        ("SELECT a FROM t", FREE),
        ("SELECT a FROM t WHERE b = (SELECT b FROM t ORDER BY b LIMIT 1)", FREE),
        ("SELECT a FROM t WHERE b = 'x order by y'", FREE),
        ("SELECT a, b FROM t ORDER BY b DESC LIMIT 3", Order(True, (1,))),
        ("select a, sum(b) as total from t group by a order by total desc, a", Order(True, (1, 0))),
        ("SELECT t.a, b FROM t ORDER BY a ASC, t.b", Order(True, (0, 1))),
        ("SELECT a, COUNT(*) FROM t GROUP BY a ORDER BY COUNT(*) DESC;", Order(True, (1,))),
        ("SELECT a, b FROM t ORDER BY 2", Order(True, (1,))),
        ("SELECT a FROM t ORDER BY b", FIXED),
        ("SELECT * FROM t ORDER BY 2", FIXED),
    ],
)
def test_the_order_is_fixed_only_by_an_order_by_of_the_query_itself(sql, order):
    assert order_of(sql) == order


def test_rows_without_a_fixed_order_are_compared_as_often_as_they_occur():
    rows = [("a", 1), ("b", 2), ("b", 2)]
    assert same_rows([("b", 2), ("a", 1), ("b", 2)], rows, FREE)
    assert not same_rows([("b", 2), ("a", 1), ("a", 1)], rows, FREE)
    assert not same_rows(rows[:2], rows, FREE)
    assert not same_rows([*rows, ("b", 2)], rows, FREE)
    assert not same_rows([("a",), ("b",), ("b",)], rows, FREE)


def test_a_fixed_order_counts_but_not_among_equal_keys():
    rows = [("a", 9), ("b", 5), ("c", 5)]
    assert same_rows([("a", 9), ("c", 5), ("b", 5)], rows, Order(True, (1,)))
    assert not same_rows([("b", 5), ("a", 9), ("c", 5)], rows, Order(True, (1,)))
    assert not same_rows([("a", 9), ("c", 5), ("b", 5)], rows, FIXED)
    assert same_rows(rows, rows, FIXED)


def test_numbers_are_compared_within_a_millionth_and_texts_exactly():
    assert same_rows([("206.66670001", "x")], [(206.6667, "x")], FREE)
    assert not same_rows([(206.667, "x")], [(206.6667, "x")], FREE)
    assert not same_rows([(206.6667, "X")], [(206.6667, "x")], FREE)
    assert not same_rows([("many",)], [(3,)], FREE)
    assert same_rows([(None,), ("NULL",)], [(None,), (None,)], FREE)
    assert not same_rows([(0,)], [(None,)], FREE)


@pytest.mark.parametrize(
    ("answer", "rows"),
    [
        ("[('a', 1), ('b', 2.5)]", (("a", 1), ("b", 2.5))),
        ("[['a', 1], ['b', 2]]", (("a", 1), ("b", 2))),
        ("[(1, Decimal('2.50'))]", ((1, 2.5),)),
        ("('a', 1)", (("a", 1),)),
        ("42", ((42,),)),
        ("```[(1,)]```", ((1,),)),
        ("[]", ()),
        ("[('Oolong, dark', \"it's\")]", (("Oolong, dark", "it's"),)),
        ("(North, 1200), (South, 3)", (("North", "1200"), ("South", "3"))),
        ("('O'Hara', 3)", (("O'Hara", "3"),)),
        ("North, 3", (("North", "3"),)),
        ("", None),
        ("  ", None),
    ],
)
def test_rows_are_read_however_they_are_written(answer, rows):
    assert read_rows(answer) == rows


def test_an_answer_of_any_length_or_depth_is_only_text():
    assert read_rows("[" * 50_000) is not None
    assert read_rows("(" * 50_000 + ")" * 50_000) is not None
    assert read_rows("__import__('os').getcwd()") == (("os",), ())


def test_what_is_shown_of_rows_can_be_read_again():
    rows = (("it's", 1), ('"', 2.5), ("a, (b)", None))
    assert read_rows(show_rows(rows)) == rows


def test_a_long_result_is_cut_and_says_how_much_is_missing():
    text = show_result(Result(rows=tuple((i,) for i in range(2000))))
    assert len(text) < 4100
    assert text.endswith("characters more]")
    assert show_result(Result(changed=3)) == "done, 3 rows changed"
    assert show_result(Result(error="1146 no table")) == "error: 1146 no table"


@pytest.mark.parametrize(
    ("reply", "move"),
    [
        ("I look.\nAction: Operation\n```sql\nSELECT 1\n```", Move("SELECT 1")),
        ("Action: operation\n```\nSELECT 1;\n```", Move("SELECT 1;")),
        ("Action: Operation\n```sql\nSELECT 1", Move("SELECT 1")),
        ("Action: Answer\nFinal Answer: [(1,)]", Move(answer="[(1,)]")),
        ("Action: Answer\nFinal Answer:\n[(1,),\n(2,)]", Move(answer="[(1,),\n(2,)]")),
        ("Action: Operation\nSELECT 1", Move()),
        ("Action: Answer\n[(1,)]", Move()),
        ("SELECT 1", Move()),
        ("", Move()),
    ],
)
def test_the_first_action_of_a_reply_is_read(reply, move):
    assert read_move(reply) == move


@pytest.mark.parametrize(
    ("sql", "forms"),
    [
        (
            "SELECT a, b FROM t AS x WHERE x.c >= 4 ORDER BY a DESC LIMIT 5 OFFSET 2;",
            [
                "select name from name",
                "where name ? value",
                "order by name desc",
                "limit value",
                "offset value",
            ],
        ),
        (
            "SELECT a, SUM(b) AS s FROM t GROUP BY a, c HAVING SUM(b) > (SELECT AVG(b) FROM t)",
            [
                "select name , sum ( name ) from name",
                "group by name",
                "having sum ( name ) ? ( select avg ( name ) from name )",
            ],
        ),
        (
            "INSERT INTO t (a, b) VALUES (1, 'x, y')",
            ["insert into name ( name )", "values ( value )"],
        ),
        (
            "UPDATE t SET a = 1 WHERE b = 'where'",
            ["update name", "set name ? value", "where name ? value"],
        ),
        ("DELETE FROM t", ["delete from name"]),
    ],
)
def test_a_clause_keeps_its_form_without_names_and_values(sql, forms):
    clauses = clauses_of(sql)
    assert [clause.form for clause in clauses] == forms
    assert " ".join(clause.text for clause in clauses) == sql.rstrip(";")
    assert [clause.opens for clause in clauses] == [True] + [False] * (len(forms) - 1)
