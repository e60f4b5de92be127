"""S4: nothing stored is ever run: no pickle and its like, no eval, anywhere in the package.

Imports of such modules are refused in `test_architecture.py`; `store/test_index_file.py` opens and
rebuilds a bank with pickle switched off.
"""

import ast
import pickle

import numpy as np
import pytest
from trees import called, imported, package

from langchain_memrl import EpisodicMemory

MODULES = {
    *("pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"),
    *("yaml", "ruamel", "jsonpickle", "torch", "dbm", "code", "codeop"),
}
CALLS = {
    *("eval", "exec", "compile", "__import__", "builtins.eval", "builtins.exec"),
    *("np.load", "numpy.load", "np.loads", "pd.read_pickle", "pandas.read_pickle"),
    *("os.system", "os.popen", "yaml.load", "joblib.load", "FAISS.load_local"),
}
KEYWORDS = {"allow_pickle", "allow_dangerous_deserialization", "allow_dangerous_code"}
# A program of a benchmark is run, in a child process behind walls: that is its task.
PROGRAMS = ("compile", "exec", "marshal", "code")


def of_a_benchmark(place):
    return place.parts[:3] == ("evals", "benchmarks", "programs")


def test_no_module_can_turn_data_into_code():
    found = []
    for place, tree in package():
        used = [name.split(".")[0] for name in imported(tree)]
        found += [f"{place}: {name}" for name in used if name in MODULES]
        for name, node in called(tree):
            bad = name in CALLS or any(word.arg in KEYWORDS for word in node.keywords)
            if bad and not (of_a_benchmark(place) and name in PROGRAMS):
                found.append(f"{place}:{node.lineno}: {ast.unparse(node)[:80]}")
    assert found == []


class Marker:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.fixture
def planted(tmp_path):
    """Writes hostile files beside a bank's own, and under names that a careless reader opens."""
    marker = tmp_path / "marker"
    data = pickle.dumps(Marker(marker))
    pickle.loads(data)
    assert marker.exists(), "the planted file does what it is planted for"
    marker.unlink()

    def plant(folder):
        for name in ("index.pkl", "intents.pkl", "memrl.pkl", "cache.pickle", "intents.faiss.pkl"):
            (folder / name).write_bytes(data)
        np.save(folder / "vectors.npy", np.array([Marker(marker)], dtype=object), allow_pickle=True)
        (folder / "sitecustomize.py").write_text(f"open({str(marker)!r}, 'w')")
        (folder / "settings.yaml").write_text(f"!!python/object/apply:open [{marker}, w]")
        return marker

    return plant


def test_planted_files_are_never_opened(open_bank, folder, tmp_path, planted, embeddings):
    with open_bank() as bank:
        bank.remember("task", "lesson")
        bank.recall("task")
    marker = planted(folder)
    with open_bank() as bank:
        assert len(bank.recall("task", score_threshold=None).ids) == 1
        bank.remember("other", "lesson")
        bank.rebuild_index()
        bank.compact()
        assert bank.verify().ok
        bank.backup(tmp_path / "copy")
        bank.export_jsonl(tmp_path / "export.jsonl")
    planted(tmp_path / "copy")
    with EpisodicMemory.import_jsonl(
        tmp_path / "export.jsonl", tmp_path / "copy", embeddings=embeddings
    ) as copy:
        assert len(copy.list()) == 2
    assert not marker.exists()


def test_an_export_whose_lines_are_pickles_is_refused(planted, tmp_path, embeddings):
    marker = planted(tmp_path)
    with pytest.raises(ValueError, match="no complete export"):
        EpisodicMemory.import_jsonl(tmp_path / "memrl.pkl", tmp_path / "new", embeddings=embeddings)
    assert not marker.exists()
    assert not (tmp_path / "new").exists()
