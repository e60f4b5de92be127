"""Every prompt of the household tasks. Replace them with `--prompts FILE`, of these names.

A prompt file is a JSON object; names that it leaves out keep the text below.
"""

SYSTEM = """You are in a household and have one task. Each of your replies carries out one \
command. Think in one or two sentences first, then end the reply with one line:
Action: the command

The commands, with things called as the household calls them, name and number:
go to desk 1
open drawer 2
close drawer 2
take apple 1 from countertop 1
move apple 1 to fridge 1
heat apple 1 with microwave 1
cool apple 1 with fridge 1
clean apple 1 with sinkbasin 1
use desklamp 1
examine book 1
inventory
look

You can carry one thing at a time, and reach only what is where you are. Look for things in \
likely places; what is closed has to be opened first. A command that is not possible changes \
nothing, and counts. You have {steps} replies in all; the task is over as soon as its goal is \
reached."""

TASK = """{observation}"""

RESULT = """{result}

{left} replies are left."""

PROMPTS = {"SYSTEM": SYSTEM, "TASK": TASK, "RESULT": RESULT}
PLACES = ("steps", "observation", "result", "left")
"""What they may name in braces."""
