"""What users import: the names are pinned, and each is what it says."""

import inspect
import re
from importlib.metadata import version

import pytest

import langchain_memrl
from langchain_memrl import EpisodicMemory, errors, middleware

PUBLIC = [
    "PRESETS",
    "Attempt",
    "Candidate",
    "Credit",
    "Episode",
    "EpisodicMemory",
    "FromConfig",
    "LLMJudge",
    "LLMSummarizer",
    "LearningConfig",
    "MemRLCompressor",
    "MemRLError",
    "MemRLRetriever",
    "Memory",
    "Recall",
    "RecallConfig",
    "Reinforcement",
    "ScoredMemory",
    "ShownMemory",
    "TrustConfig",
    "Verdict",
    "contains",
    "create_memrl_builder",
    "create_memrl_graph",
    "exact_match",
    "from_openevals",
    "load_memories",
    "make_memrl_nodes",
    "reward_from",
    "summarize_pending",
    "verbatim",
]


def test_the_public_names_are_these():
    assert langchain_memrl.__all__ == PUBLIC


def test_they_are_sorted_constants_then_classes_then_functions():
    kinds = [(not name.isupper(), not name[0].isupper(), name) for name in PUBLIC]
    assert kinds == sorted(kinds)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_resolves_and_is_documented(name):
    found = getattr(langchain_memrl, name)
    assert name in dir(langchain_memrl)
    if inspect.isclass(found) or inspect.isfunction(found):
        assert found.__name__ == name
        assert inspect.getdoc(found)
        assert not found.__doc__.startswith(f"{name}(")  # what dataclass writes by itself


def test_a_star_import_gives_exactly_them():
    space = {}
    exec("from langchain_memrl import *", space)
    assert set(space) - {"__builtins__"} == set(PUBLIC)


def test_the_middleware_has_a_module_of_its_own():
    assert middleware.__all__ == ["MemRLMiddleware"]
    assert inspect.getdoc(middleware.MemRLMiddleware)
    assert "MemRLMiddleware" not in dir(langchain_memrl)


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'EpisodicMemroy'"):
        langchain_memrl.EpisodicMemroy  # noqa: B018


def test_the_version_is_the_one_that_is_installed():
    assert langchain_memrl.__version__ == version("langchain-memrl")


VERBS = sorted(
    name
    for name in dir(EpisodicMemory)
    if not name.startswith("_") and inspect.isroutine(getattr(EpisodicMemory, name))
)


@pytest.mark.parametrize("name", VERBS)
def test_every_call_of_a_memory_is_typed_and_documented(name):
    call = getattr(EpisodicMemory, name)
    signature = inspect.signature(call)
    assert inspect.getdoc(call)
    assert signature.return_annotation is not inspect.Parameter.empty
    for parameter in signature.parameters.values():
        assert parameter.name == "self" or parameter.annotation is not inspect.Parameter.empty


def test_every_verb_that_may_wait_has_an_awaited_form():
    awaited = {name for name in VERBS if inspect.iscoroutinefunction(getattr(EpisodicMemory, name))}
    assert {name[1:] for name in awaited} >= {
        *("recall", "recall_many", "record", "reinforce", "reinforce_many", "remember"),
        *("remember_many", "hold"),
    }
    assert awaited == {f"a{name[1:]}" for name in awaited if name[1:] in VERBS}


def test_the_tree_in_the_docstring_of_the_errors_is_the_tree():
    drawn = re.findall(r"(\w+?)(?:\((\w+)\))? {2,}\w", errors.__doc__)
    for name, base in drawn:
        assert issubclass(getattr(errors, name), errors.MemRLError)
        if base:
            assert issubclass(getattr(errors, name), getattr(__builtins__, base, Exception))
    defined = {name for name, value in vars(errors).items() if inspect.isclass(value)}
    assert defined == {name for name, _ in drawn} | {"MemRLError"} | set(
        re.findall(r"─ (\w+)", errors.__doc__)
    )
