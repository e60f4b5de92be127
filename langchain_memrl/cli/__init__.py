"""The `memrl` command: parse, call, print."""

import sys


def main() -> None:
    """Run the command line. Errors are one sentence on standard error and exit code 1."""
    from rich.console import Console

    from langchain_memrl.cli.app import app
    from langchain_memrl.errors import MemRLError

    try:
        app(prog_name="memrl")
    except (MemRLError, OSError) as error:  # a full or broken disk is told in one sentence too
        console = Console(stderr=True, soft_wrap=True)
        console.print(f"memrl: {error}", style="red", markup=False, highlight=False)
        sys.exit(1)
