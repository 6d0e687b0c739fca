"""The package as a package: what imports what, what is shipped, how fast it starts."""

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("layers", "tasks", "presets", "garden")
MAY_IMPORT = {
    "layers": set(),
    "garden": {"layers"},
    "tasks": {"garden", "layers"},
    "presets": {"tasks", "garden", "layers"},
    "cli": FOLDERS,
}
LAYERS_KNOW = {"keras"}


def python_files(folder):
    return sorted((ROOT / folder).rglob("*.py"))


def home(file):
    """Which side of the import rule a file stands on; the face and the command line may import everything."""
    parts = file.relative_to(ROOT).parts
    if parts[0] == "garden" and (parts[1] in ("cli", "__init__.py", "__main__.py")):
        return "cli"
    return parts[0]


def imports(tree):
    """(function around it, module) of every import in a file."""
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            child.parent = node
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            modules = [node.module]
            if node.module == "garden":
                modules = [f"garden.{alias.name}" if alias.name in FOLDERS else "garden" for alias in node.names]
        else:
            continue
        around = node
        while around and not isinstance(around, ast.FunctionDef):
            around = getattr(around, "parent", None)
        yield from ((around.name if around else None, module) for module in modules)


def folder_of(module):
    parts = module.split(".")
    if parts[0] != "garden":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in FOLDERS else "garden"


@pytest.mark.parametrize("file", [f for folder in FOLDERS for f in python_files(folder)], ids=lambda f: f.name)
def test_imports_point_downwards(file):
    for function, module in imports(ast.parse(file.read_text("utf-8"))):
        target, own = folder_of(module), home(file)
        if own == "layers":
            assert module.split(".")[0] in LAYERS_KNOW | set(sys.stdlib_module_names), f"layers import {module}"
        upward = target and target != own and target not in MAY_IMPORT[own]
        # `from_preset` is the one upward arrow: deferred, inside the method.
        assert not upward or (target == "presets" and function == "from_preset"), f"{own} imports {module}"


@pytest.mark.parametrize("folder", ["layers", "tasks", "presets"])
def test_a_second_copy_under_the_bare_name_is_refused(folder):
    done = subprocess.run([sys.executable, "-c", f"import {folder}"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode and f"import garden.{folder}, not {folder}" in done.stderr


def test_every_package_on_disk_is_shipped():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    on_disk = {
        ".".join((*(() if folder == "garden" else ("garden",)), *init.parent.relative_to(ROOT).parts))
        for folder in FOLDERS
        for init in (ROOT / folder).rglob("__init__.py")
    }
    assert set(settings["packages"]) == on_disk
    for package, path in settings["package-dir"].items():
        assert package == "garden." + path.replace("/", ".")


def test_the_face_lists_what_exists():
    import garden

    for face in (garden, garden.layers, garden.tasks, garden.presets):
        for name in face.__all__:
            assert getattr(face, name) is not None, f"{face.__name__}.{name}"


def test_import_is_quick_and_brings_no_backend():
    code = (
        "import time, sys; start = time.perf_counter(); import garden; took = time.perf_counter() - start;"
        "import garden.presets; garden.presets.names();"
        "print(took, [m for m in ('keras', 'tensorflow', 'jax', 'torch') if m in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    seconds, modules = output.split(maxsplit=1)
    assert float(seconds) < 0.5 and modules.strip() == "[]"


def test_layers_need_keras_only():
    code = "import sys, garden.layers; print([m for m in ('keras_hub', 'tensorflow_text') if m in sys.modules])"
    environment = {**os.environ, "KERAS_BACKEND": "jax"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_a_saved_preset_loads_in_a_process_that_has_seen_no_family(tmp_path):
    import garden

    tokenizer = garden.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"], lowercase=True)
    backbone = garden.BertBackbone(6, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4)
    preprocessor = garden.tasks.BertTextClassifierPreprocessor(tokenizer, 8)
    garden.tasks.BertTextClassifier(backbone, 2, preprocessor).save_to_preset(tmp_path)
    code = (
        "import garden; from garden.cli.jobs import job_of; "
        f"tokenizer = garden.BertTokenizer.from_preset({str(tmp_path)!r}); "
        f"print(type(tokenizer).__name__, type(garden.Backbone.from_preset({str(tmp_path)!r})).__name__, "
        f"job_of({str(tmp_path)!r}).task)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == ["BertTokenizer", "BertBackbone", "TextClassifier"], done.stderr
