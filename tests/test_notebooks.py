"""The notebooks run from top to bottom, at small size: every cell but the installation, in order, in one scope."""

import json
from pathlib import Path

import matplotlib
import numpy as np
import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "colab").glob("*.ipynb"))
SMALL = {"finetune_bert": {"EXAMPLES": 48, "EPOCHS": 1}, "language_models": {"LINES": 60, "EPOCHS": 1}}


def check_finetune_bert(scope):
    assert 0 <= scope["accuracy"] <= 1 and len(scope["held_texts"]) == 48


def check_language_models(scope):
    assert list(scope["losses"]) == ["GPT-2", "Transformer-XL", "T5"]
    assert np.isfinite(list(scope["losses"].values())).all() and scope["sample"].startswith("The principal")


CHECKS = {"finetune_bert": check_finetune_bert, "language_models": check_language_models}


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_notebook_runs_and_installs_in_one_cell(notebook, tmp_path, monkeypatch):
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    cells = [cell for cell in json.loads(notebook.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    tagged = {tag: sum(tag in cell["metadata"].get("tags", ()) for cell in cells) for tag in ("install", "parameters")}
    assert tagged == {"install": 1, "parameters": 1}
    scope = {}
    for cell in cells:
        tags = cell["metadata"].get("tags", ())
        if "install" not in tags:
            exec(compile("".join(cell["source"]), notebook.name, "exec"), scope)
        if "parameters" in tags:
            assert SMALL[notebook.stem].keys() <= scope.keys()
            scope.update(SMALL[notebook.stem])
    CHECKS[notebook.stem](scope)
