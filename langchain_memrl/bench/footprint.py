"""What the package itself costs: the time of its import, and memory."""

import json
import subprocess
import sys

from langchain_memrl.bench.rows import Goal, Row
from langchain_memrl.bench.timing import summary

PROGRAM = """
import json, resource, sys, time
start = time.perf_counter()
{imports}
taken = 1000 * (time.perf_counter() - start)
print(json.dumps([taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""
BASE = "import langchain_core.retrievers, langchain_core.language_models, langgraph.graph, faiss"
WHOLE = "from langchain_memrl import create_memrl_graph, EpisodicMemory, MemRLRetriever"


def imports(rounds: int) -> tuple[list[Row], dict[str, float]]:
    """Time of the import beside its dependencies alone, and the memory both take (MB)."""
    times: dict[str, list[float]] = {BASE: [], WHOLE: []}
    memory: dict[str, float] = {}
    for _ in range(rounds):
        for program in (BASE, WHOLE):
            taken, memory[program] = _run(program)
            times[program].append(taken)
    row = Row(
        "import",
        0,
        0,
        summary(times[WHOLE]),
        "import of langchain_core, langgraph, faiss",
        summary(times[BASE]),
        Goal(1.5),
    )
    return [row], {"package": memory[WHOLE], "dependencies alone": memory[BASE]}


def _run(program: str) -> tuple[float, float]:
    done = subprocess.run(  # noqa: S603 (our own program)
        [sys.executable, "-c", PROGRAM.format(imports=program)],
        check=True,
        capture_output=True,
        text=True,
    )
    taken, size = json.loads(done.stdout)
    return taken, size
