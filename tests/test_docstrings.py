"""Every example in a docstring runs, and every public name has a docstring."""

import doctest
import importlib
import inspect
from pathlib import Path

import keras
import numpy as np
import pytest

import garden

ROOT = Path(__file__).parent.parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def modules():
    for folder in ("garden", "layers", "tasks", "presets"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            package = () if folder == "garden" else ("garden",)
            name = ".".join((*package, *(part for part in parts if part != "__init__")))
            if not name.endswith("__main__"):
                yield name


@pytest.mark.parametrize("name", list(modules()))
def test_examples_in_docstrings_run(name):
    module = importlib.import_module(name)
    names = {**vars(module), "garden": garden, "keras": keras, "np": np}
    found = doctest.DocTestFinder(exclude_empty=True).find(module, name, extraglobs=names)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for example in found:
        assert not runner.run(example).failed, example.name


@pytest.mark.parametrize("face", [garden, garden.layers, garden.tasks, garden.presets], ids=lambda face: face.__name__)
def test_every_public_name_is_documented(face):
    for name in face.__all__:
        value = getattr(face, name)
        assert inspect.ismodule(value) or inspect.getdoc(value), f"{face.__name__}.{name}"
