"""Seq2SeqLM: what it is trained on, what it writes, and that this is what transformers writes."""

import keras
import keras_hub
import numpy as np
import pytest
import torch
from families import t5_pieces
from test_t5 import SMALL, save_reference

import garden
from garden import tasks

TOKENIZER = garden.T5Tokenizer(t5_pieces(), extra_ids=9)
SOURCES = [f"w{i % 10} w{i * 3 % 10} nothing" for i in range(32)]
TARGETS = [f"w{i % 10} w{i % 10}" for i in range(32)]


def build(**changes):
    lengths = {"encoder_sequence_length": 12, "decoder_sequence_length": 8}
    return tasks.T5Seq2SeqLM(
        garden.T5Backbone(**{**SMALL, **changes}), tasks.T5Seq2SeqLMPreprocessor(TOKENIZER, **lengths)
    )


@pytest.fixture(scope="module")
def trained():
    model = build(dropout=0.0)
    model.compile(optimizer=keras.optimizers.Adam(5e-3), sampler="greedy")
    losses = model.fit((SOURCES, TARGETS), batch_size=16, epochs=40, verbose=0).history["loss"]
    assert losses[-1] < 0.2 * losses[0]
    return model


def test_the_decoder_reads_its_targets_shifted():
    x, y, weight = tasks.T5Seq2SeqLMPreprocessor(TOKENIZER, 6, 5)((["w1", "w2 w3"], ["w4", "w5 w6 w7"]))
    one, two = TOKENIZER("w4"), TOKENIZER("w5 w6 w7")
    assert x["encoder_token_ids"][0].tolist() == [*TOKENIZER("w1"), 1, 0, 0, 0]
    assert x["encoder_padding_mask"].tolist() == [[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 0]]
    assert x["decoder_token_ids"].tolist() == [[0, *one, 1, 0], [0, *two[:4]]]
    assert y.tolist() == [[*one, 1, 0, 0], two[:5]]
    assert weight.tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]


def test_all_forms_of_pairs_mean_the_same():
    import tensorflow as tf

    preprocessor = tasks.T5Seq2SeqLMPreprocessor(TOKENIZER, 6, 5)
    expected = preprocessor((["w1", "w2"], ["w3", "w4"]))
    named = {"encoder_text": ["w1", "w2"], "decoder_text": ["w3", "w4"]}
    one = preprocessor(("w1", "w3"))
    dataset = tf.data.Dataset.from_tensor_slices(named).batch(2).map(preprocessor)
    for other in (preprocessor(named), next(iter(dataset))):
        for a, b in zip(keras.tree.flatten(expected), keras.tree.flatten(other), strict=True):
            assert np.array_equal(a, b)
    assert np.array_equal(one[0]["decoder_token_ids"], expected[0]["decoder_token_ids"][0])


def test_padding_does_not_count():
    model = build(dropout=0.0)
    model.compile()
    pairs = TARGETS[:4], TARGETS[4:8]
    short = model.evaluate(pairs, verbose=0)
    model.preprocessor.decoder_sequence_length = 16
    model.preprocessor.encoder_sequence_length = 20
    assert np.allclose(short, model.evaluate(pairs, verbose=0), rtol=1e-5)


def test_it_writes_what_it_has_learned(trained):
    assert trained.generate(SOURCES[:5]) == TARGETS[:5]
    assert trained.generate(SOURCES[3]) == TARGETS[3]
    assert "".join(trained.stream(SOURCES[3])) == TARGETS[3]
    assert trained.generate({"encoder_text": SOURCES[3:5], "decoder_text": ["w3", "w4"]}) == TARGETS[3:5]
    assert trained.generate(SOURCES[3], max_length=3) == "w3"


@pytest.mark.parametrize("sampler", ["greedy", "beam", "top_k", "top_p", "random", "contrastive"])
def test_every_sampler_writes(sampler, trained):
    samplers = {"beam": keras_hub.samplers.BeamSampler(num_beams=3)}
    samplers |= {
        "top_k": keras_hub.samplers.TopKSampler(k=3),
        "contrastive": keras_hub.samplers.ContrastiveSampler(k=3),
    }
    trained.compile(sampler=samplers.get(sampler, sampler))
    written = trained.generate(SOURCES[:2])
    assert all(isinstance(text, str) and text for text in written)
    if sampler in ("greedy", "beam"):
        assert written == TARGETS[:2]


def test_it_writes_what_transformers_writes(tmp_path):
    """Until the first end: transformers goes on with padding there."""
    reference = save_reference(tmp_path, spread=0.3)
    model = tasks.Seq2SeqLM.from_preset(tmp_path, encoder_sequence_length=12, decoder_sequence_length=9)
    x = model.preprocessor.generate_preprocess([*SOURCES[:5], "w1"])
    model = tasks.T5Seq2SeqLM(model.backbone)
    model.compile(sampler="greedy")
    found = model.generate(x, stop_token_ids=[1])
    source, mask = (torch.tensor(x[f"encoder_{name}"]).long() for name in ("token_ids", "padding_mask"))
    options = {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0, "max_length": 9, "do_sample": False}
    theirs = reference.generate(input_ids=source, attention_mask=mask, **options).numpy()
    ours = np.where(found["decoder_padding_mask"], found["decoder_token_ids"], 0)[:, : theirs.shape[1]]
    assert len(np.unique(ours)) > 5 and ours.tolist() == theirs.tolist()


def test_without_a_preprocessor_ids_are_given_and_returned(trained):
    model = tasks.T5Seq2SeqLM(trained.backbone)
    model.compile(sampler="greedy")
    x = trained.preprocessor.generate_preprocess(SOURCES[:3])
    left = {**x, **{name: np.roll(x[name], 2, axis=1) for name in ("decoder_token_ids", "decoder_padding_mask")}}
    for inputs in (x, left):
        found = model.generate(inputs, stop_token_ids=[1])
        assert trained.preprocessor.generate_postprocess(found) == TARGETS[:3]
    with pytest.raises(ValueError, match="token ids must be from 0 to 96, not 97"):
        model.fit({**x, "decoder_token_ids": x["decoder_token_ids"] + 97}, x["decoder_token_ids"], verbose=0)


def test_what_is_wrong_is_said():
    model = build()
    model.compile(sampler="beam")
    with pytest.raises(ValueError, match="learns from pairs of texts"):
        model.fit({"encoder_text": SOURCES}, verbose=0)
    with pytest.raises(ValueError, match="Columns of different length: text 1 32, text 2 31"):
        model.fit((SOURCES, TARGETS[:-1]), verbose=0)
    with pytest.raises(ValueError, match="Prompt 0 has .* tokens, which leaves nothing of 8"):
        model.generate({"encoder_text": ["w1"], "decoder_text": ["w1 w2 w3 w4 w5 w6"]})
    with pytest.raises(ValueError, match="needs whole rows"):
        next(model.stream("w1"))
    with pytest.raises(ValueError, match="leaves no room for text: use 2 or more"):
        tasks.T5Seq2SeqLMPreprocessor(TOKENIZER, 12, 1)
    with pytest.raises(TypeError, match="needs an encoder and a decoder, which a BertBackbone does not have"):
        tasks.Seq2SeqLM.for_backbone(garden.BertBackbone)
    with pytest.raises(TypeError, match="which a T5Backbone does not have"):
        tasks.MaskedLM.for_backbone(garden.T5Backbone)


def test_a_preset_of_the_task_comes_back(trained, tmp_path):
    trained.compile(sampler="greedy")
    trained.save_to_preset(tmp_path / "it")
    for again in (
        keras_hub.models.Seq2SeqLM.from_preset(str(tmp_path / "it")),
        tasks.Seq2SeqLM.from_preset(tmp_path / "it"),
    ):
        assert type(again) is tasks.T5Seq2SeqLM
        lengths = again.preprocessor.encoder_sequence_length, again.preprocessor.decoder_sequence_length
        assert lengths == (12, 8)
        again.compile(sampler="greedy")
        assert again.generate(SOURCES[:3]) == TARGETS[:3]


def test_labels_are_smoothed_as_in_tensor2tensor():
    rng = np.random.default_rng(0)
    scores, y = rng.normal(size=(2, 3, 7)).astype("float32"), rng.integers(0, 7, (2, 3))
    logs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    q = np.full(scores.shape, 0.1 / 6)
    np.put_along_axis(q, y[..., None], 0.9, axis=-1)
    expected = (q * (np.log(q) - logs)).sum(-1)
    weight = np.array([[1, 1, 0], [1, 0, 0]], "float32")
    loss = tasks.SmoothedCrossentropy(0.1)
    assert np.isclose(float(loss(y, scores, sample_weight=weight)), (expected * weight).sum() / 3, atol=1e-6)
    plain = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    assert np.isclose(float(tasks.SmoothedCrossentropy(0.0)(y, scores)), float(plain(y, scores)), atol=1e-6)
    with pytest.raises(ValueError, match="label_smoothing=1 has to be"):
        tasks.SmoothedCrossentropy(1)
    model = build(dropout=0.0)
    model.compile(loss=loss, optimizer=keras.optimizers.Adam(5e-3))
    losses = model.fit((SOURCES, TARGETS), batch_size=16, epochs=5, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


def test_a_prompt_is_read_and_its_labels_are_written(trained):
    """Each label's score is what the decoder gives its tokens one after the other, and no end."""
    classifier = tasks.PromptClassifier(trained, "{text} nothing", [f"w{i} w{i}" for i in range(4)])
    examples = [f"w{i} w{i * 3}" for i in (2, 0, 3)]
    assert classifier.predict_labels(examples)[0] == ["w2 w2", "w0 w0", "w3 w3"]
    x, y, _ = tasks.T5Seq2SeqLMPreprocessor(TOKENIZER, 24, 8)(
        ([f"{examples[0]} nothing"] * 4, [f"w{i} w{i}" for i in range(4)])
    )
    logs = keras.ops.log_softmax(keras.Model.predict_on_batch(trained, x), axis=-1)
    logs = np.take_along_axis(keras.ops.convert_to_numpy(logs), y[..., None], axis=-1)[..., 0]
    counts = [len(TOKENIZER(f"w{i} w{i}")) for i in range(4)]
    expected = [row[:count].sum() for row, count in zip(logs, counts, strict=True)]
    assert np.abs(classifier.scores(examples[:1])[0] - expected).max() < 1e-4
