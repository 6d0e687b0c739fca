"""The README's Python runs, in its own order, and its commands are the ones that exist."""

import re
from pathlib import Path

from garden.cli import COMMANDS, main

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_every_python_block_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = {}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), scope)
    assert scope["labels"][0] in ("bad", "good")
    assert tuple(scope["seen"]["attention_probs"][0].shape) == (1, 12, 9, 9)
    assert (tmp_path / "my-classifier" / "task.json").exists()


def test_every_command_and_flag_in_the_readme_exists(capsys):
    text = "\n".join(blocks("bash")).replace("\\\n", " ")
    for line in re.findall(r"(?:^|/)garden (.+)$", text, re.MULTILINE):
        command, *rest = line.split()
        assert command in COMMANDS
        assert main([command, "--help"]) == 0
        known = capsys.readouterr().out
        for flag in re.findall(r"--(\w+)", " ".join(rest)):
            assert f"--{flag}" in known, f"garden {command} has no --{flag}"
