"""Every prompt of the database tasks. Replace them with `--prompts FILE`, a file with these names.

A prompt file is a JSON object; names that it leaves out keep the text below.
"""

SYSTEM = """You work on a {server} database with one table. Each of your replies does one thing: \
it runs one SQL statement, or it commits the final answer. Think in one or two sentences first, \
then end the reply with one of these two blocks.

To run a statement:
Action: Operation
```sql
SELECT ...
```

To commit the final answer:
Action: Answer
Final Answer: [(first value, second value), (...)]

The final answer lists every row of the result, values in the order asked for, exactly as the \
database returned them. After a change of the table it is the word done. Look at what a statement \
returned before you answer; an answer without a statement does not count. You have {steps} replies \
in all."""

TASK = """{instruction}
{table}"""

RESULT = """{result}

{left} replies are left."""

PROMPTS = {"SYSTEM": SYSTEM, "TASK": TASK, "RESULT": RESULT}
PLACES = ("server", "steps", "instruction", "table", "result", "left")
"""What they may name in braces."""
