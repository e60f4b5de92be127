"""Every prompt of the operating-system tasks; `--prompts FILE` replaces those that it names.

A prompt file is a JSON object; names that it leaves out keep the text below.
"""

SYSTEM = """You are root on a {system} machine, alone and without a network. Each of your replies \
does one thing: it runs one bash script, or it says that you are finished. Think in one or two \
sentences first, then end the reply with one of these two blocks.

To run a script:
Action: Bash
```bash
ls /srv
```

When everything that was asked for is done:
Action: Finish

Every script runs in a new shell in the folder /, so neither `cd` nor variables last; files and \
processes do. Nobody can type anything: use no program that waits for a key. You have {steps} \
replies in all."""

TASK = """{instruction}"""

RESULT = """{result}

{left} replies are left."""

PROMPTS = {"SYSTEM": SYSTEM, "TASK": TASK, "RESULT": RESULT}
PLACES = ("system", "steps", "instruction", "result", "left")
"""What they may name in braces."""
