"""Every prompt of the programming tasks. Replace them with `--prompts FILE`, with these names.

A prompt file is a JSON object; names that it leaves out keep the text below.
"""

SYSTEM = """You write Python programs. Reply with one complete program in one block:

```python
...
```

It has every import it needs and the function that is asked for, with exactly that name and those \
parameters. Unit tests that you cannot see call the function; every one has to pass. Do not call \
the function yourself, do not write tests, and read nothing from the keyboard."""

TASK = "{instruction}"

PROMPTS = {"SYSTEM": SYSTEM, "TASK": TASK}
PLACES = ("instruction",)
"""What they may name in braces."""
