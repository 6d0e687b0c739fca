"""`BertTokenizer` as TensorFlow operations, for a SavedModel that takes raw strings."""

import tensorflow as tf
import tensorflow_text as tf_text

from garden.tokenizers import BertTokenizer

# The classes of the Rust recipe, in RE2's syntax. It lacks U+2B820-2B91F among the Chinese characters.
_CHINESE = (
    r"[\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{20000}-\x{2A6DF}\x{2A700}-\x{2B73F}\x{2B740}-\x{2B81F}\x{2B920}-\x{2CEAF}"
    r"\x{F900}-\x{FAFF}\x{2F800}-\x{2FA1F}]"
)
_PUNCTUATION = r"[!-/:-@\[-`{-~\p{P}]"
_BLANKS = r"[\t\n\r\p{Z}]+"
_CONTROLS = r"[^\P{Cc}\t\n\r]|[\p{Cf}\x{FFFD}]"
# A special token in a text travels as a private-use character; those of the text are turned into a character that goes.
_PRIVATE, _ZERO_WIDTH = r"\p{Co}", "\u200b"

TRIMMERS = {"round_robin": tf_text.RoundRobinTrimmer, "waterfall": tf_text.WaterfallTrimmer}


class TensorFlowForm(tf.Module):
    """From a batch of strings to the three inputs of an encoder, all in TensorFlow.

    It gives what `garden.tasks.TextClassifierPreprocessor` gives, with tensorflow-text in place of the Rust library, so
    that it can be part of a SavedModel; what loads that has to `import tensorflow_text` first. Training and prediction
    in Python have no need of it.

    Differences remain only because the two libraries know different versions of Unicode: of 1.1 million characters, 684
    in an uncased model and 149 in a cased one (tokenizers 0.23, TensorFlow 2.21). They are marks, capitals, punctuation
    and format characters younger than the Rust library's tables, which here alone are dropped, lower-cased or split
    off, and U+166D, U+1734 and U+111C9, whose class has changed. Bytes that are not UTF-8 are not refused here.

    Args:
        tokenizer: its vocabulary and settings are copied.
        sequence_length: tokens of a row, special tokens included.
        truncate: "round_robin" or "waterfall", as in `TextClassifierPreprocessor`.

    Call arguments:
        first: string tensor (b,).
        second: None, or the second sentence of each pair, (b,).

    Returns:
        A dict of int32 tensors (b, sequence_length): `token_ids`, `segment_ids`, `padding_mask`.

    Raises:
        ValueError: `truncate` is no rule.

    Reference: [Song et al., 2020](https://arxiv.org/abs/2012.15524), Fast WordPiece Tokenization.

    >>> vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "fox", "##es", "the"]
    >>> tokenizer = BertTokenizer(vocabulary, lowercase=True)
    >>> TensorFlowForm(tokenizer, 6)(tf.constant(["The foxes!"]))["token_ids"].numpy().tolist()
    [[2, 7, 5, 6, 1, 3]]
    """

    def __init__(self, tokenizer: BertTokenizer, sequence_length: int, truncate: str = "round_robin"):
        super().__init__()
        self.tokenizer = tokenizer
        self.sequence_length = sequence_length
        if truncate not in TRIMMERS:
            raise ValueError(f"truncate={truncate!r} is no rule: take {' or '.join(TRIMMERS)}.")
        self._trimmer = TRIMMERS[truncate]
        self._stand_ins = {token: chr(0x10FF00 + i) for i, token in enumerate(sorted(tokenizer.special_tokens))}
        self._word_piece = tf_text.FastWordpieceTokenizer(
            vocab=self._pieces(),
            unknown_token=self._stand_ins[tokenizer.unk_token],
            max_bytes_per_word=4 * tokenizer.max_chars_per_word,
            token_out_type=tf.int32,
            no_pretokenization=True,
        )

    def __call__(self, first, second=None) -> dict[str, tf.Tensor]:
        segments = [self.ids(text) for text in (first, second) if text is not None]
        segments = self._trimmer(self.sequence_length - 1 - len(segments)).trim(segments)
        start, end = self.tokenizer.start_token_id, self.tokenizer.end_token_id
        token_ids, segment_ids = tf_text.combine_segments(segments, start, end)
        token_ids, mask = tf_text.pad_model_inputs(token_ids, self.sequence_length, self.tokenizer.pad_token_id)
        segment_ids, _ = tf_text.pad_model_inputs(segment_ids, self.sequence_length)
        return {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": tf.cast(mask, tf.int32)}

    def ids(self, text) -> tf.RaggedTensor:
        """The ids (b, None) of each text, without those of `[CLS]` and `[SEP]`."""
        words = self._words(self._normalized(self._protected(text)))
        too_long = tf.strings.length(words, unit="UTF8_CHAR") > self.tokenizer.max_chars_per_word
        words = tf.where(too_long, self._stand_ins[self.tokenizer.unk_token], words)
        return self._word_piece.tokenize(words).merge_dims(-2, -1)

    def _pieces(self) -> list[str]:
        tokens = self.tokenizer.get_vocabulary()
        ids = {token: i for i, token in enumerate(tokens) if token}
        # TensorFlow wants every token once, and none empty: an earlier twin becomes one that no text can hold.
        tokens = [token if ids.get(token) == i else f"{i} " for i, token in enumerate(tokens)]
        return [self._stand_ins.get(token, token) for token in tokens]

    def _protected(self, text):
        text = tf.strings.regex_replace(text, _PRIVATE, _ZERO_WIDTH)
        if self.tokenizer.special_tokens_in_strings:
            for token, stand_in in self._stand_ins.items():
                text = tf.strings.regex_replace(text, rf"\Q{token}\E", stand_in)
        return text

    def _normalized(self, text):
        text = tf.strings.regex_replace(text, _CONTROLS, "")
        if self.tokenizer.split_on_cjk:
            text = tf.strings.regex_replace(text, _CHINESE, r" \0 ")
        lowercase, strip_accents = self.tokenizer.lowercase, self.tokenizer.strip_accents
        if lowercase if strip_accents is None else strip_accents:
            text = tf.strings.regex_replace(tf_text.normalize_utf8(text, "NFD"), r"\p{Mn}", "")
        if lowercase:
            # Rust lower-cases one character at a time. TensorFlow has another sigma for the end of a word, and where
            # the process speaks Turkish another i: they go first.
            text = tf.strings.lower(tf.strings.regex_replace(text, "Σ", "σ"))
            text = tf.strings.lower(text, encoding="utf-8")
        return text

    def _words(self, text) -> tf.RaggedTensor:
        kept = f"{_PUNCTUATION}|[{''.join(self._stand_ins.values())}]"
        return tf_text.regex_split(text, f"{_BLANKS}|{kept}", kept)
