"""DeBERTa's two tokenizers: byte-level BPE for version 1, SentencePiece since."""

from pathlib import Path

import keras
import tokenizers as rust

from garden.byte_pair import BytePairTokenizer
from garden.sentence_piece import SentencePieceTokenizer
from garden.vocabulary import read_json

_SPECIAL = {
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "unk_token": "[UNK]",
    "mask_token": "[MASK]",
    "start_token": "[CLS]",
    "end_token": "[SEP]",
}


def _frame(ids):
    """[CLS] A [SEP] or [CLS] A [SEP] B [SEP], the second text in segment 1."""
    return rust.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, ids[token]) for token in ("[CLS]", "[SEP]")],
    )


@keras.saving.register_keras_serializable("garden")
class DebertaTokenizer(BytePairTokenizer):
    __doc__ = BytePairTokenizer.__doc__.split("\n\n    >>>")[0]

    published_as = "DebertaTokenizer"
    special_names = _SPECIAL

    def _post_processor(self, ids):
        return _frame(ids)


@keras.saving.register_keras_serializable("garden")
class DebertaV2Tokenizer(SentencePieceTokenizer):
    """The SentencePiece of versions 2 and 3 and of mDeBERTa, with `[MASK]` behind the model's pieces.

    Args:
        proto: a SentencePiece `.model` file's path or bytes. None only for a tokenizer that will load its assets.
        lowercase: whether a text is lower-cased first; the published models are cased.
        split_by_punct: whether punctuation stands alone; in no published model.
        special_tokens_in_strings: whether special tokens in a text are that, or characters like any other.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no Unigram model, or lacks a special token.

    >>> import garden
    >>> garden.DebertaV2Tokenizer().lowercase
    False
    """

    published_as = "DebertaV2Tokenizer"
    special_names = _SPECIAL

    def __init__(self, proto=None, lowercase: bool = False, split_by_punct: bool = False, **kwargs):
        self.lowercase = lowercase
        self.split_by_punct = split_by_punct
        super().__init__(proto, **kwargs)

    @classmethod
    def _settings(cls, folder):
        config = read_json(folder / "tokenizer_config.json", {})
        names = {"do_lower_case": "lowercase", "split_by_punct": "split_by_punct"}
        return {ours: config[theirs] for theirs, ours in names.items() if theirs in config}

    def load_file(self, path):
        super().load_file(path)
        recipe = Path(path).read_text("utf-8")
        self.lowercase, self.split_by_punct = '"Lowercase"' in recipe, '"Punctuation"' in recipe

    def _pieces(self, model):
        has_mask = any(piece == self.mask_token for piece, _ in model.pieces)
        return model.pieces + ([] if has_mask else [(self.mask_token, 0.0)]), model.unknown_id

    def _normalizers(self):
        return [rust.normalizers.Lowercase()] if self.lowercase else []

    def _recipe(self, model):
        tokenizer = super()._recipe(model)
        if self.split_by_punct:
            parts = rust.pre_tokenizers
            tokenizer.pre_tokenizer = parts.Sequence([parts.Punctuation("isolated"), tokenizer.pre_tokenizer])
        return tokenizer

    def _post_processor(self, ids):
        return _frame(ids)

    def save_published(self, folder):
        return {"do_lower_case": self.lowercase, "split_by_punct": self.split_by_punct}

    def get_config(self):
        return {**super().get_config(), "lowercase": self.lowercase, "split_by_punct": self.split_by_punct}
