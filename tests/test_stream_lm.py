"""A stream in steps: which token is read where, what a memory is worth, and when it is forgotten."""

import keras
import numpy as np
import pytest
from families import run
from keras import ops

import garden
from garden import tasks
from garden.tasks.stream_lm import stream_places

RNG = np.random.default_rng(0)


def language_model(**changes):
    keras.utils.set_random_seed(0)
    arguments = dict(num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=16, dropout=0.0, memory_length=6)
    backbone = garden.TransformerXlBackbone(11, **{**arguments, **changes})
    for weight in backbone.weights:
        weight.assign(RNG.normal(weight.path.endswith("gamma"), 0.3, weight.shape))
    return tasks.CausalLM.for_backbone(garden.TransformerXlBackbone)(backbone)


@pytest.mark.parametrize(("count", "rows", "length"), [(24, 3, 4), (25, 3, 4), (7, 3, 4), (2, 3, 4), (40, 1, 7)])
def test_every_token_is_read_once_and_rows_go_on(count, rows, length):
    places, real = stream_places(count, rows, length)
    assert sorted(places[real]) == list(range(count))
    steps = places.reshape(-1, rows, length)
    for row in range(rows):
        read = steps[:, row][real.reshape(-1, rows, length)[:, row]]
        assert (np.diff(read) == 1).all()


@pytest.mark.parametrize("changes", [{}, {"cutoffs": (4, 7), "div_val": 2}, {"pre_norm": True}])
def test_the_loss_of_steps_is_that_of_one_long_row(changes):
    model = language_model(memory_length=60, **changes)
    stream = RNG.integers(0, 11, 50)
    x = {"token_ids": stream[None, :-1].astype("int32"), "padding_mask": np.ones((1, 49), "int32")}
    logits = run(model, x)
    expected = keras.losses.sparse_categorical_crossentropy(stream[None, 1:], logits, from_logits=True)
    reader = tasks.StreamLM(model, num_rows=1, sequence_length=8)
    reader.compile()
    found = reader.evaluate(stream, verbose=0)
    assert abs(found["bits"] * np.log(2) - float(ops.mean(expected))) <= 1e-5
    assert abs(np.log(found["perplexity"]) - float(ops.mean(expected))) <= 1e-5


def test_evaluation_forgets_before_and_training_before_every_epoch():
    model = language_model()
    reader = tasks.StreamLM(model, num_rows=2, sequence_length=4)
    reader.compile(keras.optimizers.SGD(0.0))
    stream = RNG.integers(0, 11, 60)
    first = reader.evaluate(stream, verbose=0)
    assert reader.evaluate(stream, verbose=0) == first
    history = reader.fit(stream, epochs=2, validation_stream=stream, verbose=0).history
    for name in ("bits", "val_bits"):
        assert np.allclose(history[name], first["bits"], atol=1e-5)
    forgetful = tasks.StreamLM(model, num_rows=15, sequence_length=4)  # no row has a second step
    forgetful.compile()
    assert abs(forgetful.evaluate(stream, verbose=0)["bits"] - first["bits"]) > 1e-3


def test_memory_learns_what_a_segment_cannot_hold():
    """The token behind a 0 depends on the one behind the 0 before, five places back: a segment of two cannot know."""
    stream = np.array([[0, 1, 2, 2, 2, 0, 3, 2, 2, 2] * 40]).ravel()
    reader = tasks.StreamLM(language_model(), num_rows=8, sequence_length=2)
    reader.compile(keras.optimizers.Adam(5e-3))
    best = min(reader.fit(stream, epochs=14, verbose=0).history["bits"])
    assert best < 0.12  # a coin's throw every five tokens would be 0.2


def test_text_is_a_stream_too(tmp_path):
    tokenizer = garden.TransformerXlTokenizer.from_text(["a b c", "b c"])
    model = language_model()
    model = type(model)(model.backbone, tasks.TransformerXlCausalLMPreprocessor(tokenizer, sequence_length=8))
    reader = tasks.StreamLM(model, num_rows=1, sequence_length=4)
    words = {word: i for i, word in enumerate(tokenizer.get_vocabulary())}
    expected = [words[word] for word in "a b c <eos> b c <eos>".split()]
    assert reader.token_ids(["a b c", "b c"]).tolist() == expected
    reader.compile()
    reader.fit(["a b c", "b c"], verbose=0)
    model.save_to_preset(tmp_path)
    again = tasks.CausalLM.from_preset(tmp_path)
    x = {"token_ids": np.array([expected], "int32"), "padding_mask": np.ones((1, 7), "int32")}
    assert np.array_equal(run(again, x), run(model, x))


def test_what_cannot_be_is_said():
    with pytest.raises(ValueError, match="TransformerXlBackbone with memory_length=None carries nothing"):
        tasks.StreamLM(language_model(memory_length=None), 2, 4)
    gpt2 = garden.Gpt2Backbone(11, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8)
    with pytest.raises(ValueError, match="Gpt2Backbone with memory_length=None carries nothing"):
        tasks.StreamLM(tasks.CausalLM.for_backbone(garden.Gpt2Backbone)(gpt2), 2, 4)
    reader = tasks.StreamLM(language_model(), 2, 4)
    reader.compile()
    with pytest.raises(ValueError, match="at least two tokens"):
        reader.fit(np.array([3]))
    with pytest.raises(ValueError, match="from 0 to 10"):
        reader.fit(np.array([3, 11, 4]))
