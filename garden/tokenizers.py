"""Strings to ids and back: KerasHub's tokenizer interface over the Rust `tokenizers` library."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import keras
import keras_hub
import numpy as np
import tokenizers as rust

from garden.strings import as_one_leaf, as_strings, in_graph, refuse_surrogates
from garden.vocabulary import as_vocabulary, read_folder, write_vocabulary


class Tokenizer(keras_hub.tokenizers.Tokenizer):
    """What every family's tokenizer shares: a `tokenizers.Tokenizer` in the attribute `rust` does the work.

    Called on a string it gives a list of ids, on a batch (b,) of strings a list of such lists, without special tokens.
    Inside a `tf.data` pipeline or a `tf.function` it gives a tensor (t,) or a ragged tensor (b, None) of int32: TensorFlow
    hands each batch back to the Rust code, so both ways agree. One tokenizer may serve many threads, because nothing
    changes `rust` after `set_rust`.

    A subclass adds its special tokens, builds its Rust tokenizer and passes it to `set_rust`.
    """

    def __init__(self, dtype="int32", **kwargs):
        super().__init__(dtype=dtype, **kwargs)
        self.rust = None
        self._vocabulary = None

    @classmethod
    def from_preset(cls, preset, **kwargs):
        """The tokenizer of a built-in name, a handle, a URL, an archive or a folder in any published format.

        Args:
            preset: `garden.presets.names()` lists the built-in ones.
            **kwargs: Constructor arguments that replace the preset's.

        Raises:
            FileNotFoundError: The preset holds no vocabulary.
        """
        from garden.presets import load_tokenizer  # an upward arrow, as in `Backbone.from_preset`

        return load_tokenizer(preset, cls, **kwargs)

    def set_rust(self, tokenizer: rust.Tokenizer | None, vocabulary: list[str] | None) -> None:
        """Take a finished Rust tokenizer, and its tokens by id; None for both until the assets are loaded."""
        self.rust, self._vocabulary = tokenizer, vocabulary
        if vocabulary is not None:
            self._update_special_token_ids()

    def __call__(self, inputs, **kwargs):
        return super().__call__(as_one_leaf(inputs), **kwargs)

    def call(self, inputs):
        return self.tokenize(inputs)

    def tokenize(self, inputs) -> list:
        """The ids of a string or of a batch of strings; `garden.strings.as_strings` says what a batch may be.

        Raises:
            ValueError: A row is not text; the message names it.
        """
        if in_graph():
            return self._tokenize_in_graph(inputs)
        texts, batched = as_strings(inputs)
        ids = self.ids(texts)
        return ids if batched else ids[0]

    def ids(self, texts: list[str]) -> list[list[int]]:
        """The ids of each text, without special tokens: the fast path, on plain Python strings only."""
        try:
            return [encoding.ids for encoding in self._ready().encode_batch_fast(texts, add_special_tokens=False)]
        except TypeError:  # Rust's message names no row
            refuse_surrogates(texts)
            raise

    def encode(self, text: str, pair: str | None = None) -> rust.Encoding:
        """One text, or a pair, with special tokens, and where each token lies in the original string.

        Of the result, `ids`, `tokens`, `type_ids` and `offsets` (start, end) in characters of `text` or `pair`, `word_ids` and
        `sequence_ids` are lists with one entry per token.

        >>> tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "na", "##ive"], lowercase=True)
        >>> encoding = tokenizer.encode("Naïve")
        >>> encoding.tokens, encoding.offsets[2]
        (['[CLS]', 'na', '##ive', '[SEP]'], (2, 5))
        """
        try:
            return self._ready().encode(text, pair)
        except TypeError:
            as_strings([text] if pair is None else [text, pair])
            refuse_surrogates([text, pair or ""])
            raise

    def detokenize(self, inputs) -> str | list[str]:
        """The text of a row of ids (t,) or of each row of a batch; special tokens stay, blanks are the decoder's guess."""
        if hasattr(inputs, "to_list"):  # a ragged tensor
            inputs = inputs.to_list()
        elif not isinstance(inputs, (list, tuple)):
            inputs = keras.ops.convert_to_numpy(inputs)
        if len(inputs) and np.ndim(inputs[0]):
            return [self.detokenize(row) for row in inputs]
        return self._ready().decoder.decode([self.id_to_token(int(i)) for i in inputs])

    def get_vocabulary(self) -> list[str]:
        """The tokens; the place of each is its id."""
        self._ready()
        return list(self._vocabulary)

    def vocabulary_size(self) -> int:
        self._ready()
        return len(self._vocabulary)

    def id_to_token(self, id: int) -> str:
        if not 0 <= id < self.vocabulary_size():
            raise ValueError(f"the id {id} is not in the vocabulary; its ids are 0 to {self.vocabulary_size() - 1}")
        return self._vocabulary[id]

    def token_to_id(self, token: str) -> int:
        id = self._ready().token_to_id(token)
        if id is None:
            raise ValueError(f"the token {token!r} is not in the vocabulary of {self.vocabulary_size()} tokens")
        return id

    def _ready(self) -> rust.Tokenizer:
        if self.rust is None:
            raise ValueError(f"{type(self).__name__} has no vocabulary yet; pass `vocabulary` or load a preset")
        return self.rust

    def _tokenize_in_graph(self, texts):
        import tensorflow as tf

        def flat_ids(texts):
            rows = self.ids(as_strings(np.atleast_1d(texts))[0])
            lengths = np.array([len(row) for row in rows], dtype=np.int64)
            return np.array([i for row in rows for i in row], dtype=np.int32), lengths

        flat, lengths = tf.numpy_function(flat_ids, [texts], [tf.int32, tf.int64])
        flat.set_shape([None])
        if texts.shape.rank == 0:
            return flat
        lengths.set_shape(texts.shape)
        return tf.RaggedTensor.from_row_lengths(flat, lengths)


@keras.saving.register_keras_serializable(package="garden")
class BertTokenizer(Tokenizer):
    """WordPiece as BERT, DistilBERT, ELECTRA, MobileBERT, TinyBERT and the Chinese models use it.

    The reference is the Rust recipe behind Hugging Face's fast tokenizers, character for character: control, format and
    private-use characters go, every kind of blank splits, Chinese characters and punctuation stand alone, each word is cut
    into the longest pieces of the vocabulary from the left, and a word with a part that is not in it becomes `[UNK]`.

    Args:
        vocabulary: Tokens by id in a list, a `{token: id}` dict, or the path of a `vocab.txt`. None only for a tokenizer
            that will load its assets.
        lowercase: Lower-case the text, as uncased models need.
        strip_accents: Drop accents; None follows `lowercase`.
        split_on_cjk: Put every Chinese character into a word of its own.
        max_chars_per_word: A longer word is `[UNK]`. Google's own code has 200.
        special_tokens_in_strings: Read `[MASK]` and its like in a text as the special token, wherever it stands and in
            this case only. False: as any other characters.

    Raises:
        FileNotFoundError: The vocabulary file is not there.
        ValueError: The vocabulary is empty, not UTF-8 or lacks a special token.

    Reference: [Schuster and Nakajima, 2012](https://research.google/pubs/pub37842/),
    [Devlin et al., 2018](https://arxiv.org/abs/1810.04805).

    >>> tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "fox", "##es", "the"], lowercase=True)
    >>> tokenizer(["The foxes", "the [MASK]!"])
    [[7, 5, 6], [7, 4, 1]]
    >>> tokenizer.detokenize([7, 5, 6])
    'the foxes'
    """

    # garden.bert sets it: KerasHub finds the tokenizer of a backbone by this attribute.
    backbone_cls = None

    def __init__(
        self,
        vocabulary: str | Path | Mapping[str, int] | Iterable[str] | None = None,
        lowercase: bool = False,
        strip_accents: bool | None = None,
        split_on_cjk: bool = True,
        max_chars_per_word: int = 100,
        special_tokens_in_strings: bool = True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.split_on_cjk = split_on_cjk
        self.max_chars_per_word = max_chars_per_word
        self.special_tokens_in_strings = special_tokens_in_strings
        self.file_assets = ["vocabulary.txt"]
        for name in ("cls", "sep", "pad", "mask", "unk"):
            self._add_special_token(f"[{name.upper()}]", f"{name}_token")
        # The names by which KerasHub's generic code knows [CLS] and [SEP].
        self._add_special_token("[CLS]", "start_token")
        self._add_special_token("[SEP]", "end_token")
        self.set_vocabulary(vocabulary)

    @classmethod
    def from_files(cls, folder: str | Path, **defaults) -> "BertTokenizer":
        """The tokenizer of a published folder: its vocabulary, and the settings that its JSON files state.

        `defaults` are constructor arguments for what the files leave open, such as `lowercase` beside a lone `vocab.txt`.

        Raises:
            FileNotFoundError: The folder holds no vocabulary.
            ValueError: A file is malformed, or describes another kind of tokenizer.
        """
        vocabulary, settings = read_folder(folder)
        return cls(vocabulary, **{**defaults, **settings})

    def set_vocabulary(self, vocabulary: str | Path | Mapping[str, int] | Iterable[str] | None) -> None:
        """Take another vocabulary, in any form that the constructor takes."""
        if vocabulary is None:
            self.set_rust(None, None)
        else:
            tokens = as_vocabulary(vocabulary, self.special_tokens)
            self.set_rust(self._word_piece(tokens), tokens)

    def save_assets(self, dir_path: str) -> None:
        write_vocabulary(Path(dir_path, self.file_assets[0]), self.get_vocabulary())

    def load_assets(self, dir_path: str) -> None:
        self.set_vocabulary(Path(dir_path, self.file_assets[0]))

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "vocabulary": None,  # an asset, not a setting
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "split_on_cjk": self.split_on_cjk,
            "max_chars_per_word": self.max_chars_per_word,
            "special_tokens_in_strings": self.special_tokens_in_strings,
        }

    @classmethod
    def from_config(cls, config: dict) -> "BertTokenizer":
        if isinstance(config.get("vocabulary"), (str, Path)):  # a saved model must not read files of its choice
            raise ValueError(f"a saved tokenizer names the file {config['vocabulary']}; its vocabulary has to be an asset")
        return cls(**config)

    def _word_piece(self, tokens: list[str]) -> rust.Tokenizer:
        ids = {token: i for i, token in enumerate(tokens)}
        model = rust.models.WordPiece(ids, unk_token=self.unk_token, max_input_chars_per_word=self.max_chars_per_word)
        tokenizer = rust.Tokenizer(model)
        tokenizer.normalizer = rust.normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=self.split_on_cjk,
            strip_accents=self.strip_accents,
            lowercase=self.lowercase,
        )
        tokenizer.pre_tokenizer = rust.pre_tokenizers.BertPreTokenizer()
        tokenizer.post_processor = rust.processors.BertProcessing(
            (self.sep_token, ids[self.sep_token]), (self.cls_token, ids[self.cls_token])
        )
        tokenizer.decoder = rust.decoders.WordPiece(prefix="##")
        tokenizer.add_special_tokens(self.special_tokens)
        tokenizer.encode_special_tokens = not self.special_tokens_in_strings
        return tokenizer
