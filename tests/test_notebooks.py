"""The notebooks run from top to bottom, offline, and print what their committed form shows."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


def printed(notebook: nbformat.NotebookNode) -> str:
    """All that was printed; how a kernel cuts it into pieces is chance."""
    return "".join(
        output.text
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "stream" and output.name == "stdout"
    )


def test_all_notebooks_are_there() -> None:
    assert [path.name for path in NOTEBOOKS] == [
        "01_first_memory.ipynb",
        "02_graph.ipynb",
        "03_compare_arms.ipynb",
        "04_agent.ipynb",
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_prints_what_it_shows(path: Path, tmp_path: Path) -> None:
    shown = nbformat.read(path, as_version=4)
    nbformat.validate(shown)
    run = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}

    NotebookClient(run, timeout=120, kernel_name="python3", resources=resources).execute()

    assert printed(run) == printed(shown) != ""
