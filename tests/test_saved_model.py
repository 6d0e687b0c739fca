"""A SavedModel of every family answers as its model does. What its tokenizer says is the business of other tests."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from families import ENCODERS, FAMILIES, gap

from garden import tasks

TEXTS = ["w1 w2 w90", "w3", "", "unknown 字 👍"]


class Rows(tf.Module):
    """Knows the rows of TEXTS by heart. The form in its place takes most of the time of an export."""

    def __init__(self, tokenizer, sequence_length, truncate):
        super().__init__()
        packed = tasks.TextClassifierPreprocessor(tokenizer, sequence_length, truncate)(TEXTS)
        self.rows = {name: tf.constant(array) for name, array in packed.items()}
        places = tf.lookup.KeyValueTensorInitializer(TEXTS, list(range(len(TEXTS))), tf.string, tf.int32)
        self.places = tf.lookup.StaticHashTable(places, -1)

    def __call__(self, texts, *_):
        return {name: tf.gather(rows, self.places.lookup(texts)) for name, rows in self.rows.items()}


def test_an_embedder_serves_no_pairs_as_one_text(tmp_path, monkeypatch):
    monkeypatch.setattr("garden.tasks.saved_model.TensorFlowForm", Rows)
    bert = next(row for row in FAMILIES if row.backbone.__name__ == "BertBackbone")
    bert.write_vocabulary(tmp_path, 97)
    tokenizer = bert.backbone.tokenizer_cls.from_files(tmp_path, {"lowercase": False})
    preprocessor = tasks.BertTextEmbedderPreprocessor(tokenizer, sequence_length=8)
    model = tasks.BertTextEmbedder(bert.build(num_layers=1), preprocessor)
    if keras.config.backend() == "torch":
        with pytest.raises(RuntimeError, match="Keras writes no SavedModel from PyTorch"):
            tasks.export_saved_model(model, tmp_path / "served")
        return
    tasks.export_saved_model(model, tmp_path / "served")
    served = tf.saved_model.load(str(tmp_path / "served"))
    assert not hasattr(served, "serve_pairs")
    assert gap(served.serve(tf.constant(TEXTS)), model.embed(TEXTS)) <= 1e-5


@pytest.mark.parametrize("family", ENCODERS, ids=lambda family: family.backbone.__name__)
def test_strings_in_and_the_same_logits_out(family, tmp_path, monkeypatch):
    monkeypatch.setattr("garden.tasks.saved_model.TensorFlowForm", Rows)
    cls = tasks.TextClassifier.for_backbone(family.backbone)
    family.write_vocabulary(tmp_path, 97)
    tokenizer = family.backbone.tokenizer_cls.from_files(tmp_path, {"lowercase": False} if family.word_piece else {})
    model = cls(family.build(num_layers=1), 3, cls.preprocessor_cls(tokenizer, sequence_length=8))
    if keras.config.backend() == "torch":
        with pytest.raises(RuntimeError, match="load and export it under KERAS_BACKEND=tensorflow"):
            tasks.export_saved_model(model, tmp_path / "served")
        return
    if not family.word_piece:
        with pytest.raises(ValueError, match="can hold WordPiece only, not \w+Tokenizer"):
            tasks.export_saved_model(model, tmp_path / "served")
        return
    rng = np.random.default_rng(0)
    for variable in model.weights:
        variable.assign(rng.normal(0.0, 2.5 * family.spread, variable.shape))
    tasks.export_saved_model(model, tmp_path / "served")
    served = tf.saved_model.load(str(tmp_path / "served"))
    theirs = served.serve(tf.constant(TEXTS[::-1])).numpy()
    assert gap(theirs, model.predict(TEXTS[::-1], verbose=0)) <= 1e-5
    assert np.abs(theirs[0] - theirs[1]).max() > 1e-3
