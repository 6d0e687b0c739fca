"""What the tests of the command line share: an untrained tiny BERT, a table of reviews, a finished run."""

from pathlib import Path

import keras
import pytest
from cli_material import NEGATIVE, POSITIVE, SMALL, SPLIT, WORDS

import garden
from garden.cli import main


@pytest.fixture(scope="session")
def preset(tmp_path_factory) -> str:
    """A garden preset of an untrained backbone and its tokenizer."""
    keras.utils.set_random_seed(1)
    tokenizer = garden.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS], lowercase=True)
    size = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32, dropout=0.0)
    backbone = garden.BertBackbone(vocabulary_size=tokenizer.vocabulary_size(), **size)
    for weight in backbone.trainable_weights:  # BERT's 0.02 is small for a width of 16: it would learn for long
        weight.assign(20 * weight if weight.name in ("kernel", "embeddings") else weight)
    folder = str(tmp_path_factory.mktemp("tiny") / "preset")
    backbone.save_to_preset(folder)
    tokenizer.save_to_preset(folder)
    return folder


@pytest.fixture(scope="session")
def reviews(tmp_path_factory) -> Path:
    """60 labelled reviews, half of them positive: 48 to train on and 12 to measure on."""
    path = tmp_path_factory.mktemp("data") / "reviews.csv"
    labelled = [("pos", word) for word in POSITIVE] + [("neg", word) for word in NEGATIVE]
    rows = [f"{article} {word} film,{label}" for article in ("a", "the") for label, word in labelled]
    path.write_text("\n".join(["text,label", *rows * 5]) + "\n")
    return path


@pytest.fixture(scope="session")
def run(preset, reviews, tmp_path_factory) -> Path:
    """A finished run folder."""
    folder = tmp_path_factory.mktemp("runs") / "reviews"
    command = ["finetune", f"--preset={preset}", f"--train={reviews}", f"--output={folder}"]
    assert main([*command, *SMALL, SPLIT, "--epochs=8", "--debug"]) == 0
    return folder


@pytest.fixture
def error_of(capsys):
    """A function that runs a failing command and gives the one line it prints."""

    def fail(arguments):
        capsys.readouterr()
        assert main([str(argument) for argument in arguments]) == 1
        *_, last = lines = capsys.readouterr().err.splitlines()
        assert [line for line in lines if line.startswith("garden:")] == [last]
        return last

    return fail
