"""S8: stored text is never a template: braces and percent signs reach the model unchanged.

The summariser's and the agent's prompts with 30 more texts: `test_s02_quoting.py`,
`graph/test_graph_prompt.py`.
"""

import ast
import logging

import pytest
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from trees import imported, package

from langchain_memrl import (
    LLMJudge,
    LLMSummarizer,
    MemRLRetriever,
    create_memrl_graph,
    prompts,
    summarize_pending,
)
from langchain_memrl.errors import VerdictError
from langchain_memrl.offline import ScriptedChatModel

TEMPLATES = [
    *("{x}", "{0}", "{}", "{a.__class__}", "{0.__class__.__mro__[1].__subclasses__}", "{{7*7}}"),
    *("{% raw %}x{% endraw %}", "{{ config }}", "{%% if", "${HOME}", "$HOME", "%s", "%(name)s"),
    *("%d %% %n", "{intent} {trajectory} {reward} {fence} {rubric}", "}{", "{{", "}}", "{!r:>{w}}"),
    *("<%= 7*7 %>", "#{7*7}", "`id`", "$(id)", "\\1 \\g<0>", "{'a': {b}}", '{"a": {"b": 1}}'),
]
FREE = {"score_threshold": None}


def asked(model):
    return "\n".join(str(message.content) for message in model.calls[-1])


@pytest.mark.parametrize("text", TEMPLATES)
@pytest.mark.parametrize("render", ["fenced", "turns"])
def test_a_text_reaches_every_model_unchanged(bank, text, render):
    """U3: as task, lesson, trajectory, answer, metadata, source, namespace and episode id."""
    scope = {"namespace": text}
    bank.remember(text, text, trajectory=text, metadata={text: text}, source=text, **scope)
    agent, writer = (ScriptedChatModel(responses=[text], cycle=True) for _ in range(2))
    graph = create_memrl_graph(
        agent,
        MemRLRetriever(memory=bank, **scope, **FREE),
        evaluator=lambda state: 1.0,
        summarizer=LLMSummarizer(writer),
        render=render,
    )
    config = {"metadata": {"memrl_episode_id": text}}
    graph.invoke({"messages": [("user", f"about {text}")]}, config)
    assert asked(agent).count(text) >= 4  # task, lesson, trajectory, and the new task
    assert f"about {text}" in asked(writer)
    assert f"What was done:\n{text}" in asked(writer)
    written = bank.get(bank.episode(text, **scope).memory_id, **scope)
    assert (written.intent, written.lesson, written.episode_id) == (f"about {text}", text, text)
    assert bank.list(**scope)[-1].metadata == {text: text}


@pytest.mark.parametrize("text", TEMPLATES)
def test_in_a_chain_it_is_a_value_of_the_callers_prompt(bank, text):
    bank.remember(text, text)
    model = ScriptedChatModel(responses=["done"])
    prompt = ChatPromptTemplate.from_messages([("system", "Notes: {notes}"), ("human", "{task}")])
    retriever = MemRLRetriever(memory=bank, **FREE)
    notes = retriever | (lambda documents: documents[0].page_content)
    ({"notes": notes, "task": RunnablePassthrough()} | prompt | model).invoke(text)
    assert [message.content for message in model.calls[0]] == [f"Notes: {text}", text]


@pytest.mark.parametrize("text", TEMPLATES)
def test_a_judge_reads_task_answer_rubric_and_reference_as_they_are(text):
    model = ScriptedChatModel(responses=["no grade"])
    judge = LLMJudge(model, rubric=text, reference=text)
    with pytest.raises(VerdictError):
        judge({"intent": text, "messages": []})
    assert asked(model).count(text) >= 3


def test_names_and_texts_are_no_templates_of_log_lines(bank, caplog):
    caplog.set_level(logging.DEBUG)
    for text in TEMPLATES:
        bank.remember(text, None, trajectory=text, namespace=text, episode_id=text)
        for _ in range(3):
            bank.recall(text, namespace=text, stop_when_harmful=True, **FREE)
        summarize_pending(bank.in_namespace(text), lambda attempt: attempt.trajectory)
    told = [record.getMessage() for record in caplog.records]  # a bad template would raise here
    assert len([line for line in told if "carried no episode id" in line]) == 1


def test_the_package_has_no_other_templates_than_its_own_constants():
    """`.format` is only called on constants of `prompts.py`, on literals, or on what is one."""
    own = {name for name in vars(prompts) if name.isupper()}
    found = []
    for place, tree in package(without=("evals", "bench", "cli", "offline")):
        found += [f"{place}: {name}" for name in imported(tree) if "jinja2" in name]
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if node.func.attr in ("format_map", "from_template", "Template", "substitute"):
                found.append(f"{place}:{node.lineno}: {ast.unparse(node)[:60]}")
            if node.func.attr == "format" and place.parts[0] != "store":  # which writes SQL only
                base = node.func.value
                constant = isinstance(base, ast.Attribute) and base.attr in own
                named = isinstance(base, ast.Name) and (base.id.isupper() or base.id == "intro")
                if not (constant or named or isinstance(base, ast.Constant)):
                    found.append(f"{place}:{node.lineno}: {ast.unparse(node)[:60]}")
    assert found == []
