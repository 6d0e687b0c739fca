"""Strings to ids and back: KerasHub's tokenizer interface over the Rust `tokenizers` library."""

from pathlib import Path

import keras
import keras_hub
import numpy as np
import tokenizers as rust

from garden.strings import as_one_leaf, as_strings, in_graph, refuse_surrogates


class Tokenizer(keras_hub.tokenizers.Tokenizer):
    """What every family's tokenizer shares: a `tokenizers.Tokenizer`, the attribute `rust`, does the work.

    Called on a string it gives a list of ids, on a batch (b,) of strings a list of such lists, without special tokens.
    Inside a `tf.data` pipeline or a `tf.function` it gives int32, a tensor (t,) or a ragged tensor (b, None):
    TensorFlow hands each batch back to the Rust code, so both ways agree. One tokenizer serves any number of threads,
    because nothing changes `rust` after `set_rust`.

    A subclass names its special tokens, builds its Rust tokenizer and passes it to `set_rust`.

    Attributes:
        published_as: the class in transformers that reads what `save_published` writes.
        alternatives: names on garden's face of the classes for the family's other files.
        special_names: what KerasHub calls the special tokens, such as `start_token` -> the token.
        numbers_segments: whether the second text of a pair is in segment 1; else all is in segment 0.
        between_ids: special tokens in front of the second text of a pair, beside the end token of the first.
        suffix_ids: special tokens behind everything, in segment 2; the last of them stands for the whole row.
        pads_left: whether padding stands in front of a row, so that its last token is in the last place.
        has_rust_file: whether `rust` can be written as a `tokenizer.json`; a part of it in Python cannot.
    """

    special_names = {}
    numbers_segments = True
    between_ids = ()
    suffix_ids = ()
    pads_left = False
    has_rust_file = True
    alternatives = ()

    def __init__(self, dtype="int32", **kwargs):
        super().__init__(dtype=dtype, **kwargs)
        for name, token in self.special_names.items():
            self._add_special_token(token, name)
        self.rust = None
        self._vocabulary = None
        self.built = True  # it has no weights: Keras's `quantize` stops at a layer that is not built

    @classmethod
    def from_preset(cls, preset, **kwargs):
        """The tokenizer of a built-in name, a handle, a URL, an archive or a folder in any published format.

        Args:
            preset: `garden.presets.names()` lists the built-in ones.
            **kwargs: constructor arguments that replace the preset's.

        Raises:
            FileNotFoundError: the preset holds no vocabulary.
        """
        from garden.presets import load_tokenizer  # an upward arrow, as in `Backbone.from_preset`

        return load_tokenizer(preset, cls, **kwargs)

    @classmethod
    def from_config(cls, config: dict):
        named = [config[name] for name in ("vocabulary", "merges", "proto") if isinstance(config.get(name), str)]
        if named:  # a saved model must not read files of its choice
            raise ValueError(f"A saved tokenizer names the file {named[0]}: a vocabulary has to be an asset.")
        return cls(**config)

    @classmethod
    def recognises(cls, folder: Path) -> bool:
        """Whether the vocabulary in a published folder is of this kind."""
        return True

    def save_published(self, folder: Path) -> dict:
        """Writes what is published beside tokenizer.json, here nothing; returns what goes to tokenizer_config.json."""
        return {}

    def set_rust(self, tokenizer: rust.Tokenizer | None, vocabulary: list[str] | None) -> None:
        """Takes a finished Rust tokenizer and its tokens by id; None for both while the assets are not loaded."""
        self.rust, self._vocabulary = tokenizer, vocabulary
        if vocabulary is not None:
            self._update_special_token_ids()

    def __call__(self, inputs, **kwargs):
        return super().__call__(as_one_leaf(inputs), **kwargs)

    def call(self, inputs):
        return self.tokenize(inputs)

    def tokenize(self, inputs):
        """The ids of a string or of a batch of strings; `garden.strings.as_strings` says what a batch may be.

        Raises:
            ValueError: a row is not text; the message names it.
        """
        if in_graph():
            return self._tokenize_in_graph(inputs)
        texts, batched = as_strings(inputs)
        ids = self.ids(texts)
        return ids if batched else ids[0]

    def ids(self, texts: list[str]) -> list[list[int]]:
        """The ids of each text, without special tokens: the fast path, for plain Python strings only."""
        try:
            return [encoding.ids for encoding in self._ready().encode_batch_fast(texts, add_special_tokens=False)]
        except TypeError:  # Rust's message names no row
            refuse_surrogates(texts)
            raise

    def target_ids(self, texts: list[str]) -> list[list[int]]:
        """The ids of texts that a decoder shall write; some tokenizers have another model for them."""
        return self.ids(texts)

    def encode(self, text: str, pair: str | None = None) -> rust.Encoding:
        """One text, or a pair, with special tokens, and where each token lies in the original string.

        Returns:
            A `tokenizers.Encoding`. Its `ids`, `tokens`, `type_ids`, `word_ids`, `sequence_ids` and `offsets` are lists
            with one entry per token; an offset is (start, end) in characters of `text` or `pair`.

        >>> import garden
        >>> vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "na", "##ive"]
        >>> encoding = garden.BertTokenizer(vocabulary, lowercase=True).encode("Naïve")
        >>> encoding.tokens, encoding.offsets[2]
        (['[CLS]', 'na', '##ive', '[SEP]'], (2, 5))
        """
        try:
            return self._ready().encode(text, pair)
        except TypeError:
            texts, _ = as_strings([text] if pair is None else [text, pair])
            refuse_surrogates(texts)
            raise

    def encode_batch(self, texts: list[str]) -> list[rust.Encoding]:
        """What `encode` gives, without special tokens, for each of many texts.

        >>> import garden
        >>> tokenizer = garden.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "na", "##ive"], True)
        >>> [encoding.offsets for encoding in tokenizer.encode_batch(["naive", "na"])]
        [[(0, 2), (2, 5)], [(0, 2)]]
        """
        try:
            return self._ready().encode_batch(texts, add_special_tokens=False)
        except TypeError:
            refuse_surrogates(texts)
            raise

    def detokenize(self, inputs) -> str | list[str]:
        """The text of a row of ids (t,) or of each row of a batch; special tokens stay, blanks are the decoder's guess.

        Raises:
            ValueError: an id is not in the vocabulary.
        """
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
        """The number of ids."""
        self._ready()
        return len(self._vocabulary)

    def id_to_token(self, id: int) -> str:
        """The token of an id, or a ValueError."""
        if not 0 <= id < self.vocabulary_size():
            raise ValueError(
                f"The id {id} is not in the vocabulary, whose ids run from 0 to {len(self._vocabulary) - 1}."
            )
        return self._vocabulary[id]

    def token_to_id(self, token: str) -> int:
        """The id of a token, or a ValueError."""
        id = self._ready().token_to_id(token)
        if id is None:
            raise ValueError(f"The token {token!r} is not in the vocabulary of {len(self._vocabulary)} tokens.")
        return id

    def _ready(self) -> rust.Tokenizer:
        if self.rust is None:
            raise ValueError(f"{type(self).__name__} has no vocabulary yet: pass `vocabulary` or load a preset.")
        return self.rust

    def _tokenize_in_graph(self, texts):
        import tensorflow as tf

        def flat_ids(texts):
            rows = self.ids(as_strings(np.atleast_1d(texts))[0])
            lengths = np.array([len(row) for row in rows], np.int64)
            return np.array([i for row in rows for i in row], np.int32), lengths

        texts = tf.convert_to_tensor(texts)
        flat, lengths = tf.numpy_function(flat_ids, [texts], [tf.int32, tf.int64])
        flat.set_shape([None])
        if texts.shape.rank == 0:
            return flat
        lengths.set_shape(texts.shape)
        return tf.RaggedTensor.from_row_lengths(flat, lengths)
