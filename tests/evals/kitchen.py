"""Invented programming tasks, in the form of BigCodeBench."""

import json
import sys
from pathlib import Path

import pytest

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="the walls are those of Linux")

TESTS = """
import unittest
class TestCases(unittest.TestCase):
    def test_one(self):
        self.assertEqual(task_func({args}), {right})
    def test_type(self):
        self.assertTrue(isinstance(task_func({args}), {kind}))
"""


def task(number, words, head, body, args, right, kind="int", imports=""):
    beginning = f"{imports}\ndef task_func({head}):\n" if imports else f"def task_func({head}):\n"
    return {
        "task_id": f"BigCodeBench/{number}",
        "complete_prompt": f'{beginning}    """{words}"""\n',
        "instruct_prompt": f"{words}\nYou should write self-contained code starting with:\n"
        f"```\n{beginning}```",
        "canonical_solution": "".join(f"    {line}\n" for line in body.splitlines()),
        "code_prompt": beginning,
        "test": TESTS.format(args=args, right=right, kind=kind),
        "entry_point": "task_func",
        "libs": "[]",
    }


TASKS = [
    task(
        1,
        "Count the spoons in a list of cutlery as JSON.",
        "text",
        "items = json.loads(text)\nreturn len([one for one in items if one == 'spoon'])",
        """'["spoon", "fork", "spoon"]'""",
        "2",
        imports="import json",
    ),
    task(
        2,
        "Write the recipe, a list of steps, as JSON.",
        "steps",
        "return json.dumps(steps)",
        "['boil', 'stir']",
        """'["boil", "stir"]'""",
        "str",
        "import json",
    ),
    task(
        3,
        "Find all weights in grams that a recipe names, as a list of numbers.",
        "text",
        "found = re.findall(r'(\\d+) g', text)\nreturn [int(one) for one in found]",
        "'20 g of salt, 500 g of flour'",
        "[20, 500]",
        "list",
        "import re",
    ),
    task(
        4,
        "Replace all weights in a recipe by the word some.",
        "text",
        "return re.sub(r'\\d+ g of', 'some', text)",
        "'20 g of salt'",
        "'some salt'",
        "str",
        "import re",
    ),
    task(
        5,
        "Round the price of a meal up to whole coins.",
        "price",
        "return math.ceil(price)",
        "7.2",
        "8",
        imports="import math",
    ),
]


def write_tasks(path: Path, tasks=None) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in (TASKS if tasks is None else tasks)))
    return path


def right(entry):
    return entry["code_prompt"] + entry["canonical_solution"]
