"""The automatic threshold, tried on real banks."""

import json
import sys

import numpy as np
import pytest
from fakes import FakeEmbeddings

from langchain_memrl.cli import main
from langchain_memrl.errors import InputError
from langchain_memrl.evals.thresholds import passed


class TwoKinds(FakeEmbeddings):
    """Texts of one kind lie close together; the two kinds lie apart."""

    def vector(self, text):
        noise = np.array(super().vector(text))
        kind = {"o": 0, "f": 1}.get(text[0])
        if kind is not None and text[1:2] == " ":
            noise[kind] += 3
        return noise.tolist()


OWN = [f"o {number}" for number in range(60)]
FOREIGN = [f"f {number}" for number in range(30)]


def test_own_tasks_pass_and_foreign_ones_do_not():
    (small, large) = passed(OWN, FOREIGN, TwoKinds(), sizes=[5, 40], draws=3)
    assert (small.size, large.size) == (5, 40)
    assert large.own > 0.9
    assert large.foreign == large.foreign_most == 0
    assert small.own_least <= small.own


def test_the_same_seed_gives_the_same_shares_and_every_text_is_asked_for_once():
    model = TwoKinds()
    first = [*passed(OWN, FOREIGN, model, sizes=[10], draws=2, seed=7)]
    assert len(model.texts) == len(set(model.texts))
    assert [*passed(OWN, FOREIGN, TwoKinds(), sizes=[10], draws=2, seed=7)] == first


@pytest.mark.parametrize(("own", "foreign"), [(OWN[:10], FOREIGN), (OWN, [])])
def test_too_few_texts_are_refused(own, foreign):
    with pytest.raises(InputError, match="more own tasks"):
        [*passed(own, foreign, TwoKinds(), sizes=[10])]


def test_the_command_reads_lines_and_json_lines(tmp_path, monkeypatch, capsys):
    (tmp_path / "own.txt").write_text("\n".join(f"reset router {n}" for n in range(30)))
    foreign = [json.dumps(f"bake\ncake {n}") for n in range(5)]
    (tmp_path / "foreign.jsonl").write_text("\n".join(foreign))
    files = [str(tmp_path / name) for name in ("own.txt", "foreign.jsonl")]
    options = ["--embeddings", "langchain_memrl.offline:HashingEmbeddings", "--sizes", "5,20"]
    monkeypatch.setattr(sys, "argv", ["memrl", "threshold", *files, *options, "--json"])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    assert [row["size"] for row in json.loads(capsys.readouterr().out)] == [5, 20]
