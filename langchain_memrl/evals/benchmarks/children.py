"""Processes that run a module of this package."""

import os
import sys


def module_path() -> str:
    """What PYTHONPATH has to be in a child that imports what this process can import."""
    return os.pathsep.join(map(os.path.abspath, sys.path))
