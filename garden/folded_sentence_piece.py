"""SentencePiece over a text whose quotes, accents, case and numbers are evened out first, as ALBERT and XLNet do."""

from pathlib import Path

import tokenizers as rust

from garden.sentence_piece import SentencePieceTokenizer
from garden.vocabulary import read_json


class FoldedSentencePieceTokenizer(SentencePieceTokenizer):
    """SentencePiece behind the rules of XLNet's `preprocess_text` and `encode_pieces`, which ALBERT took over.

    Doubled single quotes become double ones, accents go, letters may be lower-cased, and a comma behind a number is a
    piece of its own.

    Args:
        proto: a SentencePiece `.model` file's path or bytes. None only for a tokenizer that will load its assets.
        lowercase: whether a text is lower-cased first.
        special_tokens_in_strings: whether special tokens in a text are that, or characters like any other.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no Unigram model, or lacks a special token.

    >>> import garden
    >>> issubclass(garden.XlnetTokenizer, FoldedSentencePieceTokenizer)
    True
    """

    def __init__(self, proto=None, lowercase: bool = False, **kwargs):
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

    def save_published(self, folder):
        return {"do_lower_case": self.lowercase, "keep_accents": False}

    def get_config(self):
        return {**super().get_config(), "lowercase": self.lowercase}


def _ends_a_number(piece: str) -> bool:
    return piece[-1:] == "," and piece[-2:-1].isdigit()
