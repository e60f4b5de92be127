"""Humanity's Last Exam on invented items: grading, judges, and that nothing of an item is kept."""

import json

import pytest
from langchain_core.messages import AIMessage
from typer.testing import CliRunner

from langchain_memrl.cli.app import app
from langchain_memrl.errors import ConfigError, InputError, MemRLError
from langchain_memrl.evals.analysis.reading import read_experiment
from langchain_memrl.evals.arms import ARMS
from langchain_memrl.evals.benchmarks import benchmark
from langchain_memrl.evals.benchmarks.exams.grading import JudgeError, by_rule, read_answer, same
from langchain_memrl.evals.benchmarks.exams.items import Item, load_items
from langchain_memrl.evals.contract import check_suite
from langchain_memrl.evals.environment import Setup, Situation
from langchain_memrl.evals.estimate import estimate
from langchain_memrl.evals.loop import records, run
from langchain_memrl.evals.records import EpisodeRecord, read_records
from langchain_memrl.evals.report.findings import notes
from langchain_memrl.evals.settings import RunSettings
from langchain_memrl.evals.suites import hle
from langchain_memrl.evals.suites.hle import prepare
from langchain_memrl.offline import HashingEmbeddings, ScriptedChatModel

CANARY = "teashop exam canary 5f2c-invented"


def item(id, question, answer, kind="exactMatch", image=""):
    return {
        "id": id,
        "question": question,
        "image": image,
        "answer": answer,
        "answer_type": kind,
        "rationale": f"The clerk of the invented shop knows why: {id}.",
        "category": "Other",
        "canary": CANARY,
    }


ITEMS = [
    item("a1", "Which blossom flavours the tea of the moth brothers?", "Osmanthus fragrans"),
    item("b2", "How many lids has the shop with 17 pots and 4 jars, each with one?", "21"),
    item("c3", "Which cup is left?\nA. red\nB. jade\nC. blue", "B", "multipleChoice"),
    item("d4", "Which leaf is this?", "Camellia", image="data:image/png;base64,AAAA"),
]


def write_items(path, items=None):
    path.write_text("".join(json.dumps(one) + "\n" for one in (ITEMS if items is None else items)))
    return path


@pytest.fixture
def data(tmp_path):
    return write_items(tmp_path / "exam.jsonl")


@pytest.fixture(autouse=True)
def light(monkeypatch):
    monkeypatch.setattr(benchmark, "word_embeddings", lambda: HashingEmbeddings(64))
    for name in (hle.JUDGE_MODEL, hle.JUDGE_URL):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def prepared(data):
    opened = []

    def prepare_(**options):
        opened.append(prepare(Setup(data=options.pop("data", data), **options)))
        return opened[-1].__enter__()

    yield prepare_
    for one in opened:
        one.__exit__(None, None, None)


def try_(suite, id, model=None, epoch=0):
    environment = suite.make(Setup(model=model))
    found = next(one for one in environment.tasks if one.id == id)
    return environment.act(Situation(found, (), epoch, lessons=False))


def says(*replies):
    return ScriptedChatModel(responses=list(replies))


# --- items ----------------------------------------------------------------------------------------


def test_items_with_an_image_are_left_out_and_counted_loudly(prepared, data, tmp_path):
    found = load_items(data)
    assert [one.id for one in found.items] == ["a1", "b2", "c3"]
    assert [one.chosen for one in found.items] == [False, False, True]
    assert found.pictured == 1
    suite = prepared(agent="oracle")
    assert suite.note.endswith("1 of 4 items have an image and are left out")
    run(suite, RunSettings((ARMS["none"],), seeds=1, protocol="stream"), tmp_path / "out")
    shown = notes(read_experiment(tmp_path / "out"))
    assert any("1 of 4 items have an image and are left out" in line for line in shown)
    assert prepared().note == "1 of 4 items have an image and are left out"


def test_json_and_parquet_are_read_too(tmp_path):
    file = tmp_path / "exam.json"
    file.write_text(json.dumps(ITEMS))
    assert len(load_items(file).items) == 3
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    import pyarrow

    file = tmp_path / "exam.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(ITEMS), file)
    assert [one.id for one in load_items(file).items] == ["a1", "b2", "c3"]
    file.write_bytes(b"nothing")
    with pytest.raises(InputError, match="cannot be read"):
        load_items(file)


def test_parquet_without_pyarrow_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (tmp_path / "exam.parquet").write_bytes(b"x")
    with pytest.raises(ConfigError, match="pip install pyarrow"):
        load_items(tmp_path / "exam.parquet")


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([], "holds no items"),
        ([{"id": "x"}], r"item 1 is not one of the exam's \(KeyError\)"),
        ([1], r"item 1 is not one of the exam's \(AttributeError\)"),
        ([{**ITEMS[0], "answer": " "}], "item 1 has an empty field"),
        ([{**ITEMS[0], "answer_type": "essay"}], "an answer_type other than exactMatch"),
        ([ITEMS[0], ITEMS[0]], "item 2 is there twice"),
        ([ITEMS[3]], "all 1 items have images"),
    ],
)
def test_what_is_no_exam_is_refused_without_a_word_of_it(tmp_path, items, message):
    with pytest.raises(InputError, match=message) as caught:
        load_items(write_items(tmp_path / "x.jsonl", items))
    assert "blossom" not in str(caught.value)
    assert CANARY not in str(caught.value)


def test_no_data_says_where_to_get_it():
    with pytest.raises(InputError, match=r"huggingface\.co/datasets/cais/hle"):
        load_items(None)


# --- rules ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "right", "equal"),
    [
        ("osmanthus  Fragrans.", "Osmanthus fragrans", True),
        ("**Osmanthus fragrans**", "Osmanthus fragrans", True),
        ("$21$", "21", True),
        (r"\boxed{21}", "21", True),
        ("21.0", "21", True),
        ("1,000", "1000", True),
        ("22", "21", False),
        ("osmanthus", "Osmanthus fragrans", False),
        ("", "21", False),
        ("", "", False),
    ],
)
def test_answers_are_equal_but_for_how_they_are_written(answer, right, equal):
    assert same(answer, right) is equal


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("B", True),
        ("(B)", True),
        ("B. jade", True),
        ("**B**", True),
        ("A", False),
        ("C) blue", False),
        ("Because it is jade", None),
        ("b", None),
        ("", None),
    ],
)
def test_a_choice_is_judged_by_its_letter(answer, verdict):
    assert by_rule(Item("c", "?", "B", True), answer) is verdict


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("I think.\nAnswer: 21", "21"),
        ("Answer: 3\nNo, wait.\n**Final Answer:** 21", "21"),
        ("<think>Answer: 5</think>Answer: 21", "21"),
        ("It is 21.", ""),
        ("", ""),
    ],
)
def test_the_last_answer_line_of_a_reply_counts(reply, answer):
    assert read_answer(reply) == answer


# --- judges ---------------------------------------------------------------------------------------


def test_what_a_rule_can_tell_needs_no_judge(prepared):
    for id, answer, right in (("b2", "21", True), ("c3", "B", True), ("c3", "A", False)):
        model = says(f"Well.\nAnswer: {answer}")
        trial = try_(prepared(), id, model)
        assert (trial.success, trial.calls) == (right, 1)


def test_where_no_rule_can_tell_the_judge_decides(prepared):
    for verdict, right in (("Verdict: right", True), ("**Verdict:** wrong", False)):
        model = says("Answer: sweet osmanthus", f"It says sweet osmanthus.\n{verdict}")
        trial = try_(prepared(), "a1", model)
        assert (trial.success, trial.calls) == (right, 2)
        judged = model.calls[1][-1].text
        assert "sweet osmanthus" in judged
        assert "Osmanthus fragrans" in judged
    assert "Osmanthus fragrans" not in model.calls[0][-1].text


def test_tokens_of_the_judge_are_counted(prepared):
    usage = {"input_tokens": 100, "output_tokens": 7, "total_tokens": 107}
    texts = ("Answer: sweet", "Verdict: wrong")
    model = says(*(AIMessage(text, usage_metadata=usage) for text in texts))
    trial = try_(prepared(), "a1", model)
    assert (trial.prompt_tokens, trial.completion_tokens) == (200, 14)


def test_a_judge_that_cannot_be_read_or_fails_gives_no_result(prepared):
    with pytest.raises(JudgeError, match="no readable verdict"):
        try_(prepared(), "a1", says("Answer: sweet", "I like Osmanthus fragrans."))

    def model(prompt):
        if "Right answer:" in prompt[-1].text:
            raise TimeoutError(prompt[-1].text)
        return "Answer: sweet"

    with pytest.raises(MemRLError, match="TimeoutError; what it said is not kept") as caught:
        try_(prepared(), "a1", model)
    assert caught.value.__context__ is None
    settings = RunSettings((ARMS["none"],), seeds=1, epochs=1, attempts=1)
    found = [one for one in records(prepared(), settings, model) if isinstance(one, EpisodeRecord)]
    assert {one.task: one.success for one in found} == {"a1": None, "b2": None, "c3": None}


def test_an_empty_reply_is_wrong_without_a_judge(prepared):
    trial = try_(prepared(), "a1", says("  "))
    assert (trial.success, trial.calls) == (False, 1)


def test_another_model_may_judge(prepared, monkeypatch):
    monkeypatch.setenv(hle.JUDGE_MODEL, "strict")
    monkeypatch.setenv(hle.JUDGE_URL, "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    suite = prepared()
    assert suite.settings["judge"] == "strict"
    judge = suite.make(Setup(model=says("Answer: sweet")))._judge
    assert (judge.model_name, judge.openai_api_base) == ("strict", "http://127.0.0.1:9/v1")
    monkeypatch.delenv(hle.JUDGE_MODEL)
    assert prepared().settings["judge"] == "the model itself"


# --- nothing is kept ------------------------------------------------------------------------------


def secrets_of(items):
    """Every text of the items, as it could be written anywhere."""
    for one in items:
        for name in ("question", "rationale", "canary", "answer"):
            text = one[name]
            if len(text) > 3:
                yield from (text, text.casefold(), json.dumps(text)[1:-1])
                yield from (part for part in text.splitlines() if len(part) > 8)


def leaks(folder, items=ITEMS):
    """The files below a folder that hold a text of an item."""
    found = []
    for file in folder.rglob("*"):
        if file.is_file():
            raw = file.read_bytes()
            for text in secrets_of(items):
                forms = (text.encode(), text.encode("utf-16-le"), text.encode("utf-32-le"))
                if any(form in raw or form in raw.lower() for form in forms):
                    found.append((file.name, text))
    return found


def gossip(prompt):
    """A model that repeats whatever it reads, and fails with it now and then."""
    text = prompt[-1].text
    if "17 pots" in text:
        raise RuntimeError(text)
    return f"You ask: {text}\nIt is Osmanthus fragrans.\nAnswer: {text}\nVerdict: wrong"


def test_the_scan_for_leaks_finds_one(tmp_path, prepared):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "bank").write_text(f"... {ITEMS[0]['question']} ...")
    assert leaks(tmp_path / "x") != []


def test_no_text_of_an_item_is_anywhere_in_the_folder_of_a_run(prepared, tmp_path):
    out = tmp_path / "out"
    settings = RunSettings(
        (ARMS["none"], ARMS["rag"], ARMS["memrl"]), seeds=1, epochs=2, attempts=2
    )
    settings = RunSettings(settings.arms, seeds=1, epochs=2, attempts=1, patience=99)
    run(prepared(), settings, out, model=gossip)
    done = CliRunner().invoke(app, ["eval", "report", str(out)])
    assert done.exit_code == 0, done.output
    assert {file.name for file in out.rglob("*") if file.is_file()} == {
        "records.jsonl",
        "report.html",
    }
    assert leaks(out) == []
    found = read_records(out / "records.jsonl").episodes
    assert {one.task for one in found} == {"a1", "b2", "c3"}
    assert {one.error for one in found if one.task == "b2"} == {
        "MemRLError: RuntimeError; what it said is not kept, as it might repeat a question"
    }
    assert any(one.written for one in found)
    assert any(one.shown for one in found)


def test_a_killed_unit_begins_anew_and_a_whole_one_stays(prepared, tmp_path):
    out = tmp_path / "out"
    settings = RunSettings((ARMS["rag"],), seeds=2, epochs=2, batch=1)
    asked = []

    def model(prompt):
        asked.append(prompt)
        if len(asked) == 9:
            raise KeyboardInterrupt
        return "Answer: 21\nVerdict: wrong"

    with pytest.raises(KeyboardInterrupt):
        run(prepared(), settings, out, model=model)
    run(prepared(), settings, out, model=model)
    (file,) = run(prepared(), settings, out, model=model)
    found = read_records(file).episodes
    assert [(one.seed, one.step) for one in found] == [
        (s, step) for s in (0, 1) for step in range(6)
    ]
    whole = RunSettings((ARMS["rag"],), seeds=2, epochs=2, batch=1)
    (other,) = run(
        prepared(), whole, tmp_path / "other", model=lambda p: "Answer: 21\nVerdict: wrong"
    )
    expected = read_records(other).episodes
    assert [(one.task, one.shown, one.success) for one in found] == [
        (one.task, one.shown, one.success) for one in expected
    ]


# --- agents ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["oracle", "random"])
def test_agents_without_a_model_keep_the_contract(prepared, agent):
    check_suite(prepared(agent=agent))


def test_the_oracle_passes_and_luck_does_not(prepared):
    assert all(try_(prepared(agent="oracle"), id).success for id in ("a1", "b2", "c3"))
    suite = prepared(agent="random")
    trials = [try_(suite, id, epoch=epoch) for id in ("a1", "b2", "c3") for epoch in range(10)]
    assert 0 < sum(trial.success for trial in trials) < 8
    assert not any(trial.answer for trial in trials)


@pytest.mark.parametrize("agent", ["memory-bound", "prior-bound"])
def test_an_agent_that_lives_on_forms_is_refused(data, agent):
    with pytest.raises(ConfigError, match="share no forms"):
        prepare(Setup(data=data, agent=agent)).__enter__()


def test_what_the_suite_does_not_know_is_refused(data):
    for options in ({"steps": 3}, {"dsn": "x"}, {"root": data}, {"agent": "nobody"}):
        with pytest.raises(ConfigError):
            prepare(Setup(data=data, **options)).__enter__()


def test_the_preset_is_the_papers_and_costs_are_said(prepared):
    suite = prepared()
    assert suite.make(Setup()).recall == {"k": 3, "fetch_k": 5, "score_threshold": 0.25}
    assert (suite.epochs, suite.batch) == (10, 5)
    settings = RunSettings((ARMS["none"], ARMS["memrl"]), seeds=3, epochs=2)
    assert "tokens sent" in str(estimate(suite, settings))


def test_prompts_can_be_replaced(prepared, tmp_path):
    own = tmp_path / "prompts.json"
    own.write_text(json.dumps({"TASK": "Bitte: {question}"}))
    model = says("Answer: 21")
    suite = prepared(prompts=own)
    try_(suite, "b2", model)
    assert model.calls[0][-1].text.startswith("Bitte: How many lids")
    assert suite.settings["prompts"] != prepared().settings["prompts"]


def test_the_command_runs_the_ground_truth_and_says_what_is_left_out(data, tmp_path):
    command = ["eval", "run", "hle", "--data", str(data), "--agent", "oracle"]
    done = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "3 of 3 pass." in done.output
    assert "1 of 4 items have an image" in " ".join(done.output.split())
    assert leaks(tmp_path / "out") == []
