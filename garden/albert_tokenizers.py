"""ALBERT's two tokenizers: WordPiece for the Chinese models, SentencePiece for the English ones."""

from pathlib import Path

import keras
import tokenizers as rust

from garden.sentence_piece import SentencePieceTokenizer
from garden.tokenizers import BertTokenizer
from garden.vocabulary import read_json


@keras.saving.register_keras_serializable("garden")
class AlbertTokenizer(BertTokenizer):
    __doc__ = BertTokenizer.__doc__.replace(
        "WordPiece as BERT, DistilBERT, ELECTRA, MobileBERT, TinyBERT and the Chinese models use it.",
        "WordPiece, as the Chinese ALBERT models use it; `from_preset` gives the English ones their SentencePiece.",
    )

    alternatives = ("AlbertSentencePieceTokenizer",)


@keras.saving.register_keras_serializable("garden")
class AlbertSentencePieceTokenizer(SentencePieceTokenizer):
    """The SentencePiece of the English models; `AlbertTokenizer.from_preset` gives it for their files.

    Args:
        proto: a SentencePiece `.model` file's path or bytes. None only for a tokenizer that will load its assets.
        lowercase: whether a text is lower-cased first, as the published models need. Accents always go.
        special_tokens_in_strings: whether special tokens in a text are that, or characters like any other.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no Unigram model, or lacks a special token.

    >>> import garden
    >>> garden.AlbertSentencePieceTokenizer().lowercase
    True
    """

    published_as = "AlbertTokenizer"
    special_names = {
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "start_token": "[CLS]",
        "end_token": "[SEP]",
        "mask_token": "[MASK]",
    }

    def __init__(self, proto=None, lowercase: bool = True, **kwargs):
        self.lowercase = lowercase
        super().__init__(proto, **kwargs)

    @classmethod
    def _settings(cls, folder):
        config = read_json(folder / "tokenizer_config.json", {})
        return {"lowercase": config["do_lower_case"]} if "do_lower_case" in config else {}

    def load_file(self, path):
        super().load_file(path)
        self.lowercase = '"Lowercase"' in Path(path).read_text("utf-8")

    def _pieces(self, model):
        # The original cuts the comma off a number afterwards; here a piece that ends so is too improbable to be taken.
        pieces = [(piece, score - 100 * _ends_a_number(piece)) for piece, score in model.pieces]
        return pieces, model.unknown_id

    def _normalizers(self):
        parts = rust.normalizers
        quotes = [parts.Replace("``", '"'), parts.Replace("''", '"')]
        return [*quotes, parts.NFKD(), parts.StripAccents(), *([parts.Lowercase()] if self.lowercase else [])]

    def _post_processor(self, ids):
        return rust.processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[(token, ids[token]) for token in ("[CLS]", "[SEP]")],
        )

    def save_published(self, folder):
        return {"do_lower_case": self.lowercase, "keep_accents": False}

    def get_config(self):
        return {**super().get_config(), "lowercase": self.lowercase}


def _ends_a_number(piece: str) -> bool:
    return piece[-1:] == "," and piece[-2:-1].isdigit()
