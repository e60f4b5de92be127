import os
import subprocess
import sys
from pathlib import Path

STRICT = "LANGGRAPH_STRICT_MSGPACK"


def test_crashes_resumes_and_people_also_work_with_langgraphs_strict_serialiser():
    tests = Path(__file__).with_name("test_middleware_once.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)],
        cwd=tests.parents[2],
        env={**os.environ, STRICT: "true"},
        capture_output=True,
        text=True,
    )
    last = done.stdout.strip().splitlines()[-1]
    assert " passed" in last, done.stdout[-5000:]
    assert not any(word in last for word in ("failed", "error", "skipped"))
