"""The suites that come along, found by listing this folder; each module has one `SUITE`."""

import importlib
import pkgutil
from functools import cache

from langchain_memrl.errors import InputError
from langchain_memrl.evals.environment import Suite


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
    module, _, attribute = name.partition(":")
    if not attribute:
        if name not in find_suites():
            raise InputError(
                f"there is no suite {name!r}; known are {', '.join(find_suites())}, and your own "
                "as module:SUITE"
            )
        module, attribute = find_suites()[name], "SUITE"
    try:
        found = getattr(importlib.import_module(module), attribute)
        suite = found() if callable(found) else found
    except (ImportError, AttributeError) as error:
        raise InputError(f"the suite {name} cannot be imported ({error})") from error
    if not isinstance(suite, Suite):
        raise InputError(f"{name} is a {type(suite).__name__}; expected a Suite")
    return suite
