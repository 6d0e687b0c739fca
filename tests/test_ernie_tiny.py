"""ernie-tiny's tokenizer against the arithmetic of PaddleNLP's, stated here over the sentencepiece library."""

import collections
import dataclasses
import io
import json
import os
import pickle

import keras
import keras_hub
import material
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
import transformers
from families import gap, reference_outputs
from test_paddle import ERNIE, MODEL, paddle_arrays, write_paddle
from web import send, serve

import garden
from garden import tasks
from garden.ernie_tiny import cut
from garden.presets import CheckpointError, export_to_transformers, find
from garden.presets.formats import read_words

# Longer than five characters, or of one: neither cuts a text. Words with capitals: the dictionary is asked first.
WORDS = {"北京", "北京大学", "大学生", "学生", "北京大学学生", "好", "电影", " 很", "龘龘"}
WORDS |= {"very", "Good", "good", "OK", "ab cd"}
TEXTS = [
    "北京大学生看电影",
    "北京大学学生",
    "Very GOOD, Good and good: OK ok",
    "我爱北京 OK very好 1234.5元",
    "👍🏽 很好 👩‍👩‍👧的电影",
    "a\tb\n\n很 好\u3000电影\u00a0x\u200bx",
    "ＡＢＣ１２３ ㌔ ﬁ café İstanbul ΑΣ",
    "龘龘 龘x鿿𠮷",
    "ab cd ab  cd 很 很",
    "",
    " ",
    " \n\t\u3000 ",
    "[MASKED] <s> </s> <unk>",
    "好" * 300,
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The three files of a small ernie-tiny, and what is in them: words, the tokens by row, the pieces' own library."""
    folder = tmp_path_factory.mktemp("tiny")
    reviews = material.chinese_reviews()[:600]
    counts = collections.Counter(r[i : i + n] for r in reviews for n in (2, 3, 4, 5) for i in range(len(r) - n))
    words = WORDS | {gram for gram, count in counts.items() if count >= 8}
    lines = [*reviews, *material.movie_sentences()[:1500]] + TEXTS[:4] * 5
    cut_lines = (" ".join(published_words(line, words)).lower() for line in lines)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=cut_lines, model_writer=model, vocab_size=1500, character_coverage=0.99, minloglevel=2
    )
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    tokens = [pieces.id_to_piece(i) for i in range(3, pieces.get_piece_size())]
    # Rows of another order than the pieces, some pieces without a row, and a row for what is no piece.
    kept = [token for i, token in enumerate(reversed(tokens)) if i % 7 or token == "▁"]
    rows = ["[PAD]", "<s>", "[UNK]", "[CLS]", "</s>", "[SEP]", *kept, "龘龘", "[MASK]"]
    (folder / "spm_cased_simp_sampled.model").write_bytes(model.getvalue())
    (folder / "vocab.txt").write_text("".join(f"{row}\n" for row in rows), "utf-8")
    (folder / "dict.wordseg.pickle").write_bytes(pickle.dumps(words, 2))
    return folder, words, rows, pieces


@pytest.fixture(scope="module")
def tokenizer(files):
    folder, words, _, _ = files
    return garden.ErnieTinyTokenizer.from_files(folder, words=words)


def published_words(text, words):
    """PaddleNLP's greedy cut: of five characters down to one what the dictionary has, else one; blanks go."""
    found, index = [], 0
    while index < len(text):
        matched = [n for n in (5, 4, 3, 2, 1) if text[index : index + n] in words]
        found.append(text[index : index + (matched[0] if matched else 1)])
        index += matched[0] if matched else 1
    return [word for word in found if word != " "]


def published_ids(text, files):
    _, words, rows, pieces = files
    found = pieces.encode(" ".join(word.lower() for word in published_words(text, words)), out_type=str)
    return [rows.index(piece) if piece in rows else rows.index("[UNK]") for piece in found]


def test_the_dictionary_cuts_the_longest_word_in_its_window():
    def spans(text, words):
        return [text[start:end] for start, end in cut(text, words)]

    assert spans("北京大学生", WORDS) == ["北京大学", "生"]  # greedy, though 大学生 is a word
    assert spans("北京大学学生", WORDS) == ["北京大学", "学生"]  # six characters never match
    assert spans("Good good GOOD", WORDS) == ["Good", " ", "good", " ", *"GOOD"]
    assert spans("我 很好", WORDS) == ["我", " 很", "好"]
    assert spans("学", WORDS) == ["学"] and spans("", WORDS) == [] and spans("👍🏽", WORDS) == ["👍", "🏽"]


def test_hand_counted_ids_and_offsets(tokenizer, files):
    rows = files[2]
    text = "GOOD Good  北京大学"
    encoding = tokenizer.encode(text)
    start = [token.startswith("▁") for token in encoding.tokens]
    # G, O, O, D are four words; Good is one, lower-cased after it was found; blanks are none.
    assert "".join(encoding.tokens[1:-1]) == "▁g▁o▁o▁d▁good▁北京大学"
    assert encoding.ids[0] == rows.index("[CLS]") == 3 and encoding.ids[-1] == rows.index("[SEP]") == 5
    spans = [(0, 1), (1, 2), (2, 3), (3, 4), (5, 9), (11, 15)]
    begins = [offset[0] for offset, begins in zip(encoding.offsets, start, strict=True) if begins]
    assert begins == [begin for begin, _ in spans]
    ends = [encoding.offsets[i][1] for i in range(1, len(start) - 1) if start[i + 1] or i == len(start) - 2]
    assert ends == [end for _, end in spans]


def test_ids_are_those_of_the_published_arithmetic(tokenizer, files):
    texts = [*TEXTS, *material.chinese_reviews()[600:900], *material.movie_sentences()[1500:1700]]
    expected = [published_ids(text, files) for text in texts]
    rows = files[2]
    assert sum(rows.index("[UNK]") in ids for ids in expected) > 50  # the rows that were left out are met
    for text, ids, theirs in zip(texts, tokenizer(texts), expected, strict=True):
        assert ids == theirs, text
    assert tokenizer("") == tokenizer("   ") == tokenizer("\n\t") == []
    # No piece has these characters: they are unknown, but for two in one word, whose name has a row.
    assert tokenizer("龘 鿿") == [rows.index("▁"), rows.index("[UNK]")] * 2
    assert tokenizer("龘龘") == [rows.index("▁"), rows.index("龘龘")]


def test_offsets_lie_in_the_original_text(tokenizer):
    long = "".join(material.chinese_reviews()[600:620])
    for text in [*TEXTS[:6], *material.chinese_reviews()[600:700], long]:
        encoding = tokenizer.encode(text)
        pieces = zip(encoding.tokens[1:-1], encoding.offsets[1:-1], strict=True)
        for piece, (start, end) in pieces:
            word = piece.removeprefix("▁")
            assert not word or word in text[start:end].lower() or not text[start:end].isascii(), (text, piece)
        starts = [start for start, _ in encoding.offsets[1:-1]]
        assert starts == sorted(starts)
        covered = {i for start, end in encoding.offsets for i in range(start, end)}
        assert all(text[i].isspace() or text[i] in "\u200b" for i in set(range(len(text))) - covered), text


def test_special_tokens_pairs_and_text_back(tokenizer, files):
    rows = files[2]
    mask = rows.index("[MASK]")
    assert tokenizer.mask_token_id == mask and tokenizer.pad_token_id == 0
    assert tokenizer("电影[MASK]电影") == tokenizer("电影") + [mask] + tokenizer("电影")
    plain = garden.ErnieTinyTokenizer.from_files(files[0], words=files[1], special_tokens_in_strings=False)
    assert mask not in plain("电影[MASK]") and plain("[MASK]") == published_ids("[MASK]", files)
    pair = tokenizer.encode("电影", "very good")
    first, second = tokenizer("电影"), tokenizer("very good")
    assert pair.ids == [3, *first, 5, *second, 5]
    assert pair.type_ids == [0] * (len(first) + 2) + [1] * (len(second) + 1)
    assert tokenizer.get_vocabulary() == rows and tokenizer.vocabulary_size() == len(rows)
    words = [row for row in rows if row.startswith("▁")][1:3]
    assert tokenizer.detokenize([rows.index(word) for word in words]) == "".join(words).replace("▁", " ").strip()
    upper = garden.ErnieTinyTokenizer.from_files(files[0], words=files[1], lowercase=False)
    assert upper("GOOD") != upper("good") and tokenizer("GOOD") != tokenizer("good")


def test_a_pipeline_gives_what_a_call_gives(tokenizer):
    batches = tf.data.Dataset.from_tensor_slices(TEXTS).batch(5).map(tokenizer, num_parallel_calls=2)
    assert [row for batch in batches for row in batch.to_list()] == tokenizer(TEXTS)


@pytest.fixture(scope="module")
def twin(files, tmp_path_factory):
    """An ERNIE in the layout of Paddle with the three files beside it, and the model that it has to equal."""
    folder, ours = tmp_path_factory.mktemp("paddle") / "it", tmp_path_factory.mktemp("huggingface")
    sizes = {"vocab_size": len(files[2]), "use_task_id": False, "hidden_act": "relu"}
    model = ERNIE.save_reference(ours, transformers.ErnieModel, **sizes)
    arrays = {f"ernie.{name}": array for name, array in paddle_arrays(ours).items()}
    write_paddle(folder, arrays, {**MODEL, **sizes})
    for file in files[0].iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return model, folder


def test_a_folder_of_paddle_and_back(twin, tokenizer, tmp_path):
    backbone = garden.ErnieBackbone.from_preset(twin[1])
    with pytest.warns(UserWarning, match="fresh"):
        classifier = tasks.TextClassifier.from_preset(twin[1], num_classes=2, sequence_length=24)
    found = classifier.preprocessor.tokenizer
    assert type(found) is type(garden.ErnieTokenizer.from_preset(twin[1])) is garden.ErnieTinyTokenizer
    assert found(TEXTS) == tokenizer(TEXTS) and found.lowercase
    x = classifier.preprocessor(TEXTS[:4])
    assert gap(backbone(x)["pooled_output"], reference_outputs(twin[0], x).pooler_output) <= 1e-5
    expected = classifier.predict(TEXTS, verbose=0)
    classifier.save_to_preset(tmp_path / "it")
    for again in (
        tasks.TextClassifier.from_preset(tmp_path / "it").preprocessor.tokenizer,
        garden.ErnieTokenizer.from_preset(tmp_path / "it"),
        keras_hub.tokenizers.Tokenizer.from_preset(str(tmp_path / "it")),
    ):
        assert type(again) is garden.ErnieTinyTokenizer and again(TEXTS) == tokenizer(TEXTS)
    classifier.save(tmp_path / "it.keras")
    assert gap(keras.saving.load_model(tmp_path / "it.keras").predict(TEXTS, verbose=0), expected) <= 1e-6
    export_to_transformers(classifier, tmp_path / "out")
    assert not (tmp_path / "out" / "tokenizer.json").exists()
    assert json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())["do_lower_case"]
    again = tasks.TextClassifier.from_preset(tmp_path / "out", sequence_length=24)
    assert gap(again.predict(TEXTS, verbose=0), expected) <= 1e-6
    if keras.config.backend() != "torch":
        with pytest.raises(ValueError, match="can hold WordPiece only, not ErnieTinyTokenizer"):
            tasks.export_saved_model(classifier, tmp_path / "served")


def test_the_built_in_name_learns_from_raw_strings(twin, files, tmp_path, monkeypatch):
    """PaddleNLP's storage on this machine, with the small model under the published names."""
    monkeypatch.setenv("GARDEN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    served = {f"/ernie_tiny/{file.name}": file.read_bytes() for file in files[0].iterdir()}
    served["/ernie_tiny/ernie_tiny.pdparams"] = (twin[1] / "model_state.pdparams").read_bytes()
    row = find("ernie_tiny_zh")
    sizes = dict(num_layers=3, num_heads=5, hidden_dim=60, intermediate_dim=70, num_segments=3, max_sequence_length=33)
    row = dataclasses.replace(row, vocabulary_size=len(files[2]), **sizes)
    monkeypatch.setattr("garden.presets.location.find", lambda name: row)
    monkeypatch.setattr("garden.presets.load.rows", lambda: {"ernie_tiny_zh": row})

    def answer(request):
        send(request, served.get(request.path, b""), 200 if request.path in served else 404)

    with serve(answer) as site, pytest.warns(UserWarning, match="fresh"):
        monkeypatch.setattr("garden.presets.hubs.PADDLE_NLP", site)
        classifier = tasks.TextClassifier.from_preset("ernie_tiny_zh", num_classes=2, sequence_length=16)
    assert type(classifier.preprocessor.tokenizer) is garden.ErnieTinyTokenizer
    texts, labels = ["电影很好 Good", "不 OK 的大学生"] * 8, [1, 0] * 8
    classifier.compile(optimizer=keras.optimizers.Adam(1e-3))
    classifier.fit(texts, labels, batch_size=8, epochs=8, verbose=0)
    assert np.argmax(classifier.predict(texts[:2], verbose=0), -1).tolist() == [1, 0]


def test_a_folder_with_a_vocabulary_alone_is_still_word_piece(files, tmp_path):
    (tmp_path / "vocab.txt").write_text("[UNK]\n", "utf-8")
    assert garden.ErnieTokenizer.recognises(tmp_path) and not garden.ErnieTokenizer.recognises(files[0])
    assert garden.ErnieTinyTokenizer.recognises(files[0]) and not garden.ErnieTinyTokenizer.recognises(tmp_path)


@pytest.mark.parametrize("name", ["dict.wordseg.pickle", "vocab.txt", "spm_cased_simp_sampled.model"])
def test_a_missing_file_is_one_sentence(name, twin, tmp_path):
    for file in twin[1].iterdir():
        if file.name != name:
            (tmp_path / file.name).symlink_to(file)
    with pytest.raises(FileNotFoundError, match=name):
        garden.ErnieTokenizer.from_preset(tmp_path)


def test_what_the_constructor_refuses(files):
    folder, words, rows, _ = files
    proto = folder / "spm_cased_simp_sampled.model"
    with pytest.raises(ValueError, match="ErnieTinyTokenizer has no vocabulary and words: it needs these"):
        garden.ErnieTinyTokenizer(proto)
    with pytest.raises(ValueError, match="pickle is a path, not words: from_preset reads"):
        garden.ErnieTinyTokenizer(proto, rows, folder / "dict.wordseg.pickle")
    with pytest.raises(ValueError, match=r"lacks \[CLS\]"):
        garden.ErnieTinyTokenizer(proto, [row for row in rows if row != "[CLS]"], words)
    with pytest.raises(ValueError, match="no vocabulary yet"):
        garden.ErnieTinyTokenizer()("电影")
    with pytest.raises(ValueError, match="names the file /etc/passwd"):
        garden.ErnieTinyTokenizer.from_config({"proto": "/etc/passwd"})


class Call:
    """Pickles as the call of a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    "collection",
    [
        {"北京", "ok"},
        frozenset({"北京", "ok"}),
        ["北京", "ok"],
        {"北京": 3, "ok": 1.5},
        collections.Counter({"北京": 3, "ok": 1}),
        collections.OrderedDict({"北京": 3, "ok": 1}),
        collections.defaultdict(int, {"北京": 3, "ok": 1}),
    ],
    ids=lambda collection: type(collection).__name__,
)
def test_every_kind_of_collection_is_read(collection, tmp_path):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        (tmp_path / "dict.wordseg.pickle").write_bytes(pickle.dumps(collection, protocol))
        assert read_words(tmp_path) == {"北京", "ok"}


def test_a_pickle_of_python_2_is_read(tmp_path):
    # {'北京': 1} with a byte string, as cPickle of Python 2 writes it.
    (tmp_path / "dict.wordseg.pickle").write_bytes(b"\x80\x02}q\x01U\x06" + "北京".encode() + b"q\x02K\x01s.")
    assert read_words(tmp_path) == {"北京"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps(Call(os.system, "touch owned")), "it asks for .*system, which is no collection of words"),
        (pickle.dumps({"北京": Call(eval, "1")}), "it asks for builtins.eval"),
        (pickle.dumps([Call(getattr, "", "join")]), "it asks for builtins.getattr"),
        (pickle.dumps(np.ones(3)), "it asks for numpy"),
        (pickle.dumps({"北京", 7}), "it holds a set of something other than words"),
        (pickle.dumps([b"\xff"]), "it holds a list of something other than words"),
        (pickle.dumps(set()), "it holds a set of something other than words"),
        (pickle.dumps("北京"), "it holds a pickled str"),
        (pickle.dumps({"北京", "大学"})[:-4], "is not a readable dictionary of words"),
        (b"\x80\x04\x96" + (2**60).to_bytes(8, "little") + b".", "is not a readable dictionary of words"),
        (b"", "is not a readable dictionary of words"),
    ],
    ids=lambda value: value if isinstance(value, str) else "pickle",  # the bytes of a set change from run to run
)
def test_a_hostile_or_damaged_dictionary_is_refused(content, message, twin, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for file in twin[1].iterdir():
        if not file.name.endswith(".pickle"):
            (tmp_path / file.name).symlink_to(file)
    (tmp_path / "dict.wordseg.pickle").write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        garden.ErnieTokenizer.from_preset(tmp_path)
    assert not (tmp_path / "owned").exists()
