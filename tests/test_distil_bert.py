"""What DistilBERT has of its own: its names for widths, its head, and where it drops."""

import keras
import numpy as np
import pytest
import transformers
from families import FAMILIES, inputs

import garden

DISTIL = next(row for row in FAMILIES if row.backbone is garden.DistilBertBackbone)


def test_dim_is_the_models_width_and_hidden_dim_the_feed_forwards(tmp_path):
    DISTIL.save_reference(tmp_path, transformers.DistilBertModel)
    backbone = garden.DistilBertBackbone.from_preset(tmp_path)
    assert (backbone.hidden_dim, backbone.intermediate_dim) == (60, 70)


def test_the_head_cuts_what_is_negative():
    classifier = garden.tasks.TextClassifier.for_backbone(garden.DistilBertBackbone)(DISTIL.build(), num_classes=2)
    classifier.pooler.dense.kernel.assign(np.zeros((60, 60)))
    classifier.pooler.dense.bias.assign(np.full(60, -1.0))
    x = DISTIL.inputs()
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(classifier(x)), np.zeros((3, 2)))
    assert classifier.dropout == 0.2


def test_nothing_is_dropped_from_what_attention_adds():
    block = DISTIL.build(dropout=0.5, attention_dropout=0.0).blocks[0]
    block.feedforward.output_dense.kernel.assign(np.zeros((70, 60)))
    x = np.random.default_rng(0).normal(size=(1, 7, 60)).astype("float32")
    silent, dropping = (keras.ops.convert_to_numpy(block(x, training=training)) for training in (False, True))
    np.testing.assert_allclose(silent, dropping, atol=1e-6)


def test_it_reads_no_segments():
    assert set(DISTIL.build().input) == {"token_ids", "padding_mask"}
    with pytest.raises(TypeError, match="NextSentence needs a pooled output, which a DistilBertBackbone does not have"):
        garden.tasks.NextSentence.for_backbone(garden.DistilBertBackbone)
    preprocessor = garden.tasks.DistilBertTextClassifierPreprocessor(
        garden.DistilBertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good"]), sequence_length=4
    )
    assert set(preprocessor(["good"])) == {"token_ids", "padding_mask"}
    assert set(inputs()) - set(DISTIL.inputs()) == {"segment_ids"}
