"""Tasks on raw input of every kind, saved and loaded, and what they refuse."""

import errno
import os

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf
from families import gap

import garden
from garden import tasks
from garden.tasks.inputs import shuffled

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film", "a", "the", "##s", "好", "坏", "电", "影"]
TEXTS = ["a good film", "a bad film", "good good", "the bads", "好电影", "坏电影 👍"] * 4
LABELS = np.array([1, 0, 1, 0, 1, 0] * 4)


def small_task(task=tasks.TextClassifier, sequence_length=8, **arguments):
    keras.utils.set_random_seed(0)
    backbone = garden.BertBackbone(len(WORDS), 2, 2, 16, 32, max_sequence_length=16)
    cls = task.for_backbone(garden.BertBackbone)
    preprocessor = cls.preprocessor_cls(garden.BertTokenizer(WORDS, lowercase=True), sequence_length)
    return cls(backbone, preprocessor=preprocessor, **arguments)


def classifier(**arguments):
    made = small_task(**{"class_names": ["bad", "good"], **arguments})
    made.compile(keras.optimizers.Adam(1e-2), made.loss, metrics=["accuracy"])
    return made


def test_fit_learns_from_strings_twice_and_keeps_its_names(tmp_path):
    model = classifier()
    model.fit(TEXTS, LABELS, batch_size=8, epochs=8, verbose=0)
    model.fit(TEXTS, LABELS, batch_size=8, epochs=8, verbose=0)
    assert model.evaluate(TEXTS, LABELS, verbose=0)[1] == 1.0
    labels, probabilities = model.predict_labels(["a good film", "a bad film"])
    assert labels == ["good", "bad"] and probabilities.shape == (2, 2)
    assert np.allclose(probabilities.sum(-1), 1)
    # save, load, save: with garden's and with KerasHub's loader
    expected = model.predict(TEXTS, verbose=0)
    model.save_to_preset(tmp_path / "one")
    one = tasks.TextClassifier.from_preset(tmp_path / "one")
    one.save_to_preset(tmp_path / "two")
    two = keras_hub.models.TextClassifier.from_preset(str(tmp_path / "two"))
    for restored in (one, two):
        assert type(restored) is tasks.BertTextClassifier and restored.class_names == ["bad", "good"]
        assert gap(restored.predict(TEXTS, verbose=0), expected) <= 1e-6
    model.save(tmp_path / "model.keras")
    assert gap(keras.saving.load_model(tmp_path / "model.keras").predict(TEXTS, verbose=0), expected) <= 1e-6


def test_num_classes_given_again_keeps_a_trained_head(tmp_path):
    model = classifier()
    model.save_to_preset(tmp_path)
    expected = model.predict(TEXTS, verbose=0)
    again = tasks.TextClassifier.from_preset(tmp_path, num_classes=2)
    assert gap(again.predict(TEXTS, verbose=0), expected) <= 1e-6
    with pytest.warns(UserWarning, match="fresh"):
        other = tasks.TextClassifier.from_preset(tmp_path, num_classes=3)
    assert other.predict(TEXTS[:2], verbose=0).shape == (2, 3)


def test_every_kind_of_input_gives_the_same_numbers():
    model = classifier()
    expected = model.predict(TEXTS, verbose=0)
    assert gap(model.predict(np.array(TEXTS), verbose=0), expected) <= 1e-5
    assert gap(model.predict(np.array([t.encode() for t in TEXTS], dtype=object), verbose=0), expected) <= 1e-5
    assert gap(model.predict(tf.data.Dataset.from_tensor_slices(TEXTS).batch(5), verbose=0), expected) <= 1e-5
    assert gap(model(model.preprocessor(TEXTS)), expected) <= 1e-5
    assert gap(model.predict(tf.constant(TEXTS), verbose=0), expected) <= 1e-5
    labelled = tf.data.Dataset.from_tensor_slices((TEXTS, LABELS)).batch(8)
    assert np.allclose(model.evaluate(labelled, verbose=0), model.evaluate(TEXTS, LABELS, batch_size=8, verbose=0))
    ids = model.preprocessor(TEXTS)
    model.preprocessor = None
    assert gap(model.predict(ids, verbose=0), expected) <= 1e-5
    model.fit(ids, LABELS, verbose=0)


def test_pairs_of_texts_are_one_row_with_two_segments():
    model = classifier()
    pairs = (TEXTS, TEXTS[::-1])
    assert model.preprocessor(pairs)["segment_ids"].max() == 1
    model.fit(pairs, LABELS, validation_data=(pairs, LABELS), verbose=0)
    labels, _ = model.predict_labels(pairs, batch_size=5)
    by_hand = model.predict(pairs, verbose=0).argmax(-1)
    assert labels == [model.class_names[i] for i in by_hand]


def test_padding_to_the_longest_row_changes_no_answer():
    model = classifier()
    expected = model.predict(TEXTS, verbose=0)
    model.preprocessor.pad_to_multiple_of = 4
    assert model.preprocessor(["good"])["token_ids"].shape == (1, 4)
    assert gap(model.predict(TEXTS, verbose=0), expected) <= 1e-5


def test_lists_are_shuffled_anew_every_epoch():
    data = shuffled(np.array(TEXTS, object), np.arange(24), None, 24)
    first, second = (next(iter(data))[1].numpy() for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(24)) and (first != second).any()


def test_length_grouped_batches_hold_every_row_once():
    model = classifier()
    texts, labels = [" ".join(["good"] * n) for n in range(1, 31)], np.arange(30)
    data = tasks.length_grouped(texts, labels, tokenizer=model.preprocessor.tokenizer, batch_size=4, seed=0)
    assert len(data) == 8
    rows = [(x.numpy().tolist(), y.numpy().tolist()) for x, y in data]
    assert sorted(label for _, batch in rows for label in batch) == list(range(30))
    assert all(len(text.split()) == label + 1 for x, y in rows for text, label in zip(x, y, strict=True))
    spread = [max(y) - min(y) for _, y in rows]
    assert max(spread) <= 4
    again = [y.numpy().tolist() for _, y in data]
    assert again != [y for _, y in rows]


def test_length_grouped_can_leave_out_a_smaller_last_batch():
    tokenizer = classifier().preprocessor.tokenizer
    for rows, sizes in ((30, [8, 8, 8]), (16, [8, 8]), (5, [5])):
        data = tasks.length_grouped(
            ["good"] * rows, np.arange(rows), tokenizer=tokenizer, batch_size=8, seed=0, drop_remainder=True
        )
        epochs = [[y.numpy() for _, y in data] for _ in range(2)]
        assert len(data) == len(sizes) and [[len(y) for y in epoch] for epoch in epochs] == [sizes, sizes]
        assert len(set(np.concatenate(epochs[0]))) == sum(sizes)
        if rows == 30:
            kept = [set(np.concatenate(epoch).tolist()) for epoch in epochs]
            assert kept[0] != kept[1]


def test_masked_lm_learns_and_fills(tmp_path):
    model = small_task(tasks.MaskedLM)
    model.compile(keras.optimizers.Adam(1e-2), model.loss, weighted_metrics=["accuracy"])
    losses = model.fit(TEXTS * 4, batch_size=16, epochs=6, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    one, two = model.fill_mask("a [MASK] [MASK] 👍", top_k=3)
    assert len(one) == len(two) == 3 and one[0].probability >= one[1].probability >= one[2].probability
    assert one[0].token in WORDS
    model.save_to_preset(tmp_path)
    restored = keras_hub.models.MaskedLM.from_preset(str(tmp_path))
    mine, theirs = (m.fill_mask("a [MASK]")[0] for m in (model, restored))
    assert np.allclose([f.probability for f in mine], [f.probability for f in theirs], atol=1e-6)
    with pytest.raises(ValueError, match=r"no \[MASK\] among the first 16 tokens"):
        model.fill_mask("a film")


def test_next_sentence_trains_on_pairs():
    model = small_task(tasks.NextSentence)
    model.fit((TEXTS, TEXTS[::-1]), LABELS, verbose=0)
    assert model.predict((TEXTS, TEXTS), verbose=0).shape == (24, 2)


def test_saved_model_takes_strings_and_gives_the_same_logits(tmp_path):
    model = classifier()
    if keras.config.backend() == "torch":
        with pytest.raises(RuntimeError, match="load and export it under KERAS_BACKEND=tensorflow"):
            tasks.export_saved_model(model, tmp_path / "served")
        assert not (tmp_path / "served").exists()
        return
    tasks.export_saved_model(model, tmp_path / "served")
    served = tf.saved_model.load(str(tmp_path / "served"))
    assert gap(served.serve(tf.constant(TEXTS)).numpy(), model.predict(TEXTS, verbose=0)) <= 1e-5
    pairs = (TEXTS, TEXTS[::-1])
    theirs = served.serve_pairs(*map(tf.constant, pairs)).numpy()
    assert gap(theirs, model.predict(pairs, verbose=0)) <= 1e-5


# What tasks refuse


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (["good", None], [0, 1], "Row 1 of the batch is None, not a string"),
        (["good", float("nan")], [0, 1], "Row 1 of the batch is nan"),
        (["good", 3], [0, 1], "Row 1 of the batch is 3"),
        ([b"\xff\xfe", "good"], [0, 1], "Row 0 of the batch is not UTF-8"),
        (["good", "bad"], [0, 2], "labels must be whole numbers from 0 to 1, not 2"),
        (["good", "bad"], [0, -1], "labels must be whole numbers from 0 to 1, not -1"),
        (["good", "bad"], [0, 0.5], "labels must be whole numbers from 0 to 1, not 0.5"),
        (["good", "bad"], ["yes", "no"], "labels must be whole numbers from 0 to 1, not "),
        (["good", "bad"], [0], "Columns of different length"),
        ((["good", "bad"], ["good"]), [0, 1], "Columns of different length"),
        ([], [], "the input is empty"),
    ],
)
def test_bad_samples_are_one_clear_error(x, y, message):
    model = classifier()
    for method in (model.fit, model.evaluate):
        with pytest.raises(ValueError, match=message):
            method(x, y, verbose=0)
    assert model.predict(["good"], verbose=0).shape == (1, 2)  # and the model still works


def test_a_single_example_and_empty_text_and_long_text_work():
    model = classifier()
    for texts in (["good"], [""], ["good " * 600], ["👍🏽🇨🇳"]):
        assert np.isfinite(model.predict(texts, verbose=0)).all()
    assert model.predict_labels([])[0] == []


def test_ids_are_checked_before_the_compiled_step():
    model = classifier()
    model.preprocessor = None
    ids = np.array([[2, 5, 3]], "int32")
    good = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    assert model.predict(good, verbose=0).shape == (1, 2)
    for wrong, message in ((ids + 20, "token ids must be from 0 to 14"), (ids - 3, "token ids must be from 0 to 14")):
        with pytest.raises(ValueError, match=message):
            model.predict({**good, "token_ids": wrong}, verbose=0)
    long = {name: np.ones((1, 17), "int32") for name in good}
    with pytest.raises(ValueError, match="17 tokens, more than the 16 positions"):
        model.predict(long, verbose=0)
    with pytest.raises(ValueError, match="not raw text"):
        model.predict(["good"], verbose=0)


def test_labels_in_a_pipeline_are_checked_too():
    model = classifier()
    data = tf.data.Dataset.from_tensor_slices((["good", "bad"], [0, 7])).batch(2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="labels must be whole numbers from 0 to 1"):
        model.fit(data, verbose=0)


def test_settings_that_cannot_work_are_refused():
    with pytest.raises(ValueError, match="sequence_length=17 is more than this backbone's 16 positions"):
        small_task(sequence_length=17, num_classes=2)
    with pytest.raises(ValueError, match="How many classes"):
        small_task()
    with pytest.raises(ValueError, match="num_classes=3 but class_names has 2: no, yes"):
        small_task(num_classes=3, class_names=["no", "yes"])
    tokenizer = garden.BertTokenizer([*WORDS, "more"])
    with pytest.raises(ValueError, match="16 tokens but the backbone's table 15 rows"):
        tasks.BertTextClassifier(classifier().backbone, 2, tasks.BertTextClassifierPreprocessor(tokenizer, 8))


def test_a_full_disk_leaves_the_old_preset(tmp_path, monkeypatch):
    model = classifier()
    model.save_to_preset(tmp_path / "it")
    before = {file: file.read_bytes() for file in (tmp_path / "it").rglob("*") if file.is_file()}
    for variable in model.weights:
        variable.assign(np.zeros(variable.shape))

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(type(model.backbone), "save_weights", full)
    with pytest.raises(OSError, match="No space left"):
        model.save_to_preset(tmp_path / "it")
    assert {file: file.read_bytes() for file in (tmp_path / "it").rglob("*") if file.is_file()} == before
    assert os.listdir(tmp_path) == ["it"]
