"""`garden generate` and `garden prompt`, on a tiny GPT-2."""

import csv
import io

import numpy as np
import pytest
import transformers
from families import FAMILIES

import garden
from garden import tasks
from garden.cli import main

pytest_plugins = ["cli_fixtures"]


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory) -> str:
    """A Hugging Face folder whose weights are random."""
    folder = tmp_path_factory.mktemp("cli") / "gpt2"
    row = next(row for row in FAMILIES if row.backbone is garden.Gpt2Backbone)
    row.save_reference(folder, transformers.GPT2LMHeadModel)
    return str(folder)


def test_one_prompt_is_written_as_generate_gives_it(gpt2, capsys):
    model = tasks.CausalLM.from_preset(gpt2)
    model.compile(sampler="greedy")
    expected = model.generate("w1 w2", max_length=12)
    for sampler in ("greedy", "beam"):
        arguments = ["--prompt=w1 w2", "--max_length=12", f"--sampler={sampler}", "--num_beams=1"]
        capsys.readouterr()
        assert main(["generate", f"--preset={gpt2}", *arguments]) == 0
        assert capsys.readouterr().out == expected + "\n"


def test_a_file_of_prompts_comes_back_with_the_texts(gpt2, tmp_path):
    table = tmp_path / "prompts.csv"
    table.write_text("text,id\nw1 w2,7\nw3,8\n")
    output = tmp_path / "out.csv"
    arguments = [f"--input={table}", f"--output={output}", "--max_length=9", "--sampler=top_p", "--seed=1"]
    assert main(["generate", f"--preset={gpt2}", *arguments]) == 0
    rows = list(csv.DictReader(output.open(encoding="utf-8")))
    assert [row["id"] for row in rows] == ["7", "8"]
    assert all(row["generated_text"].startswith(row["text"]) for row in rows)


def test_prompt_classifies_and_counts_what_is_right(gpt2, tmp_path, capsys):
    words = ["--label=pos= w1", "--label=neg= w2", "--template={text} w3"]
    classifier = tasks.PromptClassifier(tasks.CausalLM.from_preset(gpt2), "{text} w3", {"pos": " w1", "neg": " w2"})
    texts = ["w4", "w5 w6", "w7 w8 w9"]
    found, probabilities = classifier.predict_labels(texts)
    table = tmp_path / "texts.csv"
    truth = [found[0], found[1], "pos" if found[2] == "neg" else "neg"]
    lines = [f"{text},{name}" for text, name in zip(texts, truth, strict=True)]
    table.write_text("\n".join(["text,label", *lines]) + "\n")
    capsys.readouterr()
    output = tmp_path / "out.csv"
    arguments = [f"--input={table}", f"--output={output}", "--label_column=label"]
    assert main(["prompt", f"--preset={gpt2}", *words, *arguments]) == 0
    assert capsys.readouterr().out == "accuracy 0.6667 of 3 texts\n"
    rows = list(csv.DictReader(output.open(encoding="utf-8")))
    assert [row["predicted_label"] for row in rows] == found
    np.testing.assert_allclose([float(row["probability_pos"]) for row in rows], probabilities[:, 0], atol=1e-5)
    assert main(["prompt", f"--preset={gpt2}", *words, f"--input={table}", "--label_column=label"]) == 0
    printed = capsys.readouterr()
    assert "accuracy 0.6667 of 3 texts" in printed.err and len(list(csv.DictReader(io.StringIO(printed.out)))) == 3
    shots = [f"--demonstrations={table}", "--shots=1"]
    assert main(["prompt", f"--preset={gpt2}", *words, *shots, "--text=w4"]) == 0
    assert {line.split()[1] for line in io.StringIO(capsys.readouterr().out)} == {"pos", "neg"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generate"], "give either --prompt or --input"),
        (["generate", "--prompt=w1", "--max_length=34"], "max_length=34 is more than this backbone's 33 positions"),
        (["generate", "--prompt=w1", "--sampler=beam", "--num_beams=98"], "BeamSampler has num_beams=98"),
        (["prompt", "--template={text}", "--text=w1"], "for at least two classes, each once; got none"),
        (["prompt", "--template={text}", "--text=w1", "--label=good"], "--label=good is not NAME=WORDS"),
        (["prompt", "--template=w", "--text=w1", "--label=a=b", "--label=c=w"], "has no slot for an example"),
    ],
)
def test_what_is_wrong_is_one_line(gpt2, error_of, arguments, message):
    command, *rest = arguments
    assert message in error_of([command, f"--preset={gpt2}", *rest])
