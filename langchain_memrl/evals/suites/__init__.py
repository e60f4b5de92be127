"""The suites that come along, found by listing this folder; each module has one `SUITE`."""

import importlib
import pkgutil
from functools import cache

from langchain_memrl.errors import InputError
from langchain_memrl.evals.environment import Suite
from langchain_memrl.importing import describe, import_object


@cache
def find_suites() -> dict[str, str]:
    """The module of each suite in this folder, by the suite's name."""
    names = (module.name for module in pkgutil.iter_modules(__path__))
    return {name.replace("_", "-"): f"{__name__}.{name}" for name in names}


def load_suite(name: str) -> Suite:
    """A suite by its name, or one's own as `module:SUITE`.

    Raises:
        InputError: There is no such suite, or it is none.
    """
    if ":" not in name:
        if name not in find_suites():
            raise InputError(
                f"there is no suite {name!r}; known are {', '.join(find_suites())}, and your own "
                "as module:SUITE"
            )
        suite: Suite = importlib.import_module(find_suites()[name]).SUITE
        return suite
    found = import_object(name, "the suite", "my_tasks:SUITE")
    if isinstance(found, type):
        raise InputError(
            f"{name} is a class; expected a Suite: write "
            f'SUITE = Suite("my-tasks", {found.__name__}) and name that'
        )
    if callable(found):
        try:
            found = found()
        except Exception as error:  # the caller's own code may raise anything
            raise InputError(f"{name} makes no suite ({describe(error)})") from error
    if not isinstance(found, Suite):
        raise InputError(f"{name} is a {type(found).__name__}; expected a Suite")
    return found
