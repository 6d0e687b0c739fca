"""Unigram SentencePiece, the tokenizer of English ALBERT, XLNet, XLM-RoBERTa and T5, and its model files."""

import struct
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import tokenizers as rust

from garden.protobuf import fields
from garden.rust_tokenizer import Tokenizer
from garden.vocabulary import by_id, read_json


class SentencePieceModel(NamedTuple):
    """What a `.model` file holds.

    Attributes:
        pieces: (text, score), by id.
        unknown_id: the id of the piece for what no other covers.
        charsmap: the normalisation of characters, in SentencePiece's own compiled form; may be empty.
    """

    pieces: list[tuple[str, float]]
    unknown_id: int
    charsmap: bytes

    @property
    def normalizers(self) -> list[rust.normalizers.Normalizer]:
        """The Rust part that applies the charsmap; none where it is empty."""
        return [rust.normalizers.Precompiled(self.charsmap)] if self.charsmap else []


class SentencePieceTokenizer(Tokenizer):
    """Unigram SentencePiece: of all ways to cut a text into pieces, the most probable (Kudo 2018).

    The reference is the Rust recipe behind Hugging Face's fast tokenizers: blanks become part of the piece behind
    them, and neither doubled blanks nor blanks at the ends of a text count. A family's class says which pieces are
    special and how a text is framed and normalised.

    Args:
        proto: a SentencePiece `.model` file's path or bytes. None only for a tokenizer that will load its assets.
        special_tokens_in_strings: whether special tokens in a text are that, or characters like any other.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no Unigram model, or lacks a special token.

    Reference: [Kudo and Richardson, 2018](https://arxiv.org/abs/1808.06226).

    >>> import garden
    >>> issubclass(garden.XlmRobertaTokenizer, SentencePieceTokenizer)
    True
    """

    backbone_cls = None

    def __init__(self, proto: str | Path | bytes | None = None, special_tokens_in_strings: bool = True, **kwargs):
        super().__init__(**kwargs)
        self.special_tokens_in_strings = special_tokens_in_strings
        self.file_assets = ["sentencepiece.json"]  # the finished Rust tokenizer: transformers 5 publishes nothing else
        if proto is not None:
            self._take(self._recipe(read_model(proto)))

    def _pieces(self, model: SentencePieceModel) -> tuple[list[tuple[str, float]], int]:
        """The pieces by id as the family numbers them, and the id of the unknown one."""
        return model.pieces, model.unknown_id

    def _normalizers(self) -> list:
        """What happens to a text before the model's own normalisation."""
        return []

    def _post_processor(self, ids: dict[str, int]):
        """The Rust part that frames a text with special tokens, given the id of every token; here no frame."""
        return None

    @classmethod
    def recognises(cls, folder: Path) -> bool:
        return any(_protos(folder)) or _is_unigram(folder / "tokenizer.json")

    @classmethod
    def from_files(cls, folder: str | Path, defaults: Mapping = MappingProxyType({}), **kwargs):
        """The tokenizer of a published folder: its `.model` file, else its `tokenizer.json` as it is.

        Args:
            folder: where the files are.
            defaults: constructor arguments for what the files leave open.
            **kwargs: constructor arguments that replace those of the files.

        Raises:
            FileNotFoundError: the folder has neither file.
            ValueError: a file is malformed or describes another kind of tokenizer.
        """
        folder = Path(folder)
        protos = _protos(folder)
        if protos:
            return cls(protos[0], **{**defaults, **cls._settings(folder), **kwargs})
        made = cls(**{**defaults, **cls._settings(folder), **kwargs})
        made.load_file(folder / "tokenizer.json")
        return made

    @classmethod
    def _settings(cls, folder: Path) -> dict:
        """The constructor arguments that a published folder states."""
        return {}

    def load_file(self, path: str | Path) -> None:
        """Takes a finished Rust tokenizer from its file."""
        model = read_json(path).get("model") or {}
        if model.get("type") != "Unigram":
            raise ValueError(f"{path} is no Unigram SentencePiece: its model is {model.get('type')}.")
        self._take(rust.Tokenizer.from_file(str(path)))

    def save_assets(self, dir_path: str) -> None:
        self._ready().save(str(Path(dir_path, self.file_assets[0])))

    def load_assets(self, dir_path: str) -> None:
        self.load_file(Path(dir_path, self.file_assets[0]))

    def get_config(self) -> dict:
        return {**super().get_config(), "special_tokens_in_strings": self.special_tokens_in_strings}

    def _take(self, tokenizer: rust.Tokenizer) -> None:
        tokens = by_id(tokenizer.get_vocab())
        self._check(tokens)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        mask = getattr(self, "mask_token", None)
        tokenizer.add_special_tokens([rust.AddedToken(t, lstrip=t == mask, special=True) for t in self.special_tokens])
        tokenizer.encode_special_tokens = not self.special_tokens_in_strings
        self.set_rust(tokenizer, tokens)

    def _check(self, tokens: list[str]) -> None:
        if missing := ", ".join(sorted(set(self.special_tokens).difference(tokens))):
            raise ValueError(f"The vocabulary of {len(tokens)} pieces lacks {missing}: it is another family's.")

    def _recipe(self, model: SentencePieceModel) -> rust.Tokenizer:
        pieces, unknown_id = self._pieces(model)
        self._check([piece for piece, _ in pieces])
        tokenizer = rust.Tokenizer(rust.models.Unigram(pieces, unknown_id, byte_fallback=False))
        tokenizer.normalizer = rust.normalizers.Sequence([*self._normalizers(), *model.normalizers])
        parts = rust.pre_tokenizers
        tokenizer.pre_tokenizer = parts.Sequence([parts.WhitespaceSplit(), parts.Metaspace()])
        tokenizer.decoder = rust.decoders.Metaspace()
        tokenizer.post_processor = self._post_processor({piece: i for i, (piece, _) in enumerate(pieces)})
        return tokenizer


def read_model(proto: str | Path | bytes) -> SentencePieceModel:
    """Reads a SentencePiece `.model`: field 1 are the pieces, 2 how it was trained, 3 how it normalises.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is damaged, or no Unigram model.
    """
    name = "The SentencePiece model" if isinstance(proto, bytes) else str(proto)
    try:
        message = list(fields(proto if isinstance(proto, bytes) else Path(proto).read_bytes()))
        pieces = [_piece(dict(fields(value))) for number, value in message if number == 1]
        trainer = dict(fields(b"".join(value for number, value in message if number == 2)))
        normalizer = dict(fields(b"".join(value for number, value in message if number == 3)))
    except (ValueError, TypeError, struct.error) as error:
        raise ValueError(f"{name} is no SentencePiece model: {error}.") from None
    if not pieces or trainer.get(3, 1) != 1:
        kinds = {2: "BPE", 3: "word", 4: "character"}
        raise ValueError(f"{name} is a model of {kinds.get(trainer.get(3), 'no pieces')}: garden reads Unigram models.")
    return SentencePieceModel(pieces, trainer.get(40, 0), normalizer.get(2, b""))


def _piece(piece: dict[int, int | bytes]) -> tuple[str, float]:
    return piece[1].decode("utf-8"), struct.unpack("<f", piece.get(2, 0).to_bytes(4, "little"))[0]


def _protos(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.model"), *folder.glob("*.spm")])  # KerasHub's assets end in the latter


def _is_unigram(path: Path) -> bool:
    return (read_json(path, {}).get("model") or {}).get("type") == "Unigram"
