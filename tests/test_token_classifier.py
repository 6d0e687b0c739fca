"""Tagging: words to labels and back, on words, characters, datasets and raw strings, and what is refused."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import transformers
from families import gap
from keras import ops
from material import chinese_vocabulary, english_vocabulary, tagged_news

import garden
from benchmarks.tagging import named_sentences, small_bert
from garden import tasks
from garden.tasks import bio_labels, entity_scores
from garden.tasks.words import windows, word_pieces, word_spans

VOCABULARY = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *"ada love ##lace met tu ##ring in paris . 李 明 在 北 京".split(),
]
LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
ROWS = [
    ["👍🏽", "Ada", "Lovelace", "met", "Turing"],
    ["in", "Paris", "."],
    ["Turing"],
    ["李", "明", "在", "北", "京", "."],
]
TAGS = [["O", "B-PER", "I-PER", "O", "B-PER"], ["O", "B-LOC", "O"], ["B-PER"], "B-PER I-PER O B-LOC I-LOC O".split()]


def small_tagger(sequence_length=12, seed=0, dtype=None, split="words", pad_to_multiple_of=None, **arguments):
    keras.utils.set_random_seed(seed)
    backbone = garden.BertBackbone(len(VOCABULARY), 1, 2, 16, 32, max_sequence_length=16, dtype=dtype)
    tokenizer = garden.BertTokenizer(VOCABULARY, lowercase=True)
    preprocessor = tasks.BertTokenClassifierPreprocessor(
        tokenizer, sequence_length, split, pad_to_multiple_of=pad_to_multiple_of
    )
    return tasks.BertTokenClassifier(backbone, **{"preprocessor": preprocessor, "class_names": LABELS} | arguments)


def trained(**arguments):
    made = small_tagger(**arguments)
    made.compile(keras.optimizers.Adam(2e-2))
    made.fit(ROWS * 4, TAGS * 4, batch_size=16, epochs=40, verbose=0)
    return made


@pytest.fixture(scope="module")
def tagger():
    return trained()


@pytest.fixture(scope="module")
def crf_tagger():
    return trained(crf=True)


@pytest.fixture(params=["softmax", "crf"])
def either(request):
    return request.getfixturevalue("tagger" if request.param == "softmax" else "crf_tagger")


# Words and their pieces


def test_ids_and_words_equal_the_reference():
    ours = garden.BertTokenizer(english_vocabulary(), lowercase=True)
    theirs = transformers.BertTokenizerFast(str(english_vocabulary()), do_lower_case=True)
    rows = [
        ["Ada", "Lovelace's", "naïveté", "U.S.", "cafe\u0301", "Ｐａｒｉｓ", "北京", "New York", "👍🏽", "don't"],
        ["[MASK]", "##s", "unaffable", "1,024", "\u00a0x", "x\u200by"],
        [],
        list("王 小明a1"),
    ]
    for row, (ids, words) in zip(rows, word_pieces(rows, ours), strict=True):
        expected = theirs(row, is_split_into_words=True, add_special_tokens=False)
        kept = [i for i, word in enumerate(words) if word in expected.word_ids()]  # the reference drops the blank
        assert [ids[i] for i in kept] == expected["input_ids"]
        assert [words[i] for i in kept] == expected.word_ids()
        assert sorted(set(words)) == list(range(len(row)))


def test_a_word_without_pieces_is_the_unknown_token():
    tokenizer = garden.BertTokenizer(VOCABULARY, lowercase=True)
    (ids, words), (blank, _) = word_pieces([["\u200b", "Lovelace", " ", "\ufe0f"], [" "]], tokenizer)
    assert ids == [1, 6, 7, 1, 1] and words.tolist() == [0, 1, 1, 2, 3] and blank == [1]


def test_words_that_begin_with_a_mark_are_known_by_the_blank_before_them():
    # A byte-level tokenizer writes the blank before a word into its first piece, and has pieces of the blank alone.
    import tokenizers as rust

    class ByteLevel(garden.BertTokenizer):
        def _recipe(self, tokens):
            made = rust.Tokenizer(rust.models.BPE({token: i for i, token in enumerate(tokens)}, [("Ġ", "b")]))
            made.pre_tokenizer = rust.pre_tokenizers.ByteLevel(add_prefix_space=False)
            return made

    tokenizer = ByteLevel([*VOCABULARY[:5], "a", "b", "c", "Ġ", "Ġb"])
    ids, words = word_pieces([["ab", "bc", "ca"]], tokenizer)[0]
    assert [tokenizer.id_to_token(i) for i in ids] == ["a", "b", "Ġb", "c", "Ġ", "c", "a"]
    assert words.tolist() == [0, 0, 1, 1, 2, 2, 2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ada's café.", ["Ada", "'", "s", "café", "."]),
        ("cafe\u0301 ❤\ufe0f!", ["cafe\u0301", "❤\ufe0f", "!"]),
        ("👩‍👩‍👧 👍🏽\u3000Ｐａｒｉｓ。", ["👩‍👩‍👧", "👍🏽", "Ｐａｒｉｓ", "。"]),
        ("李明2024年", ["李", "明", "2024", "年"]),
        ("\u200b  ", []),
        ("", []),
    ],
)
def test_spans_of_words_are_exact(text, expected):
    assert [text[start:end] for start, end in word_spans(text)] == expected


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8, 50])
def test_windows_give_every_word_once_and_to_the_widest_context(width):
    words = np.repeat(np.arange(12), [1, 3, 1, 1, 2, 4, 1, 1, 1, 6, 1, 1])
    ids = list(range(len(words)))
    found = windows(ids, words, width)
    assert sorted(int(mark) for _, marks in found for mark in marks if mark >= 0) == list(range(12))
    assert max(len(part) for part, _ in found) <= width
    for part, marks in found:
        for place in np.flatnonzero(marks >= 0):
            piece = part[place]
            assert words[piece] == marks[place] and (piece == 0 or words[piece - 1] != words[piece])
            context = min(place, len(part) - 1 - place)
            others = [min(piece - p[0], p[-1] - piece) for p, _ in found if p[0] <= piece <= p[-1]]
            assert context == max(others)


def test_labels_stand_at_first_pieces_only():
    preprocessor = small_tagger().preprocessor
    x, y, weights = preprocessor([["Ada", "Lovelace", "met"], ["Turing"]], [[1, 2, 0], [3]], np.array([1.0, 0.5]))
    assert x["token_ids"][0].tolist() == [2, 5, 6, 7, 8, 3, 0, 0, 0, 0, 0, 0]
    assert y[:, :6].tolist() == [[0, 1, 2, 0, 0, 0], [0, 3, 0, 0, 0, 0]]
    assert weights[:, :6].tolist() == [[0, 1, 1, 0, 1, 0], [0, 0.5, 0, 0, 0, 0]]
    assert not weights[:, 6:].any() and set(preprocessor([["Ada"]])) == {"token_ids", "segment_ids", "padding_mask"}


# Training


def test_the_loss_is_the_mean_over_words_whatever_is_padded():
    model = small_tagger(dropout=0.0)
    rows, tags = ROWS[:2], TAGS[:2]
    x, y, weights = model.preprocessor(rows, [[LABELS.index(tag) for tag in row] for row in tags])
    logits = ops.convert_to_numpy(model(x)).astype("float64")
    log_softmax = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = -np.take_along_axis(log_softmax, y[:, :, None], axis=-1)[:, :, 0][weights > 0].mean()
    assert abs(model.evaluate(rows, tags, verbose=0)[0] - expected) <= 1e-5
    model.preprocessor.sequence_length = 16
    assert abs(model.evaluate(rows, tags, verbose=0)[0] - expected) <= 1e-5
    model.preprocessor.sequence_length = 4  # [CLS], two pieces, [SEP]: four words are left of eight
    assert model.preprocessor(rows, [[0] * 5, [0] * 3])[2].sum() == 4


def test_the_loss_of_a_crf_is_the_mean_over_words():
    model = small_tagger(crf=True)
    model.sequence_model.transitions.assign(np.arange(25.0).reshape(5, 5) / 10)
    x, y, weights = model.preprocessor(ROWS, [[LABELS.index(tag) for tag in row] for row in TAGS])
    likelihood = model.sequence_model.log_likelihood(model(x), y, weights > 0)
    expected = -ops.convert_to_numpy(likelihood).sum() / 15
    assert abs(model.evaluate(ROWS, TAGS, verbose=0)[0] - expected) <= 1e-5


def test_fit_learns_words_and_predicts_them_in_order(either):
    assert either.evaluate(ROWS, TAGS, verbose=0)[1] == 1.0
    assert either.predict_labels(ROWS) == TAGS
    assert either.predict_labels(ROWS[::-1], batch_size=1) == TAGS[::-1]
    assert either.predict_labels([[], *ROWS[1:3], []]) == [[], *TAGS[1:3], []] and either.predict_labels([]) == []


def test_a_crf_learns_its_tables(crf_tagger):
    assert all(np.abs(v.numpy()).max() > 0 for v in crf_tagger.sequence_model.weights)
    # B-PER goes to I-PER, never to I-LOC.
    transitions = crf_tagger.sequence_model.transitions.numpy()
    assert transitions[1, 2] > transitions[1, 4]


def test_every_kind_of_input_gives_the_same(tagger):
    expected = tagger.evaluate(ROWS, TAGS, verbose=0)
    ids = [[LABELS.index(tag) for tag in row] for row in TAGS]
    dataset = tf.data.Dataset.from_tensor_slices((tf.ragged.constant(ROWS), tf.ragged.constant(ids))).batch(4)
    assert np.allclose(tagger.evaluate(dataset, verbose=0), expected, atol=1e-6)
    arrays = [np.array(row, dtype=object) for row in ROWS]
    assert np.allclose(tagger.evaluate(arrays, [np.array(row) for row in ids], verbose=0), expected, atol=1e-6)
    in_bytes = [tuple(word.encode() for word in row) for row in ROWS]
    assert tagger.predict_labels(in_bytes) == TAGS
    logits = tagger.predict(ROWS, verbose=0)
    assert (
        gap(tagger.predict(tf.data.Dataset.from_tensor_slices(tf.ragged.constant(ROWS)).batch(3), verbose=0), logits)
        <= 1e-5
    )
    packed = tagger.preprocessor(ROWS, ids)
    assert gap(tagger(packed[0]), logits) <= 1e-5
    raw = small_tagger(preprocessor=None)
    raw.set_weights(tagger.get_weights())
    assert np.allclose(raw.evaluate(packed[0], packed[1], sample_weight=packed[2], verbose=0), expected, atol=1e-6)
    raw.fit(packed[0], packed[1], sample_weight=packed[2], verbose=0)


def test_strings_are_words_or_characters():
    model = small_tagger(split="characters", pad_to_multiple_of=4)
    model.compile(keras.optimizers.Adam(2e-2))
    texts, tags = ["李明在北京.", "北京"], [TAGS[3], ["B-LOC", "I-LOC"]]
    losses = model.fit(texts * 4, tags * 4, batch_size=8, epochs=20, verbose=0, validation_data=(texts, tags))
    assert losses.history["val_loss"][-1] < losses.history["val_loss"][0]
    assert model.predict_labels(texts) == tags
    data = tf.data.Dataset.from_tensor_slices((texts, tf.ragged.constant([[1, 2, 0, 3, 4, 0], [3, 4]]))).batch(2)
    assert np.allclose(model.evaluate(data, verbose=0), model.evaluate(texts, tags, verbose=0), atol=1e-6)
    assert [len(row) for row in model.predict_labels(["a b", "ab", "👍🏽"])] == [3, 2, 2]
    assert [len(row) for row in small_tagger().predict_labels(["a b", "ab", "👍🏽"])] == [2, 1, 1]


@pytest.mark.parametrize("crf", [False, True])
def test_half_precision_trains_and_stays_finite(crf):
    model = small_tagger(dtype="mixed_float16", crf=crf)
    losses = model.fit([*ROWS, []], [*TAGS, []], epochs=2, verbose=0).history["loss"]
    assert np.isfinite(losses).all()
    assert model.fit([[]] * 5, [[]] * 5, verbose=0).history["loss"] == [0.0]  # nothing counts
    bare = small_tagger(dtype="bfloat16", crf=crf)
    assert all(0 < entity.score <= 1 for found in bare.predict_entities(["Ada in Paris"]) for entity in found)


# Prediction


def test_entities_have_exact_offsets(either):
    texts = ["👍🏽 Ada  Lovelace met\u3000Turing", "", "李明\u200b在北京.", " in Paris."]
    found = either.predict_entities(texts)
    assert [[entity.text for entity in row] for row in found] == [
        ["Ada  Lovelace", "Turing"],
        [],
        ["李明", "北京"],
        ["Paris"],
    ]
    assert [[entity.label for entity in row] for row in found] == [["PER", "PER"], [], ["PER", "LOC"], ["LOC"]]
    for text, row in zip(texts, found, strict=True):
        assert all(text[e.start : e.end] == e.text and 0.5 < e.score <= 1 for e in row)
    assert (found[2][1].start, found[2][1].end) == (4, 6)


def test_long_rows_have_a_label_for_every_word(either):
    words, tags = ROWS[0] * 8, TAGS[0] * 8
    found = either.predict_labels([words, ROWS[1]])
    assert len(found[0]) == 40 and found[1] == TAGS[1]
    assert np.mean([label == tag for label, tag in zip(found[0], tags, strict=True)]) > 0.8
    text = " ".join(words)
    assert all(text[e.start : e.end] == e.text for e in either.predict_entities([text])[0])
    assert either.predict(["Ada " * 500], verbose=0).shape == (1, 12, 5)


def test_scores_of_a_crf_are_the_marginals_of_the_whole_row(crf_tagger):
    words = ROWS[0]
    x, _, weights = crf_tagger.preprocessor([words], [[0] * 5])
    marginals = ops.convert_to_numpy(crf_tagger.sequence_model.marginals(crf_tagger(x), weights > 0))[weights > 0]
    ((person, other),) = crf_tagger.predict_entities([" ".join(words)])
    assert abs(person.score - (marginals[1, 1] + marginals[2, 2]) / 2) <= 1e-5
    assert abs(other.score - marginals[4, 1]) <= 1e-5


def test_saved_taggers_come_back_equal(either, tmp_path):
    expected = ops.convert_to_numpy(either(either.preprocessor(ROWS)))
    either.save_to_preset(tmp_path / "one")
    one = tasks.TokenClassifier.from_preset(tmp_path / "one")
    one.save_to_preset(tmp_path / "two")
    either.save(tmp_path / "model.keras")
    again = [
        one,
        tasks.BertTokenClassifier.from_preset(tmp_path / "two"),
        keras.saving.load_model(tmp_path / "model.keras"),
    ]
    for model in again:
        assert type(model) is tasks.BertTokenClassifier and model.class_names == LABELS and model.crf == either.crf
        assert gap(model(model.preprocessor(ROWS)), expected) <= 1e-6
        for mine, theirs in zip(model.weights, either.weights, strict=True):
            assert np.array_equal(mine.numpy(), theirs.numpy())
    again[-1].fit(ROWS, TAGS, verbose=0)
    assert one.predict_labels(ROWS) == TAGS
    settings = tasks.TokenClassifier.from_preset(tmp_path / "one", split="characters", sequence_length=8).preprocessor
    assert (settings.split, settings.sequence_length) == ("characters", 8)


def test_another_head_is_fresh_and_says_so(tagger, tmp_path):
    tagger.save_to_preset(tmp_path)
    for given, reason in (({"num_classes": 3}, "num_classes=5, not 3"), ({"crf": True}, "crf=False, not True")):
        with pytest.warns(UserWarning, match=f"{reason}: the head is fresh"):
            model = tasks.TokenClassifier.from_preset(tmp_path, **given)
        assert model.num_classes == given.get("num_classes", 5) and model.crf == given.get("crf", False)
        assert model.class_names == (None if "num_classes" in given else LABELS)
    with pytest.warns(UserWarning, match="holds no TextClassifier: the head is fresh"):
        tasks.TextClassifier.from_preset(tmp_path, num_classes=5, preprocessor=None)
    with pytest.raises(ValueError, match="How many classes"):
        tasks.TextClassifier.from_preset(tmp_path, preprocessor=None)


@pytest.mark.parametrize(
    ("published", "task", "other"),
    [
        (transformers.BertForSequenceClassification, tasks.TokenClassifier, tasks.TextClassifier),
        (transformers.BertForTokenClassification, tasks.TextClassifier, tasks.TokenClassifier),
    ],
)
def test_a_published_head_is_read_by_its_own_task_only(published, task, other, tmp_path):
    sizes = dict(vocab_size=19, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    names = {0: "O", 1: "B-PER", 2: "I-PER"}
    published(transformers.BertConfig(**sizes, max_position_embeddings=16, id2label=names)).save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", "utf-8")
    own = other.from_preset(tmp_path)
    assert (
        own.class_names == list(names.values())
        and own.load_report.loaded[f"{own.head.name}/logits/kernel"] == "classifier.weight"
    )
    with pytest.warns(
        UserWarning, match=f"fresh and in need of training: .*{'token_' * (task is tasks.TokenClassifier)}classifier"
    ):
        stranger = task.from_preset(tmp_path, num_classes=3)
    assert stranger.load_report.ignored["classifier.weight"] == "a head of another task"
    with pytest.raises(ValueError, match="How many classes"):
        task.from_preset(tmp_path)


# What is refused


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ([["Ada", "met"]], [["O"]], "Row 0 has 2 words but 1 labels: give one label a word"),
        ([["Ada"], ["Ada"]], [["O"], ["O", "O"]], "Row 1 has 1 words but 2 labels"),
        (["Ada met"], [list("OOOOOOO")], "Row 0 has 2 words but 7 labels.*split='characters'"),
        ([["Ada"]], ["O", "O"], "Columns of different length: 1 texts, 2 rows of labels"),
        ([["Ada"], ["Ada"]], [0, 1], "Row 0 has 1 words but no list of labels"),
        ([["Ada"]], [["B-ORG"]], "Row 0 has the label 'B-ORG', which is none of O, B-PER, I-PER, B-LOC, I-LOC"),
        ([["Ada"]], [[5]], "labels must be whole numbers from 0 to 4, not 5"),
        ([["Ada"]], [[-100]], "labels must be whole numbers from 0 to 4, not -100"),
        ([["Ada"]], [[0.5]], "labels must be whole numbers from 0 to 4, not 0.5"),
        ([["Ada"]], [[None]], "labels must be whole numbers"),
        ([["Ada", ""]], [["O", "O"]], "Row 0, word 1 is empty: drop it together with its label"),
        ([["Ada", None]], [["O", "O"]], "Row 0, word 1 is None, not a string"),
        ([["Ada"], float("nan")], [["O"], ["O"]], "Row 1 is nan, not a list of words or a string"),
        ([[b"\xff"]], [["O"]], "Row 0, word 0 is not UTF-8"),
        ([["\ud83d"]], [["O"]], "half of a surrogate pair"),
        ([""], [["O"]], "Row 0 has 0 words but 1 labels"),
        ([], [], "the input is empty"),
    ],
)
def test_bad_samples_are_one_clear_error(tagger, x, y, message):
    for method in (tagger.fit, tagger.evaluate):
        with pytest.raises(ValueError, match=message):
            method(x, y, verbose=0)


def test_bad_labels_in_a_dataset_are_refused(tagger):
    for ids, message in (
        ([[0, 9]], "labels must be whole numbers"),
        ([[0]], "2 words but 1 labels"),
        ([[0, -1]], "no ids"),
    ):
        data = tf.data.Dataset.from_tensor_slices((tf.ragged.constant([["Ada", "met"]]), tf.ragged.constant(ids)))
        with pytest.raises(Exception, match=message):
            tagger.fit(data.batch(1), verbose=0)


def test_settings_that_cannot_work_are_refused(tagger):
    with pytest.raises(ValueError, match="split='letters' is no way to split a string: take words or characters"):
        small_tagger(split="letters")
    with pytest.raises(ValueError, match="sequence_length=2 leaves no room for text"):
        small_tagger(sequence_length=2)
    with pytest.raises(ValueError, match="sequence_length=17 is more than this backbone's 16 positions"):
        small_tagger(sequence_length=17)
    with pytest.raises(ValueError, match="num_classes=3 but class_names has 5"):
        small_tagger(num_classes=3)
    with pytest.raises(ValueError, match="'N' is no label of an entity"):
        small_tagger(class_names=["N", "V"]).predict_entities(["Ada"])
    with pytest.raises(ValueError, match="has no preprocessor, so it cannot read words"):
        small_tagger(preprocessor=None).predict_labels([["Ada"]])
    with pytest.raises(ValueError, match="the loss is that of the CRF"):
        small_tagger(crf=True).compile(loss="mse")
    if keras.config.backend() != "torch":  # there Keras writes none at all
        with pytest.raises(ValueError, match="takes words, not texts"):
            tasks.export_saved_model(tagger, "nowhere")
    with pytest.raises(garden.presets.CheckpointError, match="crf/transitions has no name in that format"):
        garden.presets.export_to_transformers(small_tagger(crf=True), "nowhere")


def test_plain_tags_need_no_names():
    model = small_tagger(class_names=None, num_classes=3)
    model.fit([["Ada", "met"]], [[2, 0]], verbose=0)
    assert set(model.predict_labels([["Ada", "met"]])[0]) <= {"0", "1", "2"}


# A real text


def test_a_small_bert_learns_chinese_names():
    # The names of the first sentences, from scratch; a tagger that knows the commonest label only scores 0.
    keras.utils.set_random_seed(0)
    sentences = named_sentences(tagged_news().read_text("utf-8"))[:200]
    assert sentences[1][0].startswith("中共中央总书记、国家主席江泽民")
    texts = [text for text, _ in sentences]
    tags = [bio_labels(entities, len(text)) for text, entities in sentences]
    assert tags[1][:4] == ["B-ORG", "I-ORG", "I-ORG", "I-ORG"] and tags[1][12:15] == ["B-PER", "I-PER", "I-PER"]
    occurring = {character for text in texts for character in text}
    vocabulary = [
        token for token in chinese_vocabulary().read_text("utf-8").split("\n") if token[:1] in {"[", *occurring}
    ]
    tagger = small_bert(vocabulary, sequence_length=48, num_layers=1, hidden_dim=64)
    tagger.compile(keras.optimizers.Adam(3e-3))
    tagger.fit(texts, tags, batch_size=8, epochs=10, verbose=0)
    scores = entity_scores(tags, tagger.predict_labels(texts))
    assert scores.micro.support == 269 and scores.micro.f1 > 0.3
