"""Marian's tokenizer: one SentencePiece model for what is read and one for what is written, over one vocabulary."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import keras
import tokenizers as rust

from garden.rust_tokenizer import Tokenizer
from garden.sentence_piece import SentencePieceModel, read_model
from garden.strings import refuse_surrogates
from garden.vocabulary import by_id, read_json

_FILES = ("source.spm", "target.spm", "vocab.json")


@keras.saving.register_keras_serializable("garden")
class MarianTokenizer(Tokenizer):
    """The tokenizer of the OPUS-MT models: `ids` cuts a text to read, `target_ids` one to write.

    A text ends with `</s>`; a decoder starts with padding, the last id. A multilingual model is told the language to
    write by a token such as `>>fra<<` in front of the text. Transformers also normalises punctuation where sacremoses
    is installed; here no other package changes what a model reads.

    Args:
        source, target: SentencePiece `.spm` files' paths or bytes. None only for a tokenizer that will load its assets.
        vocabulary: a `vocab.json`'s path, or its dictionary of tokens and ids.
        special_tokens_in_strings: whether special tokens in a text are that, or characters like any other.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a file is no Unigram model, or the vocabulary has a gap or lacks a special token.

    >>> import garden
    >>> garden.MarianTokenizer().pad_token
    '<pad>'
    """

    published_as = "MarianTokenizer"
    special_names = {"pad_token": "<pad>", "end_token": "</s>", "unk_token": "<unk>"}
    numbers_segments = False
    start_token_id = None
    has_rust_file = False
    backbone_cls = None

    def __init__(self, source=None, target=None, vocabulary=None, special_tokens_in_strings: bool = True, **kwargs):
        super().__init__(**kwargs)
        self.special_tokens_in_strings = special_tokens_in_strings
        self.file_assets = list(_FILES)
        self.target_rust = None
        if source is not None:
            self._take(_bytes(source), _bytes(target), vocabulary)

    @classmethod
    def recognises(cls, folder: Path) -> bool:
        return (folder / _FILES[0]).is_file()

    @classmethod
    def from_files(cls, folder: str | Path, defaults: Mapping = MappingProxyType({}), **kwargs):
        """The tokenizer of a published folder: `source.spm`, `target.spm` and `vocab.json`.

        Args:
            folder: where the files are.
            defaults: constructor arguments for what the files leave open.
            **kwargs: constructor arguments that replace those of the files.

        Raises:
            FileNotFoundError: the folder lacks one of them.
            ValueError: a file is malformed.
        """
        return cls(*(Path(folder, name) for name in _FILES), **{**defaults, **kwargs})

    def ids(self, texts):
        return self._looked_up(self._ready(), texts)

    def target_ids(self, texts):
        self._ready()
        return self._looked_up(self.target_rust, texts)

    def _looked_up(self, tokenizer, texts):
        """The ids of the pieces; what a model does not know, such as a letter of the other language, may have one."""
        try:
            found = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        except TypeError:
            refuse_surrogates(texts)
            raise
        rows = [encoding.ids for encoding in found]
        return [
            self._known(tokenizer.encode(text, add_special_tokens=False)) if self.unk_token_id in row else row
            for text, row in zip(texts, rows, strict=True)
        ]

    def _known(self, encoding):  # the fast path does not say what the pieces are
        places, unknown = self._places, self.unk_token_id
        pairs = zip(encoding.ids, encoding.tokens, strict=True)
        return [places.get(piece, unknown) if i == unknown else i for i, piece in pairs]

    def save_assets(self, dir_path: str) -> None:
        self._ready()
        for name, content in zip(_FILES, self._contents, strict=True):
            Path(dir_path, name).write_bytes(content)

    def load_assets(self, dir_path: str) -> None:
        source, target, vocabulary = (Path(dir_path, name) for name in _FILES)
        self._take(source.read_bytes(), target.read_bytes(), vocabulary)

    def save_published(self, folder: Path) -> dict:
        self.save_assets(str(folder))
        return {}

    def get_config(self) -> dict:
        return {**super().get_config(), "special_tokens_in_strings": self.special_tokens_in_strings}

    def _take(self, source: bytes, target: bytes, vocabulary) -> None:
        known = vocabulary if isinstance(vocabulary, Mapping) else read_json(vocabulary)
        tokens = by_id(known)
        if missing := ", ".join(sorted(set(self.special_tokens).difference(tokens))):
            raise ValueError(f"The vocabulary of {len(tokens)} pieces lacks {missing}: it is another family's.")
        self._places = dict(known)
        self._contents = (source, target, json.dumps(known, ensure_ascii=False).encode("utf-8"))
        self.target_rust = self._recipe(read_model(target), tokens)
        self.set_rust(self._recipe(read_model(source), tokens), tokens)

    def _recipe(self, model: SentencePieceModel, tokens: list[str]) -> rust.Tokenizer:
        """The pieces of one model under the ids of the common vocabulary."""
        special = [token for token in tokens if token in self.special_tokens or _is_language(token)]
        scores = dict(model.pieces) | dict.fromkeys(special, 0.0)
        # What the model does not have stands behind a NUL, which no normalised text holds.
        pieces = [(token, scores[token]) if token in scores else (f"\0{token}", 0.0) for token in tokens]
        tokenizer = rust.Tokenizer(rust.models.Unigram(pieces, tokens.index(self.unk_token), byte_fallback=False))
        tokenizer.normalizer = rust.normalizers.Sequence(model.normalizers)
        parts = rust.pre_tokenizers
        tokenizer.pre_tokenizer = parts.Sequence([parts.WhitespaceSplit(), parts.Metaspace()])
        tokenizer.decoder = rust.decoders.Metaspace()
        tokenizer.add_special_tokens([rust.AddedToken(token, special=True) for token in special])
        tokenizer.encode_special_tokens = not self.special_tokens_in_strings
        end = (self.end_token, tokens.index(self.end_token))
        frames = {"single": "$A </s>", "pair": "$A $B </s>"}
        tokenizer.post_processor = rust.processors.TemplateProcessing(**frames, special_tokens=[end])
        return tokenizer


def _bytes(proto: str | Path | bytes) -> bytes:
    if isinstance(proto, bytes):
        return proto
    if not Path(proto).is_file():
        raise FileNotFoundError(f"There is no SentencePiece model {proto}.")
    return Path(proto).read_bytes()


def _is_language(token: str) -> bool:
    return token.startswith(">>") and token.endswith("<<")
