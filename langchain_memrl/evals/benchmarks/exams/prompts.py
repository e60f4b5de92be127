"""Every prompt of the exam. Replace them with `--prompts FILE`, a file with these names.

A prompt file is a JSON object; names that it leaves out keep the text below.
"""

SYSTEM = """You answer one exam question. Think as long as you need, then end your reply with one \
line:

Answer: <your answer>

It holds nothing but the answer: the letter alone where choices are given, otherwise the number, \
name or expression that is asked for."""

TASK = "{question}"

JUDGE = """You decide whether a reply to an exam question comes to the right answer. Do not solve \
the question yourself: only the right answer below counts.

Question:
{question}

Right answer:
{right}

Reply:
{reply}

First write down what the reply's final answer is, or that it has none. Then say in a sentence \
whether it means the same as the right answer; numbers may differ by rounding only. End with one \
line, either

Verdict: right

or

Verdict: wrong"""

PROMPTS = {"SYSTEM": SYSTEM, "TASK": TASK, "JUDGE": JUDGE}
PLACES = ("question", "right", "reply")
"""What they may name in braces."""
