"""Objects that a caller names as `module:name`, for the command line."""

import importlib
import sys
import traceback
from pathlib import Path
from typing import Any

from langchain_memrl.errors import InputError


def import_object(name: str, what: str, example: str, kind: str = "name") -> Any:
    """The object of a `module:name`; the current folder is searched first, as `python -m` does.

    The folder stays on the path, so that processes started later find the module too.

    Args:
        name: Module and name, with a colon between them.
        what: What the caller named with it, for the error.
        example: A name that would do, for the error.
        kind: What stands after the colon, for the error.

    Raises:
        InputError: There is no such module or name in it, or importing the module fails.
    """
    module, _, attribute = name.partition(":")
    expected = f"expected module:{kind}, for example {example}"
    if not module or not attribute:
        raise InputError(f"{what} is {name!r}; {expected}")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found = importlib.import_module(module)
    except Exception as error:  # a caller's module may raise anything
        looked = f"; looked in {folder} and in the installed packages"
        missing = isinstance(error, ImportError)
        raise InputError(
            f"{what} is {name!r}: {module} cannot be imported ({describe(error)})"
            f"{looked if missing else ''}; {expected}"
        ) from error
    if not hasattr(found, attribute):
        place = getattr(found, "__file__", None) or module
        raise InputError(f"{what} is {name!r}: there is no {attribute} in {place}; {expected}")
    return getattr(found, attribute)


def describe(error: BaseException) -> str:
    """Type and text of an error, and the line of the caller's own code that raised it."""
    words = f"{type(error).__name__}: {error}"
    own = Path(__file__).parent
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if own not in Path(frame.filename).parents and not frame.filename.startswith("<frozen")
    ]
    if isinstance(error, ImportError | SyntaxError) or not frames:
        return words
    return f"{words}, at {Path(frames[-1].filename).name}:{frames[-1].lineno}"
